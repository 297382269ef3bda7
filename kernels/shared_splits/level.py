"""The nodes of a level of an oblivious tree: which of them are open, and the split that all of these get."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import (
    BEGIN,
    BIN,
    CLOSED,
    END,
    FEATURE,
    LEFT_G,
    LEFT_H,
    MISSING_LEFT,
    NEW,
    OPEN,
    SLOT,
    STATE,
    SUM_G,
    SUM_H,
)
from gpuboost.kernels.common.records import Criterion, HistogramArrays, HistogramLayout, NodeArrays
from gpuboost.kernels.shared_splits.search import gain_at, read_node, score_of_leaf
from gpuboost.kernels.splits.categories import SET_LAMBDA


@kernel
def level_of(new_pairs, node, slots, level):
    """level[:c] = the open nodes among the new pairs, by number; the others give their slots back. Returns c."""
    count = 0
    for i in range(new_pairs.shape[0]):
        a, b = new_pairs[i, 0], new_pairs[i, 1]
        for v in (min(a, b), max(a, b)):  # -1 stands for no node
            if v < 0:
                continue
            if node[v, STATE] == NEW:
                level[count] = v
                count += 1
            else:
                slots[0] += 1
                slots[slots[0]] = node[v, SLOT]
    return count


@kernel
def _share(level, nodes, histograms, begin, n_bins, feature, split, criterion, shared_set, values):
    """Give every node of the level this split, with its own part of the gain and its own left sums.

    begin: first cell of the feature. shared_set (8,) uint32, or (0,) if the feature is numeric.
    """
    node, units, rule, counts = nodes.node, criterion.units, criterion.rule, histograms.counts
    is_categorical, counted = shared_set.shape[0] > 0, counts.shape[1] > 0
    ridge = rule[0] + rule[SET_LAMBDA] if split[2] == 1 else rule[0]
    g, h, n = np.empty(257, np.int64), np.empty(257, np.int64), np.empty(257 if counted else 0, np.int64)
    for v in level:
        read_node(v, node, histograms.of, counts, histograms.packed_rows, begin, n_bins + 1, g, h, n)
        lg, lh, ln = np.int64(0), np.int64(0), np.int64(0)
        for b in range(n_bins + 1 if is_categorical else split[0] + 1):
            goes_left = True
            if is_categorical:
                goes_left = (shared_set[b >> 5] >> np.uint32(b & 31)) & np.uint32(1) == 1
            if goes_left:
                lg += g[b]
                lh += h[b]
                ln += n[b] if counted else 0
        if not is_categorical and split[1] == 1:
            lg += g[n_bins]
            lh += h[n_bins]
            ln += n[n_bins] if counted else 0
        total_g, total_h, total_n = node[v, SUM_G], node[v, SUM_H], node[v, END] - node[v, BEGIN]
        above = values[v] if values.shape[0] > 0 else 0.0
        parent = score_of_leaf(total_g * units[0], total_h * units[1], ridge, rule, above)
        nodes.gain[v] = gain_at(lg, lh, ln, (total_g, total_h, total_n), units, rule, ridge, parent, above, counted)
        node[v, STATE], node[v, FEATURE], node[v, BIN], node[v, MISSING_LEFT] = OPEN, feature, split[0], split[1]
        node[v, LEFT_G], node[v, LEFT_H] = lg, lh
        if is_categorical:
            for word in range(8):
                nodes.left_set[v, word] = shared_set[word]


@kernel
def share_best(level, kinds, nodes, layout, histograms, criterion, gains, splits, left_sets, values):
    """Over the features: the first of the largest gains becomes the split of the level's nodes, or they are closed.

    level (c,) int64: see ``level_of``. gains, splits, left_sets, values, kinds: see ``shared_splits.search``. nodes:
    NodeArrays; the rest are the fields of the records of their names.
    """
    nodes, layout = NodeArrays(*nodes), HistogramLayout(*layout)
    best = 0
    for j in range(gains.shape[0]):
        if gains[j] > gains[best]:
            best = j
    if not gains[best] > 0.0:
        for v in level:
            nodes.node[v, STATE] = CLOSED
        return
    shared_set = np.empty(0, np.uint32)
    if kinds is not None and kinds[best] == 1:
        shared_set = left_sets[best]
    _share(
        level, nodes, HistogramArrays(*histograms), np.int64(layout.starts[best]), layout.n_bins[best],
        layout.features[best], splits[best], Criterion(*criterion), shared_set, values,
    )  # fmt: skip
