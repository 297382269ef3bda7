"""Levels of a small tree in one call: the steps of ``histogram``, ``split`` and ``partition`` in turn.

A level of a few thousand rows takes less time than its separate calls. So one call grows level after level, as long as
no step is large enough to divide among threads.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import BEGIN, END
from gpuboost.kernels.growth import partition
from gpuboost.kernels.histograms import histogram
from gpuboost.kernels.splits import split

BUILD, SEARCH, SPLIT, ON = 0, 1, 2, 3  # the steps of a level, and all that follow


@kernel
def grow(
    step, until, part, first, last, gains, found, left_sets, n_nodes, new_pairs, shared, node, gain, left_set, bins,
    features, starts, row_start, cells, packed, rows, narrow_rows, scratch, histograms, spare, counts, n_bins, kinds,
    kinds_of_some, defaults, units, rule, root, by_node, slots, columns, default, column_start, row, column_bin, buffer,
    drawn, n_bins_of_all, kinds_of_all, scratch_rows, chosen, max_leaves, max_depth, least_rows, most_summed,
    most_searched, left,
):  # fmt: skip
    """Run the steps of a level from ``step`` until ``until``, or ON level by level until a step is large.

    One kernel for all steps, so small data do not wait for the compilation of the separate kernels.

    BUILD until SEARCH: rows [first, last) of ``histogram.build``, by thread ``part``; returns what that returns.
    SEARCH until SPLIT: features [first, last) of ``split.search``, the case ``general=None``.
    Otherwise ``part`` is 0; ``gains``, ``found`` and ``left_sets`` are read only if the first step is to split.
    kinds_of_some: ``kinds``, or None if none is categorical. most_summed, most_searched: the rows and the nodes from
    which on a step is large. left (.., 3) int64: the new pairs that are left to search, long enough for all.

    Returns the number of nodes, and the number of such pairs. If there are none, there may be open nodes left for which
    there was no room in the tables. No array is returned: the Python code that numba runs to make one is where an
    interrupt would be lost, and end in a SystemError.
    """
    leaves, t = (n_nodes + 1) // 2, features.shape[0]
    while True:
        if step == BUILD:
            at = histogram.build(
                bins, features, starts, row_start, cells, packed, rows, node, new_pairs, narrow_rows, first, last,
                scratch[part], histograms, spare[part],
            )  # fmt: skip
            if until == SEARCH:
                return at, 0
            shared = np.empty((new_pairs.shape[0], 0), np.int64)
        if step <= SEARCH:
            if until != SPLIT:
                pairs, first, last = new_pairs.shape[0], 0, t
                gains, found = np.zeros((2 * pairs, t)), np.empty((2 * pairs, t, 4), np.int64)
                left_sets = np.empty((2 * pairs, 0 if kinds_of_some is None else t, 8), np.uint32)
            split.search(
                histograms, counts, spare, shared, new_pairs, node, starts, n_bins, kinds_of_some, defaults, units,
                rule, narrow_rows, first, last, None, root, by_node, gains, found, left_sets,
            )  # fmt: skip
            if until == SPLIT:
                return n_nodes, 0
        split.pick(new_pairs, node, gain, left_set, features, kinds, gains, found, left_sets, slots)
        count = partition.choose(node, n_nodes, gain, max_leaves - leaves, chosen)
        here = chosen[:count]
        deeper = partition.count_above(node, here, max_depth - 1)
        if count == 0 or deeper > slots[0] or n_nodes + 2 * count > node.shape[0]:
            return n_nodes, 0
        new_pairs = np.empty((count, 3), np.int64)
        n_nodes, pairs = partition.split_alone(
            columns, default, column_start, row, column_bin, buffer, drawn, here, node, left_set, n_bins_of_all,
            kinds_of_all, rows, scratch_rows, n_nodes, slots, max_depth, least_rows, rule[1], units[1],
            np.empty((1, count), np.int64), new_pairs,
        )  # fmt: skip
        new_pairs, leaves = new_pairs[:pairs], leaves + count
        step, first, last = BUILD, 0, rows.shape[0]
        smaller = 0
        for i in range(pairs):
            smaller += node[new_pairs[i, 0], END] - node[new_pairs[i, 0], BEGIN]
        if pairs == 0 or smaller >= most_summed or 2 * pairs >= most_searched:
            for i in range(pairs):  # of a whole slice numba would compile the error message as well, for seconds
                left[i, 0], left[i, 1], left[i, 2] = new_pairs[i, 0], new_pairs[i, 1], new_pairs[i, 2]
            return n_nodes, pairs
