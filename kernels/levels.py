"""Levels of a small tree in one call: what ``histogram``, ``split`` and ``partition`` do, one after the other.

A level of a few thousand rows takes less time than the calls that it is made of. So a tree goes on by itself as long as
no step is worth sharing among threads.
"""

import numpy as np

from gpuboost.kernels import histogram, partition, split
from gpuboost.kernels.jit import kernel
from gpuboost.kernels.nodes import BEGIN, END, LEFT, OPEN, RIGHT, STATE


@kernel
def grow(
    bins, features, starts, row_start, cells, packed, rows, node, gain, left_set, n_nodes, fresh, built, shared,
    narrow_rows, scratch, histograms, spare, counts, n_bins, kinds, kinds_of_some, defaults, units, rule, root, by_node,
    slots, columns, default, column_start, row, column_bin, buffer, drawn, n_bins_of_all, kinds_of_all, scratch_rows,
    chosen, max_leaves, max_depth, least_rows, most_summed, most_searched, most_sorted, ends,
):  # fmt: skip
    """Search and split level by level, from the fresh pairs on, until nothing is left to split or a step is large.

    ``built``: whether the histograms of the first level are built already. kinds_of_some: ``kinds``, or None if none
    is categorical. most_summed: rows whose histograms are built here; most_searched, most_sorted: nodes searched and
    rows sorted here. ends (max_depth,) int64: how many nodes there were before each level's children.
    For the rest see ``histogram.build``, ``split.search``, of which this is the case ``general=None``, and
    ``partition.split_alone``.

    Returns the number of nodes, the fresh pairs that are left to search, and how many levels were split. If there are
    no such pairs, there may be open nodes that were searched, and are too large to be split here.
    """
    levels, least_h = 0, rule[1]
    leaves = (n_nodes + 1) // 2
    while True:
        if not built:
            histogram.build(
                bins, features, starts, row_start, cells, packed, rows, node, fresh, narrow_rows, 0, rows.shape[0],
                scratch, histograms, spare[0],
            )  # fmt: skip
            shared = np.empty((fresh.shape[0], 0), np.int64)
        pairs, t = fresh.shape[0], features.shape[0]
        gains, found = np.zeros((2 * pairs, t)), np.empty((2 * pairs, t, 4), np.int64)
        left_sets = np.empty((2 * pairs, 0 if kinds_of_some is None else t, 8), np.uint32)
        split.search(
            histograms, counts, spare, shared, fresh, node, starts, n_bins, kinds_of_some, defaults, units, rule,
            narrow_rows, 0, t, None, root, by_node, gains, found, left_sets,
        )  # fmt: skip
        split.pick(fresh, node, gain, left_set, features, kinds, gains, found, left_sets, slots)
        count = partition.choose(node, n_nodes, gain, max_leaves - leaves, chosen)
        here = chosen[:count]
        deeper = partition.count_above(node, here, max_depth - 1)
        large = deeper > 0 and partition.rows_in(node, here) > most_sorted
        if count == 0 or large or deeper > slots[0] or n_nodes + 2 * count > node.shape[0]:
            return n_nodes, fresh[:0], levels
        ends[levels] = n_nodes
        fresh = np.empty((count, 3), np.int64)
        n_nodes, pairs = partition.split_alone(
            columns, default, column_start, row, column_bin, buffer, drawn, here, node, left_set, n_bins_of_all,
            kinds_of_all, rows, scratch_rows, n_nodes, slots, max_depth, least_rows, least_h, units[1],
            np.empty((1, count), np.int64), fresh,
        )  # fmt: skip
        fresh, levels, leaves, built = fresh[:pairs], levels + 1, leaves + count, False
        smaller = 0
        for i in range(pairs):
            smaller += node[fresh[i, 0], END] - node[fresh[i, 0], BEGIN]
        if pairs == 0 or smaller > most_summed or 2 * pairs > most_searched:
            return n_nodes, fresh, levels


@kernel
def cut_back(node, end):
    """Nodes [0, end) as they were before those from ``end`` on were made."""
    for v in range(end):
        if node[v, LEFT] >= end:
            node[v, STATE] = OPEN
            node[v, LEFT] = node[v, RIGHT] = 0
