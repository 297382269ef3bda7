"""Levels of a small tree in one call: the steps of ``histogram``, ``split`` and ``partition`` in turn.

A level of a few thousand rows takes less time than its separate calls. So one call grows level after level, as long as
no step is large enough to divide among threads.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import BEGIN, END
from gpuboost.kernels.common.records import (
    ChildLimits,
    ColumnArrays,
    Criterion,
    GrowthLimits,
    HistogramArrays,
    HistogramLayout,
    Level,
    NodeArrays,
    RowArrays,
    Splits,
)
from gpuboost.kernels.growth import partition
from gpuboost.kernels.histograms import histogram
from gpuboost.kernels.splits import split

BUILD, SEARCH, SPLIT, ON = 0, 1, 2, 3  # the steps of a level, and all that follow


@kernel
def grow(
    step, until, part, first, last, kinds, results, level, limits, nodes, layout, columns, rows, histograms, criterion
):
    """Run the steps of a level from ``step`` until ``until``, or ON level by level until a step is large.

    One kernel for all steps, so small data do not wait for the compilation of the separate kernels.

    BUILD until SEARCH: rows [first, last) of ``histogram.build``, by thread ``part``; returns what that returns.
    SEARCH until SPLIT: features [first, last) of ``split.search``, the case ``general=None``.
    Otherwise ``part`` is 0; ``results`` are read only if the first step is to split.
    kinds: those of the layout, or None if none is categorical. The rest are the fields of records, as plain tuples:
    results: Splits; level: Level, whose pairs that are left to search are written; limits: GrowthLimits; the others the
    records of their names.

    Returns the number of nodes, and the number of such pairs. If there are none, there may be open nodes left for which
    there was no room in the tables. No array is returned: the Python code that numba runs to make one is where an
    interrupt would be lost, and end in a SystemError.
    """
    level, limits, nodes, layout = Level(*level), GrowthLimits(*limits), NodeArrays(*nodes), HistogramLayout(*layout)
    columns, rows, histograms = ColumnArrays(*columns), RowArrays(*rows), HistogramArrays(*histograms)
    criterion, results = Criterion(*criterion), Splits(*results)
    node, left_set, slots, left = nodes.node, nodes.left_set, histograms.slots, level.left
    n_nodes, new_pairs, shared = level.n_nodes, level.new_pairs, level.shared
    leaves, t = (n_nodes + 1) // 2, layout.features.shape[0]
    no_features = np.empty((0, 0), np.bool_)
    child_limits = ChildLimits(limits.max_depth, limits.least_rows, criterion.rule[1], criterion.units[1])
    while True:
        if step == BUILD:
            line = histogram.build(rows, layout, node, new_pairs, histograms, part, first, last)
            if until == SEARCH:
                return line, 0
            shared = np.empty((new_pairs.shape[0], 0), np.int64)
        if step <= SEARCH:
            if until != SPLIT:
                pairs, first, last = new_pairs.shape[0], 0, t
                results = Splits(
                    np.zeros((2 * pairs, t)),
                    np.empty((2 * pairs, t, 4), np.int64),
                    np.empty((2 * pairs, 0 if kinds is None else t, 8), np.uint32),
                )
            split.search(
                layout, kinds, new_pairs, shared, node, histograms, criterion, first, last, None, no_features, results
            )
            if until == SPLIT:
                return n_nodes, 0
        split.pick(new_pairs, nodes, layout, results, slots)
        count = partition.choose(node, n_nodes, nodes.gain, limits.max_leaves - leaves, nodes.chosen)
        chosen = nodes.chosen[:count]
        deeper = partition.count_above(node, chosen, limits.max_depth - 1)
        if count == 0 or deeper > slots[0] or n_nodes + 2 * count > node.shape[0]:
            return n_nodes, 0
        new_pairs = np.empty((count, 3), np.int64)
        n_nodes, pairs = partition.split_alone(
            columns, rows.rows, rows.scratch, chosen, node, left_set, n_nodes, slots, child_limits,
            np.empty((1, count), np.int64), new_pairs,
        )  # fmt: skip
        new_pairs, leaves = new_pairs[:pairs], leaves + count
        step, first, last = BUILD, 0, rows.rows.shape[0]
        smaller = 0
        for i in range(pairs):
            smaller += node[new_pairs[i, 0], END] - node[new_pairs[i, 0], BEGIN]
        if pairs == 0 or smaller >= limits.most_summed or 2 * pairs >= limits.most_searched:
            for i in range(pairs):  # of a whole slice numba would compile the error message as well, for seconds
                left[i, 0], left[i, 1], left[i, 2] = new_pairs[i, 0], new_pairs[i, 1], new_pairs[i, 2]
            return n_nodes, pairs
