"""Small trees in one call of one thread that have more rules than ``small_trees`` knows.

Leaves need several rows, nodes draw cuts, features or noise on gains, or interaction constraints restrict the features
of a path. Trees whose leaf values have bounds may have all of that, too.

Kernels of their own: no tree that ``small_trees`` serves waits for them, and until they are compiled, in the
background, such trees are grown level by level. Their arguments are those of ``small_trees.grow``, so one kernel
repeats rounds of all.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import SUM_G, SUM_H
from gpuboost.kernels.common.records import (
    Criterion,
    GrowthLimits,
    HistogramArrays,
    HistogramLayout,
    Level,
    NodeArrays,
    NodeRules,
    RowArrays,
)
from gpuboost.kernels.growth.next_level import split_next
from gpuboost.kernels.histograms import histogram
from gpuboost.kernels.splits import packed_search, split
from gpuboost.kernels.splits.competing import DIRECTIONS, competing, parents_of
from gpuboost.kernels.splits.gain import ALPHA, SMOOTHING
from gpuboost.kernels.splits.monotone_split import inherit
from gpuboost.kernels.splits.random_strength import keep_winners


@kernel
def _disturb_gains(noise, new_pairs, node, features, gains):
    """Keep in each line of gains only that of the feature that wins with noise. noise: see NodeRules."""
    if noise.shape[0] == 0:
        return
    sums = np.zeros((gains.shape[0], 2), np.int64)
    for i in range(new_pairs.shape[0]):
        for side in range(2):
            v = new_pairs[i, side]
            if v >= 0:
                sums[2 * i + side, 0], sums[2 * i + side, 1] = node[v, SUM_G], node[v, SUM_H]
    words, numbers = noise[0, 0], noise[0, 0, 4:].view(np.float64)
    keep_winners(gains, sums, features, numbers[0], numbers[1:], words[0], words[1], words[2], words[3])


def _growing(held):
    """A kernel that grows the rest of a tree. held: True if leaf values have bounds, else None.

    Each is compiled as one function: a kernel that calls another one is optimised with the code of that once more.
    """

    @kernel
    def grow(
        step, until, part, first, last, kinds, results, level, limits, nodes, layout, columns, rows, histograms,
        criterion, team,
    ):  # fmt: skip
        """Grow the rest of the tree from BUILD until ON, as ``small_trees.grow`` does; return what that returns.

        All nodes are packed. The arguments before ``kinds`` and the results are not read; the last one is a NodeRules.
        """
        level, limits, rule, rules = Level(*level), GrowthLimits(*limits), Criterion(*criterion), team
        node, slots = NodeArrays(*nodes).node, HistogramArrays(*histograms).slots
        n_nodes, new_pairs, features = level.n_nodes, level.new_pairs, HistogramLayout(*layout).features
        t, parent = features.shape[0], parents_of(node, n_nodes, rules)
        is_counted, m = HistogramArrays(*histograms).counts.shape[1] > 0, RowArrays(*rows).rows.shape[0]
        counts = np.empty((1, node.shape[0]), np.int64)
        child_limits = (limits.max_depth, limits.least_rows, rule.rule[1], rule.units[1])  # ChildLimits
        while True:
            if is_counted:
                histogram.build_and_count(rows, layout, node, new_pairs, histograms)
            else:
                histogram.build(rows, layout, node, new_pairs, histograms, 0, 0, m)
            pairs = new_pairs.shape[0]
            found = (
                np.zeros((2 * pairs, t)),
                np.empty((2 * pairs, t, 4), np.int64),
                np.empty((2 * pairs, 0 if kinds is None else t, 8), np.uint32),
            )
            if held is not None:  # decided when this is compiled
                of_rules = NodeRules(*rules)
                penalties = rule.rule[0], rule.rule[ALPHA], rule.rule[SMOOTHING]
                inherit(new_pairs, node, of_rules.of_features[0, DIRECTIONS], rule.units, *penalties, of_rules.bounds)
            may = competing(new_pairs, parent, node, features, rules)
            packed_search.search(layout, kinds, new_pairs, node, histograms, criterion, rules, held, may, found)
            _disturb_gains(NodeRules(*rules).noise, new_pairs, node, features, found[0])
            split.pick(new_pairs, nodes, layout, found, slots)
            n_nodes, pairs = split_next(
                None, n_nodes, nodes, columns, rows, slots, limits, child_limits, counts, level.left
            )
            if pairs <= 0:
                return n_nodes, pairs
            new_pairs = level.left[:pairs]

    return grow


grow = _growing(None)
grow_within_bounds = _growing(True)
"""The same where leaf values have bounds, or ``reg_alpha`` or path smoothing changes them."""
