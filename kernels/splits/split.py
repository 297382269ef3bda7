"""Split search: the split of each node that gains most. Definition: ``reference.splits.best_split``.

Sums are integers; a gain is formed from them in float64 by one fixed sequence of operations, so it has one value on
every machine. Ties: the lowest feature, then the lowest bin, then missing values right.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import (
    BEGIN,
    BIN,
    CLOSED,
    END,
    FEATURE,
    FRESH,
    LEFT_G,
    LEFT_H,
    MISSING_LEFT,
    OPEN,
    SLOT,
    STATE,
    SUM_G,
    SUM_H,
)
from gpuboost.kernels.histograms.cells import CELLS_AT_ONCE, complete, read, read_running
from gpuboost.kernels.splits.categories import best_set
from gpuboost.kernels.splits.cuts import general_cut, no_bit, only_cut
from gpuboost.kernels.splits.gain import score
from gpuboost.kernels.splits.narrow_split import MOST_RIDGE, ROOM, best_cut, least_units

_LOW = np.int64(0xFFFF_FFFF)


@kernel
def search(
    histograms, counts, spare, shared, fresh, node, starts, n_bins, kinds, defaults, units, rule, narrow_rows, first,
    last, general, root, by_node, gains, found, left_sets,
):  # fmt: skip
    """Features [first, last) of every fresh pair: complete both histograms, then look for the best splits.

    fresh (p, 3) int64: built node, its sibling or -1, and their parent. shared (p, threads) int64: lines of ``spare``
    that hold a part of the built node, or -1. kinds (t,) uint8: 1 if categorical; None if none is. defaults (t,)
    int64: bin of an absent entry, -1 if dense. counts (slots, n_cells) int32, or (1, 0) if a leaf may be one row.
    general: None where ``best_cut`` will do for every numeric feature: nodes are narrow, rows do not count, all cuts
    compete, a leaf has its own value, and reg_lambda is below MOST_RIDGE units; else True.
    root (t, 8) uint32: the cuts by which the root may be split, (0, 8) for all. by_node (2p, t) bool: the features by
    which each node may be, (0, 0) for all.
    gains (2p, t) float64, found (2p, t, 4) int64, left_sets (2p, t, 8) uint32: what ``general_cut`` and
    ``best_set`` say, lines 2i and 2i + 1 for the built node and the sibling of pair i.
    """
    n = np.empty(257 if counts.shape[1] > 0 else 0, np.int64)
    room = np.empty(257, np.int64), np.empty(257, np.int64), n, np.empty(257, np.float64)
    narrow_room = np.empty(ROOM, np.int64), np.empty(ROOM, np.float32)
    least = least_units(units[1], rule[1])
    for i in range(fresh.shape[0]):
        begin = first
        while begin < last:  # so many features at a time as have their cells, of three nodes, in the nearest cache
            end = begin + 1
            while end < last and starts[end] - starts[begin] < CELLS_AT_ONCE:
                end += 1
            complete(i, histograms, spare, shared, fresh, node, starts, defaults, narrow_rows, begin, end)
            for side in range(2):
                at = fresh[i, side]
                if at >= 0 and node[at, STATE] == FRESH:
                    slot, rows = node[at, SLOT], node[at, END] - node[at, BEGIN]
                    count = counts[slot] if counts.shape[1] > 0 else counts[0]
                    _search_node(
                        histograms[slot], rows <= narrow_rows, count, rows, node[at, SUM_G], node[at, SUM_H], starts,
                        n_bins, kinds, units, rule, least, begin, end, room, narrow_room, general,
                        root if at == 0 else root[:0],
                        by_node[2 * i + side if by_node.shape[0] > 0 else 0 : 2 * i + side + 1], gains[2 * i + side],
                        found[2 * i + side], left_sets[2 * i + side],
                    )  # fmt: skip
            begin = end


@kernel
def _search_node(cells, narrow, counts, rows, total_g, total_h, starts, n_bins, kinds, units, rule, least, first, last,
                 room, narrow_room, general, bits, may, gains, found, left_sets):  # fmt: skip
    """Features [first, last) of one node whose histogram is complete there.

    room, narrow_room: scratch arrays, for g, h, rows and gains, and for ``best_cut``; least: see ``least_units``.

    bits (t, 8) uint32: the cuts that compete, (0, 8) for all. may (1, t) bool: the features that do, (0, t) for all.
    """
    g, h, n, cut_gains = room
    running, about = narrow_room
    unit_g, unit_h, ridge, least_h, least_gain = units[0], units[1], rule[0], rule[1], rule[2]
    restricted, every = bits.shape[0] > 0, np.empty(8, np.uint32)
    quick = True
    if general is not None:
        quick = narrow and n.shape[0] == 0 and not restricted and rule[5] == 0.0 and ridge < MOST_RIDGE * unit_h
    total, parent = (total_g << 32) + total_h if narrow else 0, score(total_g * unit_g, total_h * unit_h, ridge)
    for j in range(first, last):
        begin, size = np.int64(starts[j]), np.int64(starts[j + 1]) - np.int64(starts[j])
        if (restricted and no_bit(bits[j])) or (may.shape[0] > 0 and not may[0, j]):
            gains[j] = 0.0
            continue
        is_categorical = False
        if kinds is not None:  # decided when this is compiled: data without categories need not wait for their kernel
            is_categorical = kinds[j] == 1
        if size == 3 and narrow and not is_categorical and n.shape[0] == 0 and cells[begin + 2] == 0:
            lg, lh = cells[begin] >> 32, cells[begin] & _LOW
            gains[j] = only_cut(
                lg, lh, total_g, total_h, parent, unit_g, unit_h, ridge, least_h, least_gain, rule[5]
            )  # fmt: skip
            found[j, 0], found[j, 1], found[j, 2], found[j, 3] = 0, 1 if lh > total_h - lh else 0, lg, lh
            continue
        if quick and not is_categorical:
            gains[j] = best_cut(cells, begin, size - 1, total, parent, least, units, rule, running, about, found[j])
            continue
        for c in range(size if n.shape[0] > 0 else 0):  # a slice would bring numba's text of its error: 2 s to compile
            n[c] = counts[begin + c]
        if kinds is not None and is_categorical:
            read(cells, narrow, begin, size, g, h)
            gains[j] = best_set(g, h, n, n_bins[j], (total_g, total_h, rows), units, rule, found[j], left_sets[j])
        elif general is not None:  # decided when this is compiled, too
            read_running(cells, narrow, begin, size - 1, g, h)
            gains[j] = general_cut(
                g, h, n, n_bins[j], total_g, total_h, rows, units, rule, restricted, bits[j] if restricted else every,
                cut_gains, found[j],
            )  # fmt: skip


@kernel
def pick(fresh, node, gain, left_set, features, kinds, gains, found, left_sets, slots):
    """Over the features: the first of the largest gains becomes the node's split, or the node is closed.

    slots: a stack of free slots, its height first; a node that cannot be split gives its own back.
    """
    for i in range(fresh.shape[0]):
        for side in range(2):
            at = fresh[i, side]
            if at < 0:
                continue
            line, best = 2 * i + side, -1
            if node[at, STATE] == FRESH:
                for j in range(features.shape[0]):
                    if gains[line, j] > gain[at]:
                        gain[at] = gains[line, j]
                        best = j
            if best < 0:
                node[at, STATE] = CLOSED
                slots[0] += 1
                slots[slots[0]] = node[at, SLOT]
                continue
            node[at, STATE] = OPEN
            node[at, FEATURE] = features[best]
            node[at, BIN], node[at, MISSING_LEFT] = found[line, best, 0], found[line, best, 1]
            node[at, LEFT_G], node[at, LEFT_H] = found[line, best, 2], found[line, best, 3]
            if kinds[best] == 1:
                for word in range(8):
                    left_set[at, word] = left_sets[line, best, word]
