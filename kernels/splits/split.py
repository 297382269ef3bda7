"""Split search: the split of each node that gains most. Definition: ``reference.splits.best_split``.

Sums are integers; a gain is formed from them in float64 by one fixed sequence of operations, so it has one value on
every machine. Ties: the lowest feature, then the lowest bin, then missing values right.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
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
from gpuboost.kernels.common.records import (
    Criterion,
    HistogramArrays,
    HistogramLayout,
    NodeArrays,
    NodeSums,
    SearchScratch,
    Splits,
)
from gpuboost.kernels.histograms.cells import complete, next_features, read, read_running
from gpuboost.kernels.splits.categories import best_set
from gpuboost.kernels.splits.cuts import general_cut, no_bit, only_cut
from gpuboost.kernels.splits.extra_trees import allow_only, random_cut
from gpuboost.kernels.splits.gain import score
from gpuboost.kernels.splits.packed_split import MOST_RIDGE, ROOM, best_cut, least_units

_LOW = np.int64(0xFFFF_FFFF)


@kernel
def search(layout, kinds, new_pairs, shared, node, histograms, criterion, first, last, general, by_node, words,
           results):  # fmt: skip
    """Features [first, last) of every new pair: complete both histograms, then look for the best splits.

    layout: HistogramLayout; histograms: HistogramArrays; criterion: Criterion; results: Splits, what ``general_cut``
    and ``best_set`` say. kinds (t,) uint8: those of the layout; None if no feature is categorical. new_pairs (p, 3)
    int64 and shared (p, threads) int64: see ``Level``; node (v, COLUMNS) int64.
    general: None where ``best_cut`` will do for every numeric feature: nodes are packed, rows do not count, all cuts
    compete, a leaf has its own value, and reg_lambda is below MOST_RIDGE units; else True.
    by_node (2p, t) bool: the features by which each node may be split, (0, 0) for all. words (2p, t) int64: see
    ``extra_trees.draw_words``, (0, 0) if all cuts compete.
    """
    layout, histograms = HistogramLayout(*layout), HistogramArrays(*histograms)
    criterion, results = Criterion(*criterion), Splits(*results)
    of, counts, starts, root = histograms.of, histograms.counts, layout.starts, criterion.root
    scratch = SearchScratch(
        np.empty(257, np.int64), np.empty(257, np.int64), np.empty(257 if counts.shape[1] > 0 else 0, np.int64),
        np.empty(257, np.float64), np.empty(ROOM, np.int64), np.empty(ROOM, np.float32), np.empty(ROOM, np.int64),
        np.empty(8, np.uint32),
    )  # fmt: skip
    least = least_units(criterion.units[1], criterion.rule[1])
    for i in range(new_pairs.shape[0]):
        begin = first
        while begin < last:
            end = next_features(starts, begin, last)
            complete(i, histograms, shared, new_pairs, node, layout, begin, end)
            for side in range(2):
                v, line = new_pairs[i, side], 2 * i + side
                if v >= 0 and node[v, STATE] == NEW:
                    slot, rows = node[v, SLOT], node[v, END] - node[v, BEGIN]
                    sums = NodeSums(rows, rows <= histograms.packed_rows, node[v, SUM_G], node[v, SUM_H])
                    _search_node(
                        of[slot], counts[slot] if counts.shape[1] > 0 else counts[0], sums, layout, kinds, criterion,
                        least, begin, end, scratch, general, root if v == 0 else root[:0],
                        by_node[line if by_node.shape[0] > 0 else 0 : line + 1],
                        words[line if words.shape[0] > 0 else 0 : line + 1], results, line,
                    )  # fmt: skip
            begin = end


@kernel
@inlined
def _search_node(
    cells, counts, sums, layout, kinds, criterion, least, first, last, scratch, general, bits, may, words, results, line
):
    """Features [first, last) of one node whose histogram is complete there, into one line of the results.

    sums: NodeSums; scratch: SearchScratch; least: see ``least_units``; bits (t, 8) uint32: the cuts that compete,
    (0, 8) for all; may (1, t) bool: the features that do, (0, t) for all; words (1, t), (0, t) for all cuts.
    """
    g, h, n, starts, n_bins = scratch.g, scratch.h, scratch.n, layout.starts, layout.n_bins
    rows, is_packed, total_g, total_h = sums.rows, sums.is_packed, sums.g, sums.h
    gains, splits, left_sets = results.gains[line], results.splits[line], results.left_sets[line]
    units, rule = criterion.units, criterion.rule
    unit_g, unit_h, ridge, least_h, least_gain = units[0], units[1], rule[0], rule[1], rule[2]
    restricted, every = bits.shape[0] > 0, scratch.bits
    quick = True
    if general is not None:
        quick = is_packed and n.shape[0] == 0 and not restricted and rule[5] == 0.0 and ridge < MOST_RIDGE * unit_h
        quick = quick and words.shape[0] == 0
    total, parent = (total_g << 32) + total_h if is_packed else 0, score(total_g * unit_g, total_h * unit_h, ridge)
    for j in range(first, last):
        begin, size = np.int64(starts[j]), np.int64(starts[j + 1]) - np.int64(starts[j])
        if (restricted and no_bit(bits[j])) or (may.shape[0] > 0 and not may[0, j]):
            gains[j] = 0.0
            continue
        is_categorical = False
        if kinds is not None:  # decided when this is compiled: data without categories need not wait for their kernel
            is_categorical = kinds[j] == 1
        if size == 3 and is_packed and not is_categorical and n.shape[0] == 0 and cells[begin + 2] == 0:
            lg, lh = cells[begin] >> 32, cells[begin] & _LOW
            gains[j] = only_cut(
                lg, lh, total_g, total_h, parent, unit_g, unit_h, ridge, least_h, least_gain, rule[5]
            )  # fmt: skip
            splits[j, 0], splits[j, 1], splits[j, 2], splits[j, 3] = 0, 1 if lh > total_h - lh else 0, lg, lh
            continue
        if quick and not is_categorical:
            gains[j] = best_cut(
                cells, begin, size - 1, total, parent, least, units, rule, rows, scratch.running, scratch.about,
                scratch.places, splits[j],
            )  # fmt: skip
            continue
        for c in range(size if n.shape[0] > 0 else 0):  # a slice would bring numba's text of its error: 2 s to compile
            n[c] = counts[begin + c]
        if kinds is not None and is_categorical:
            read(cells, is_packed, begin, size, g, h)
            gains[j] = best_set(
                g, h, n, n_bins[j], (total_g, total_h, rows), units, rule,
                words[0, j] if words.shape[0] > 0 else np.int64(-1), splits[j], left_sets[j],
            )  # fmt: skip
        elif general is not None:  # decided when this is compiled, too
            read_running(cells, is_packed, begin, size - 1, g, h)
            if words.shape[0] > 0:
                allow_only(random_cut(words[0, j], g, h, n, n_bins[j]), every)
            gains[j] = general_cut(
                g, h, n, n_bins[j], total_g, total_h, rows, units, rule, restricted or words.shape[0] > 0,
                bits[j] if restricted else every, scratch.gains, splits[j],
            )  # fmt: skip


@kernel
def pick(new_pairs, nodes, layout, results, slots):
    """Over the features: the first of the largest gains becomes the node's split, or the node is closed.

    nodes: NodeArrays; layout: HistogramLayout; results: Splits. slots: a stack of free slots, its height first; a node
    that cannot be split gives its own back.
    """
    nodes, layout, results = NodeArrays(*nodes), HistogramLayout(*layout), Splits(*results)
    node, gain, left_set = nodes.node, nodes.gain, nodes.left_set
    gains, splits, left_sets = results.gains, results.splits, results.left_sets
    for i in range(new_pairs.shape[0]):
        for side in range(2):
            v = new_pairs[i, side]
            if v < 0:
                continue
            line, best = 2 * i + side, -1
            if node[v, STATE] == NEW:
                for j in range(layout.features.shape[0]):
                    if gains[line, j] > gain[v]:
                        gain[v] = gains[line, j]
                        best = j
            if best < 0:
                node[v, STATE] = CLOSED
                slots[0] += 1
                slots[slots[0]] = node[v, SLOT]
                continue
            node[v, STATE] = OPEN
            node[v, FEATURE] = layout.features[best]
            node[v, BIN], node[v, MISSING_LEFT] = splits[line, best, 0], splits[line, best, 1]
            node[v, LEFT_G], node[v, LEFT_H] = splits[line, best, 2], splits[line, best, 3]
            if layout.kinds[best] == 1:
                for word in range(8):
                    left_set[v, word] = left_sets[line, best, word]
