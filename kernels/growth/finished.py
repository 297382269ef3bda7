"""Conversion of the node table of a grown tree to one array per column."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import (
    BEGIN,
    BIN,
    END,
    FEATURE,
    LEFT,
    MISSING_LEFT,
    RIGHT,
    SPLIT,
    STATE,
    SUM_G,
    SUM_H,
)
from gpuboost.kernels.common.records import ColumnArrays, NodeArrays
from gpuboost.kernels.growth import partition


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


@kernel
def finish(columns, rows, nodes, n_nodes, max_depth, units, leaf_of_row, tree, sums):
    """Settle the rows of a grown tree and take it apart, on one thread and in one call.

    columns, nodes: the fields of ColumnArrays and of NodeArrays; rows (m,) int32; units (2,) float64: value of one unit
    of g and of h; leaf_of_row: see ``settle_rows``; tree: the arrays that ``take_apart`` fills; sums: (v,) float64 for
    the sum of g of each node, and for that of h.
    """
    arrays = NodeArrays(*nodes)
    node = arrays.node[:n_nodes]
    settled = arrays.chosen[: partition.to_settle(node, n_nodes, max_depth, arrays.chosen)]
    counts = np.zeros((1, settled.shape[0]), np.int64)
    first = np.int64(0)  # the number itself has a type of its own, for which numba would compile once more
    partition.settle_rows(columns, rows, settled, node, arrays.left_set, first, rows.shape[0], leaf_of_row, counts[0])
    partition.bound_last_level(node, settled, counts)
    fields = ColumnArrays(*columns)
    feature, bin, missing_left, left, right, gain, cover, count, left_set = tree
    take_apart(
        node, arrays.gain, arrays.left_set, fields.n_bins, fields.kinds, units[1], feature, bin, missing_left, left,
        right, gain, cover, count, left_set,
    )  # fmt: skip
    sum_g, sum_h = sums
    for v in range(n_nodes):
        sum_g[v], sum_h[v] = node[v, SUM_G] * units[0], node[v, SUM_H] * units[1]
