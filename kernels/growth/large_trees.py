"""A large tree in one call of each thread: its integers, its levels, and the leaf of every row.

The leader divides each step into chunks of rows, of features or of both, and goes on when all are done; see ``team``.
A hand-over between the threads takes about a microsecond, so a level of some thousand rows is divided, too.
"""

from math import isnan

import numpy as np

from gpuboost.kernels.common import fixed_point
from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import BEGIN, CLOSED, END, FEATURE, NEW, STATE, SUM_G, SUM_H
from gpuboost.kernels.common.records import (
    ChildLimits,
    ColumnArrays,
    Criterion,
    GrowthLimits,
    HistogramArrays,
    HistogramLayout,
    NodeArrays,
    RowArrays,
    Shares,
    Splits,
    TreeGradients,
)
from gpuboost.kernels.growth import best_first, next_level, partition
from gpuboost.kernels.growth import team as teams
from gpuboost.kernels.histograms import histogram
from gpuboost.kernels.shared_splits import level as levels
from gpuboost.kernels.shared_splits import search as shared_search
from gpuboost.kernels.splits import monotone_split, split

LEAD, HELP = 0, 1  # what a thread does in its call
FINISHED, NO_ROOM, LONG, NOT_FINITE = -1, -2, -3, -4  # why a call ends
NOTHING, EXTENTS, PACK, BUILD, SEARCH, SORT, COPY, SETTLE, RESUMED = range(9)  # the steps
STEP, STRETCHES, COUNT, DEEPER, NODES, SPLITS, WORK = range(teams.PAIRS + 1, teams.WORDS)
"""Words beside those of ``team``: the step and its stretches of rows; numbers of nodes that are split or settled, of
those above the last level, and of all; certain splits of a leaf-wise tree; (row, feature) pairs summed in this call."""

ROWS_PER_CHUNK = 8_192  # to sort or settle; four times as many to pack
ENTRIES_PER_CHUNK = 1 << 17  # (row, feature) pairs to sum
CHUNKS_PER_THREAD = 3  # each half of the one before: what a thread that is late leaves to others, and is waited for


@kernel
def _size(part, threads):
    """Size of a stretch, in those of the last ones."""
    return 1 << max(CHUNKS_PER_THREAD - 1 - part // threads, 0)


@kernel
def _divide(total, per_stretch, max_stretches, shares):
    """Divide the numbers below ``total`` into ``max_stretches``, or fewer of about ``per_stretch`` on average.

    Stretches are taken in their order, so the last ones are the smallest: they are what threads wait for.
    """
    parts, threads = min(max(total // per_stretch, 1), max_stretches), max(max_stretches // CHUNKS_PER_THREAD, 1)
    units, before = 0, 0
    for part in range(parts):
        units += _size(part, threads)
    for part in range(parts):
        shares.stretches[part] = total * before // units
        before += _size(part, threads)
    shares.stretches[parts] = total
    shares.words[STRETCHES] = parts
    return parts


@kernel
def _scale(criterion, gradients):
    """The units of the integers, from the extents. Returns False if a gradient is not a finite number."""
    scale_g = fixed_point.scale_of(gradients.found[0], gradients.weight, 31)
    scale_h = fixed_point.scale_of(gradients.found[1], gradients.weight, 32)
    criterion.units[0], criterion.units[1] = 1.0 / scale_g, 1.0 / scale_h
    return not (isnan(scale_g) or isnan(scale_h))


@kernel
def _make_root(limits, criterion, nodes, gradients, shares):
    """The root, from the sums of the integers, and its pair if it can be split."""
    node, g, h = nodes.node, 0, 0
    for part in range(shares.words[STRETCHES]):
        g += gradients.totals[part, 0]
        h += gradients.totals[part, 1]
    size = gradients.g.shape[0]
    node[0, END], node[0, FEATURE], node[0, SUM_G], node[0, SUM_H] = size, -1, g, h
    heavy = h > 0 and h * criterion.units[1] >= 2.0 * criterion.rule[1]
    can = limits.max_depth > 0 and size >= limits.least_rows and heavy
    node[0, STATE] = NEW if can else CLOSED
    criterion.rule[4] = gradients.weight / max(h, 1)
    shares.left[0, 0], shares.left[0, 1], shares.left[0, 2] = 0, -1, 0
    shares.words[NODES], shares.words[teams.PAIRS] = 1, 1 if can else 0


@kernel
def _sum_pairs(layout, nodes, histograms, shares):
    """Before the new pairs are summed. Returns the number of chunks."""
    words, node, total = shares.words, nodes.node, 0
    for i in range(words[teams.PAIRS]):
        total += node[shares.left[i, 0], END] - node[shares.left[i, 0], BEGIN]
        for part in range(shares.shared.shape[1]):
            shares.shared[i, part] = -1
    t = layout.features.shape[0]
    words[WORK] += total * t
    parts = _divide(total, max(ENTRIES_PER_CHUNK // t, 1), histograms.spare.shape[0], shares)
    return parts * (shares.groups.shape[0] - 1)


@kernel
def _choose_nodes(leaf_wise, level, nodes, limits, histograms, words):
    """The nodes to split next, into ``nodes.chosen``. Returns how many; of an oblivious tree the whole level, or 0.

    Leaves that will never be split give their slots back, and those that hardly will if there is no other.
    """
    n_nodes = words[NODES]
    room = limits.max_leaves - (n_nodes + 1) // 2
    if level is not None:
        return next_level.choose_whole(nodes.node, n_nodes, nodes.gain, room, nodes.chosen)
    if not leaf_wise:
        return partition.choose(nodes.node, n_nodes, nodes.gain, room, nodes.chosen)
    max_splits, order = limits.max_leaves - 1, np.empty(n_nodes, np.int64)
    _, count, certain = best_first.foresee(nodes.node, n_nodes, nodes.gain, max_splits, order, nodes.chosen)
    words[SPLITS], wanted, slots = certain, nodes.chosen[:count], histograms.slots
    best_first.close_others(nodes.node, n_nodes, wanted, slots)
    count = min(count, best_first.at_once(max_splits, certain))
    if histograms.of.shape[0] >= limits.most_slots:
        best_first.free_last(nodes.node, wanted, count, slots)
    return count


@kernel
def _keep_first(nodes, words):
    """Number the nodes of a leaf-wise tree by its splits."""
    n_nodes, splits, size = words[NODES], words[SPLITS], 2 * words[SPLITS] + 1
    order = np.empty(n_nodes, np.int64)
    best_first.foresee(nodes.node, n_nodes, nodes.gain, splits, order, nodes.chosen)
    node, gain = np.empty((size, nodes.node.shape[1]), np.int64), np.empty(size)
    left_set = np.empty((size, 8), np.uint32)
    best_first.renumber(nodes.node[:n_nodes], nodes.gain, nodes.left_set, order[:splits], node, gain, left_set)
    for v in range(size):
        nodes.gain[v] = gain[v]
        for column in range(node.shape[1]):
            nodes.node[v, column] = node[v, column]
        for word in range(8):
            nodes.left_set[v, word] = left_set[v, word]
    words[NODES] = size


@kernel
def _add_children(limits, criterion, nodes, histograms, shares, counts):
    """The children of the chosen nodes, and the new pairs."""
    words = shares.words
    child_limits = ChildLimits(limits.max_depth, limits.least_rows, criterion.rule[1], criterion.units[1])
    words[NODES], words[teams.PAIRS] = partition.add_children(
        nodes.chosen[: words[COUNT]], nodes.node, words[NODES], histograms.slots, counts, child_limits, shares.left
    )


@kernel
def _next_level(leaf_wise, level, layout, limits, histograms, criterion, nodes, shares):
    """The next step of the tree, as ``_advance``: new pairs are summed, or else nodes are split, or rows settled."""
    words, node = shares.words, nodes.node
    max_stretches = shares.counts.shape[0]
    while True:
        words[STEP] = RESUMED
        if words[teams.PAIRS] > 0:
            if words[WORK] > limits.most_work:
                return LONG
            words[STEP] = BUILD
            return _sum_pairs(layout, nodes, histograms, shares)
        count = _choose_nodes(leaf_wise, level, nodes, limits, histograms, words)
        words[COUNT] = count
        if count == 0:
            break
        words[DEEPER] = partition.count_above(node, nodes.chosen[:count], limits.max_depth - 1)
        if words[DEEPER] > histograms.slots[0] or words[NODES] + 2 * count > node.shape[0]:
            return NO_ROOM
        if words[DEEPER] > 0:
            words[STEP] = SORT
            return _divide(partition.rows_in(node, nodes.chosen[:count]), ROWS_PER_CHUNK, max_stretches, shares)
        shares.counts[0, :count] = 0  # the rows of the last level's nodes stay where they are
        _add_children(limits, criterion, nodes, histograms, shares, shares.counts[:1])
    if leaf_wise:
        _keep_first(nodes, words)
    words[STEP], words[COUNT] = SETTLE, partition.to_settle(node, words[NODES], limits.max_depth, nodes.chosen)
    shares.counts[:, : words[COUNT]] = 0
    return _divide(node[0, END] - node[0, BEGIN], ROWS_PER_CHUNK, max_stretches, shares)


@kernel
def _advance(leaf_wise, kinds, level, layout, limits, histograms, criterion, nodes, gradients, shares):
    """End a step, and begin the next one. Returns the number of its chunks, or why the call ends."""
    words, max_stretches = shares.words, shares.counts.shape[0]
    step, count, parts = words[STEP], words[COUNT], words[STRETCHES]
    if step == NOTHING:
        words[STEP] = EXTENTS
        chunks = _divide(gradients.found.shape[1], 1, max_stretches, shares)
    elif step == EXTENTS:
        words[STEP] = PACK
        chunks = _divide(gradients.g.shape[0], 4 * ROWS_PER_CHUNK, max_stretches, shares)
        if not _scale(criterion, gradients):
            chunks = NOT_FINITE
    elif step == BUILD:
        words[STEP] = SEARCH
        chunks = shares.bounds.shape[0] - 1
        if level is not None:
            words[COUNT] = levels.level_of(shares.left[: words[teams.PAIRS]], nodes.node, histograms.slots, level)
    elif step == SORT:
        words[STEP] = COPY
        chunks = parts
    elif step == SETTLE:
        partition.bound_last_level(nodes.node[: words[NODES]], nodes.chosen[:count], shares.counts[:parts])
        chunks = FINISHED
    else:
        if step == PACK:
            _make_root(limits, criterion, nodes, gradients, shares)
        elif step == SEARCH:
            if level is None:
                splits = Splits(shares.gains, shares.splits, shares.left_sets)
                split.pick(shares.left[: words[teams.PAIRS]], nodes, layout, splits, histograms.slots)
            else:
                levels.share_best(
                    level[:count], kinds, nodes, layout, histograms, criterion, shares.gains[0], shares.splits[0],
                    shares.left_sets[0], np.empty(0, np.float64),
                )  # fmt: skip
            words[teams.PAIRS] = 0
        elif step == COPY:
            _add_children(limits, criterion, nodes, histograms, shares, shares.counts[:parts])
        chunks = _next_level(leaf_wise, level, layout, limits, histograms, criterion, nodes, shares)
    return chunks


@kernel
def _next_chunk(
    role, leaf_wise, kinds, level, layout, limits, histograms, criterion, nodes, gradients, shares
):  # fmt: skip
    """The next chunk for this thread; the leader sees to it that there are some. Negative at the end of the call."""
    words = shares.words
    if role == HELP:
        return teams.wait_for_chunk(words)
    chunk = teams.take(words)
    while chunk < 0:
        teams.wait_for_others(words, words[teams.OFFERED])
        chunks = _advance(leaf_wise, kinds, level, layout, limits, histograms, criterion, nodes, gradients, shares)
        if chunks < 0:
            teams.end(words)
            return chunks
        teams.offer(words, chunks, words[teams.PAIRS])
        words[teams.OFFERED] += chunks
        chunk = teams.take(words)
    return chunk


@kernel
def grow(
    role, leaf_wise, kinds, level, bounds, by_node, layout, limits, columns, rows, histograms, criterion, nodes,
    gradients, leaf_of_row, shares,
):  # fmt: skip
    """LEAD: grow the tree, until it is finished or there is no room for it. HELP: chunks of the leader's call.

    leaf_wise: leaves are split by their gain, else level by level. kinds: those of the layout, or None if none is
    categorical. level: (v,) int64 for the nodes of a level of an oblivious tree, None for other trees. bounds: the
    bounds and directions of ``monotone_split.search``, or None; by_node: as for ``split.search``, or (0, 0): both of
    the pairs that are new when the call begins. leaf_of_row: see ``settle_rows``. The rest are the fields of the
    records of their names, as plain tuples. ``criterion.units``, the fifth number of its rule, the root and the list of
    rows are written, too.

    Returns why the call has ended. The words say how many nodes there are, and for how many more there is no room.
    """
    nodes, gradients, shares = NodeArrays(*nodes), TreeGradients(*gradients), Shares(*shares)
    of_rows, units, limits = RowArrays(*rows), Criterion(*criterion).units, GrowthLimits(*limits)
    words, node, chosen = shares.words, nodes.node, nodes.chosen
    while True:
        chunk = _next_chunk(
            role, leaf_wise, kinds, level, HistogramLayout(*layout), limits, HistogramArrays(*histograms),
            Criterion(*criterion), nodes, gradients, shares,
        )  # fmt: skip
        if chunk < 0:
            return chunk
        step, pairs, count, parts = words[STEP], words[teams.PAIRS], words[COUNT], words[STRETCHES]
        groups = shares.groups.shape[0] - 1 if step == BUILD else 1  # of features; the small stretches of all come last
        part = chunk // groups
        group = chunk - part * groups
        first, last = shares.stretches[part], shares.stretches[part + 1]
        if step == SEARCH:
            if level is not None:
                shared_search.search(
                    layout, kinds, shares.left[:pairs], shares.shared, level[:count], node, histograms, criterion,
                    shares.bounds[chunk], shares.bounds[chunk + 1], np.empty(0, np.bool_), np.empty(0, np.int64),
                    shares.gains[0], shares.splits[0], shares.left_sets[0], np.empty(0, np.float64),
                )  # fmt: skip
            elif bounds is not None:
                monotone_split.search(
                    bounds[0], bounds[1], layout, kinds, shares.left[:pairs], shares.shared, node, histograms,
                    criterion, shares.bounds[chunk], shares.bounds[chunk + 1], True, by_node,
                    np.empty((0, 0), np.int64), (shares.gains, shares.splits, shares.left_sets),
                )  # fmt: skip
            else:
                split.search(
                    layout, kinds, shares.left[:pairs], shares.shared, node, histograms, criterion,
                    shares.bounds[chunk], shares.bounds[chunk + 1], True, by_node, np.empty((0, 0), np.int64),
                    (shares.gains, shares.splits, shares.left_sets),
                )  # fmt: skip
        elif step == BUILD:
            line = histogram.build_some(
                rows, layout, node, shares.left[:pairs], histograms, part, first, last, shares.groups[group],
                shares.groups[group + 1],
            )  # fmt: skip
            if line >= 0:
                shares.shared[line, part] = part
        elif step == SORT:
            partition.sort_stretches(
                ColumnArrays(*columns), of_rows.rows, of_rows.scratch, chosen[:count], node, nodes.left_set, first,
                last, shares.counts[part],
            )  # fmt: skip
        elif step == COPY:
            partition.copy_stretches(
                chosen[:count], node, of_rows.rows, of_rows.scratch, shares.stretches, part, shares.counts[:parts]
            )
        elif step == SETTLE:
            partition.settle_rows(
                columns, of_rows.rows, chosen[:count], node, nodes.left_set, first, last, leaf_of_row,
                shares.counts[part],
            )  # fmt: skip
        elif step == EXTENTS:
            fixed_point.extents(gradients.g, gradients.multiplicity, first, last, gradients.found[0])
            fixed_point.extents(gradients.h, gradients.multiplicity, first, last, gradients.found[1])
        else:
            scale_g, scale_h = 1.0 / units[0], 1.0 / units[1]
            fixed_point.pack(
                gradients.g, gradients.h, gradients.multiplicity, scale_g, scale_h, first, last, of_rows.packed,
                gradients.totals[part],
            )  # fmt: skip
            for i in range(first, last):
                of_rows.rows[np.uint64(i)] = i
        teams.finish_chunk(words)
