"""Small oblivious trees in one call of one thread: a level gets the split that gains most in sum over its nodes.

A kernel of its own, with the arguments of ``small_trees.grow``, as those of ``small_general_trees`` are.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.records import (
    Criterion,
    GrowthLimits,
    HistogramArrays,
    HistogramLayout,
    Level,
    LevelScores,
    NodeArrays,
    RowArrays,
)
from gpuboost.kernels.growth.next_level import split_next
from gpuboost.kernels.histograms import histogram
from gpuboost.kernels.shared_splits import level as levels
from gpuboost.kernels.shared_splits import packed_search
from gpuboost.kernels.splits.packed_split import ROOM


@kernel
def grow(
    step, until, part, first, last, kinds, results, level, limits, nodes, layout, columns, rows, histograms, criterion,
    team,
):  # fmt: skip
    """Grow the rest of the tree from BUILD until ON, as ``small_trees.grow`` does; return what that returns.

    All nodes are packed, rows do not count, and all features and cuts compete. The arguments before ``kinds``, the
    results and the team are not read.
    """
    level, limits, rule = Level(*level), GrowthLimits(*limits), Criterion(*criterion)
    node, slots, of_layout = NodeArrays(*nodes).node, HistogramArrays(*histograms).slots, HistogramLayout(*layout)
    t, m = of_layout.features.shape[0], RowArrays(*rows).rows.shape[0]
    n_nodes, new_pairs, counts = level.n_nodes, level.new_pairs, np.empty((1, node.shape[0]), np.int64)
    child_limits = (limits.max_depth, limits.least_rows, rule.rule[1], rule.units[1])  # ChildLimits
    scores = LevelScores(
        np.empty((2, 2, np.int64(of_layout.starts[t]))), np.empty((2, 2, t), np.bool_), np.empty(t, np.int64),
        np.empty(ROOM, np.int64), np.empty(ROOM, np.int64), np.empty(ROOM, np.float32), np.empty(ROOM, np.float32),
    )  # fmt: skip
    gains, splits = np.empty(t), np.empty((t, 3), np.int64)
    left_sets, of_level = np.empty((0 if kinds is None else t, 8), np.uint32), np.empty(node.shape[0], np.int64)
    while True:
        histogram.build(rows, layout, node, new_pairs, histograms, 0, 0, m)
        open_nodes = of_level[: levels.level_of(new_pairs, node, slots, of_level)]
        packed_search.search(
            new_pairs, open_nodes, kinds, node, layout, histograms, criterion, scores, gains, splits, left_sets
        )
        levels.share_best(
            open_nodes, kinds, nodes, layout, histograms, criterion, gains, splits, left_sets, np.empty(0)
        )
        n_nodes, pairs = split_next(
            True, n_nodes, nodes, columns, rows, slots, limits, child_limits, counts, level.left
        )  # fmt: skip
        if pairs <= 0:
            return n_nodes, pairs
        new_pairs = level.left[:pairs]
