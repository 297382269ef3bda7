"""Conversion of the node table of a grown tree to one array per column."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import BEGIN, BIN, END, FEATURE, LEFT, MISSING_LEFT, RIGHT, SPLIT, STATE, SUM_H


@kernel
def take_apart(node, found_gain, left_sets, n_bins, kinds, unit_h, feature, bin, missing_left, left, right, gain, cover,
               count, left_set):  # fmt: skip
    """Fill the arrays of a tree of v nodes. A split that was found but never made is not part of it.

    node (v, COLUMNS), found_gain (v,), left_sets (v, 8) as grown; n_bins (d,) int32, kinds (d,) uint8 of all features.
    The rest, (v,) and left_set (v, 8), come as zeros.
    """
    for v in range(node.shape[0]):
        cover[v] = node[v, SUM_H] * unit_h
        count[v] = node[v, END] - node[v, BEGIN]
        left[v], right[v] = node[v, LEFT], node[v, RIGHT]
        f = node[v, FEATURE]
        if node[v, STATE] != SPLIT:
            feature[v] = -1
            continue
        feature[v], bin[v], gain[v] = f, node[v, BIN], found_gain[v]
        missing_left[v] = node[v, MISSING_LEFT] == 1
        if kinds[f] == 1:
            for word in range(8):
                left_set[v, word] = left_sets[v, word]
            # growing needs the bit of missing values, later missing_left tells
            left_set[v, n_bins[f] >> 5] &= ~(np.uint32(1) << np.uint32(n_bins[f] & 31))
