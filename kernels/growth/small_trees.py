"""Levels of a small tree in one call: the steps of ``histogram``, ``split`` and ``partition`` in turn.

A level of a few thousand rows takes less time than its separate calls. So one call grows level after level, as long as
no step is large enough to divide among threads. A leaf-wise tree is one whose levels have one split each.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import BEGIN, END
from gpuboost.kernels.common.records import (
    Criterion,
    GrowthLimits,
    HistogramArrays,
    HistogramLayout,
    Level,
    NodeArrays,
    RowArrays,
    Team,
)
from gpuboost.kernels.growth import partition
from gpuboost.kernels.growth import team as teams
from gpuboost.kernels.histograms import histogram
from gpuboost.kernels.splits import split

BUILD, SEARCH, SPLIT, ON = 0, 1, 2, 3  # the steps of a level, and all that follow
HELP = 4  # of the thread that leads a team


@kernel
def _search_chunk(chunk, pairs, kinds, layout, node, rows, histograms, criterion, level, team):
    """Histograms and splits of the features of one chunk, for the first pairs of ``level.left``."""
    new_pairs, first, last = level.left[:pairs], team.bounds[chunk], team.bounds[chunk + 1]
    histogram.build_features(rows, layout, node, new_pairs, histograms, first, last)
    split.search(
        layout, kinds, new_pairs, np.empty((pairs, 0), np.int64), node, histograms, criterion, first, last, None,
        np.empty((0, 0), np.bool_), np.empty((0, 0), np.int64), (team.gains, team.splits, team.left_sets),
    )  # fmt: skip


@kernel
def _search_together(new_pairs, kinds, layout, node, rows, histograms, criterion, level, team):
    """All chunks of a level, some of them by other threads. Returns the number of chunks."""
    pairs, chunks = new_pairs.shape[0], team.bounds.shape[0] - 1
    for i in range(pairs):
        level.left[i, 0], level.left[i, 1], level.left[i, 2] = new_pairs[i, 0], new_pairs[i, 1], new_pairs[i, 2]
    teams.offer(team.words, chunks, pairs)
    while True:
        chunk = teams.take(team.words)
        if chunk < 0:
            return chunks
        _search_chunk(chunk, pairs, kinds, layout, node, rows, histograms, criterion, level, team)
        teams.finish_chunk(team.words)


@kernel
def grow(
    step, until, part, first, last, kinds, results, level, limits, nodes, layout, columns, rows, histograms, criterion,
    team,
):  # fmt: skip
    """Run the steps of a level from ``step`` until ``until``, or ON level by level until a step is large.

    One kernel for all steps, so small data do not wait for the compilation of the separate kernels.

    BUILD until SEARCH: rows [first, last) of ``histogram.build``, by thread ``part``; returns what that returns.
    SEARCH until SPLIT: features [first, last) of ``split.search``, the case ``general=None``.
    HELP: chunks of the levels of another thread's call, until its end. ``team`` is the same, and has words.
    BUILD until ON with a team: features are divided into chunks, each of which is summed and searched by one thread.
    Otherwise ``part`` is 0; ``results`` are read only if the first step is to split.
    kinds: those of the layout, or None if none is categorical. The rest are the fields of records, as plain tuples:
    results: Splits; team: Team; level: Level, whose pairs that are left to search are written; limits: GrowthLimits;
    the others the records of their names.

    Returns the number of nodes, and the number of such pairs: 0 if the tree is finished, -1 if open nodes are left for
    which there was no room in the tables. No array is returned: the Python code that numba runs to make one is where an
    interrupt would be lost, and end in a SystemError.
    """
    level, limits, team = Level(*level), GrowthLimits(*limits), Team(*team)
    rule, of_nodes, of_rows = Criterion(*criterion), NodeArrays(*nodes), RowArrays(*rows)
    node, left_set, slots = of_nodes.node, of_nodes.left_set, HistogramArrays(*histograms).slots
    n_nodes, new_pairs, shared = level.n_nodes, level.new_pairs, level.shared
    leaves, t = (n_nodes + 1) // 2, HistogramLayout(*layout).features.shape[0]
    no_features, counts = np.empty((0, 0), np.bool_), np.empty((1, node.shape[0]), np.int64)
    child_limits = (limits.max_depth, limits.least_rows, rule.rule[1], rule.units[1])  # ChildLimits
    together, done = team.words.shape[0] > 0, 0
    if step == HELP:
        while True:
            chunk = teams.wait_for_chunk(team.words)
            if chunk < 0:
                return 0, 0
            pairs = team.words[teams.PAIRS]
            _search_chunk(chunk, pairs, kinds, layout, node, rows, histograms, criterion, level, team)
            teams.finish_chunk(team.words)
    while True:
        if together:
            done += _search_together(new_pairs, kinds, layout, node, rows, histograms, criterion, level, team)
            teams.wait_for_others(team.words, done)
            results, step = (team.gains, team.splits, team.left_sets), SPLIT
        if step == BUILD:
            line = histogram.build(rows, layout, node, new_pairs, histograms, part, first, last)
            if until == SEARCH:
                return line, 0
            shared = np.empty((new_pairs.shape[0], 0), np.int64)
        if step <= SEARCH:
            if until != SPLIT:
                pairs, first, last = new_pairs.shape[0], 0, t
                results = (
                    np.zeros((2 * pairs, t)),
                    np.empty((2 * pairs, t, 4), np.int64),
                    np.empty((2 * pairs, 0 if kinds is None else t, 8), np.uint32),
                )
            split.search(
                layout, kinds, new_pairs, shared, node, histograms, criterion, first, last, None, no_features,
                np.empty((0, 0), np.int64), results,
            )  # fmt: skip
            if until == SPLIT:
                return n_nodes, 0
        split.pick(new_pairs, nodes, layout, results, slots)
        pairs, step, first, last = 0, BUILD, 0, of_rows.rows.shape[0]
        while pairs == 0:
            most = min(limits.at_once, limits.max_leaves - leaves)
            count = partition.choose(node, n_nodes, of_nodes.gain, most, of_nodes.chosen)
            chosen = of_nodes.chosen[:count]
            deeper = partition.count_above(node, chosen, limits.max_depth - 1)
            if count == 0 or deeper > slots[0] or n_nodes + 2 * count > node.shape[0]:
                if together:
                    teams.end(team.words)
                return n_nodes, 0 if count == 0 else -1
            leaves += count
            n_nodes, made = partition.split_alone(
                columns, of_rows.rows, of_rows.scratch, chosen, node, left_set, n_nodes, slots, child_limits, counts,
                level.left,
            )  # fmt: skip
            if leaves < limits.max_leaves:  # else none of them will be split
                pairs = made
        new_pairs, smaller = level.left[:pairs], 0
        for i in range(pairs):
            smaller += node[new_pairs[i, 0], END] - node[new_pairs[i, 0], BEGIN]
        if not together and (smaller >= limits.most_summed or 2 * pairs >= limits.most_searched):
            return n_nodes, pairs
