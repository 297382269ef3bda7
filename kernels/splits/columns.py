"""Split search for wide sparse data: every column is read once for all nodes of a level, and no histogram is kept.

Where there are about as many cells as stored entries, most cells of a small node are empty, and clearing, subtracting
and searching them costs more than the entries themselves. So the entries of a column, sorted by bin, are passed in
order, each adding to the running left sum of its row's node; a cut is judged when its bin is complete. The same cuts
in the same order as ``split``: only cuts at bins that hold a row of the node differ in gain from the cut before.
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
    OPEN,
    STATE,
    SUM_H,
)

SURELY = 1.0 - 2.0**-40  # leaves room for the rounding of a few products
_LOW = np.int64(0xFFFF_FFFF)
_G, _H, _TOTAL_G, _TOTAL_H, _AT, _N, _TOTAL_N = 0, 1, 2, 3, 4, 5, 6


@kernel
def sort_by_bin(column_start, row, column_bin, first, last, out_row, out_bin):
    """The entries of columns [first, last), each column's sorted by bin, equal bins in the order of rows."""
    place = np.empty(257, np.int64)
    for f in range(first, last):
        begin, end = column_start[f], column_start[f + 1]
        place[:] = 0
        for e in range(begin, end):
            place[np.int64(column_bin[e]) + 1] += 1
        for b in range(256):
            place[b + 1] += place[b]
        for e in range(begin, end):
            b = np.int64(column_bin[e])
            out_row[begin + place[b]], out_bin[begin + place[b]] = row[e], b
            place[b] += 1


@kernel
def lines_of_rows(node, new_nodes, rows, line_of_row):
    """line_of_row[row] = the place in ``new_nodes`` of the row's node, -1 for rows of no such node."""
    line_of_row[:] = -1
    for line in range(new_nodes.shape[0]):
        v = new_nodes[line]
        for k in range(node[v, BEGIN], node[v, END]):
            line_of_row[rows[k]] = line


@kernel
def _gain(lg, lh, total_g, total_h, parent, best, unit_g, unit_h, ridge, least_h, signed):
    """The gain of a cut with these sums on its left, or -1 where it is surely below ``best``, as most cuts are.

    For those, products that need no division tell. All arguments are numbers: arrays would cost more than the sums.
    """
    rg, rh = total_g - lg, total_h - lh
    low, high = lh * unit_h, rh * unit_h
    if lh <= 0 or rh <= 0 or low < least_h or high < least_h:
        return -1.0
    if signed > 0.0:  # both leaves share one value
        sum_g = (lg - rg) * unit_g
        return sum_g * sum_g / (total_h * unit_h + ridge) - parent
    a, b, below, above = lg * unit_g, rg * unit_g, low + ridge, high + ridge
    if a * a * above + b * b * below < (best + parent) * (below * above) * SURELY:
        return -1.0
    return (a * a / below + b * b / above) - parent


@kernel
@inlined
def _enough(rows, total, least):
    """True if both sides of a cut have so many rows, of which one has ``rows``."""
    return rows >= least and total - rows >= least


@kernel
def search(column_start, row, column_bin, default, features, first, last, packed, line_of_row, totals, units, rule,
           may, gains, found):  # fmt: skip
    """Features [first, last) of the list, for all lines. There must be no missing values among the entries.

    Bins above the default one are passed from the top, summing the right side of each cut, those below it from the
    bottom, summing the left side: so the rows that have no entry need not be summed at all. Cuts are not met in the
    order of bins, so of equal gains within a feature the lower bin has to be asked for.

    may (l, t) bool: the features that compete for each line, (0, 0) for all. totals (l, 3) int64: g, h and number of
    rows of each line; gains (l,) float64 and found (l, 4) int64 (place in ``features``, bin, left g, left h) get the
    best, the first of equals; gains must come in as what a split has to exceed.
    """
    lines = totals.shape[0]
    unit_g, unit_h, ridge, least_h, signed = units[0], units[1], rule[0], rule[1], rule[5]
    least_rows = np.int64(rule[3])
    some_may_not = may.shape[0] > 0
    # What the loop reads and writes of a line lies in one cache line: sums, totals, bin, rows.
    state = np.zeros((lines, 8), np.int64)
    touched, parents = np.empty(lines, np.int64), np.empty(lines, np.float64)
    for line in range(lines):
        state[line, _TOTAL_G], state[line, _TOTAL_H], state[line, _AT] = totals[line, 0], totals[line, 1], -1
        state[line, _TOTAL_N] = totals[line, 2]
        g, h = totals[line, 0] * unit_g, totals[line, 1] * unit_h
        parents[line] = g * g / (h + ridge)
    for j in range(first, last):
        f = features[j]
        begin, end, zero = column_start[f], column_start[f + 1], np.int64(default[f])
        for from_top in (True, False):
            count, e = 0, end - 1 if from_top else begin
            while begin <= e < end:
                b = np.int64(column_bin[np.uint64(e)])
                if (b < zero) == from_top:
                    break
                at_row = np.uint64(row[np.uint64(e)])
                e += -1 if from_top else 1
                if line_of_row[at_row] < 0:
                    continue
                line = np.uint64(line_of_row[at_row])
                before = state[line, _AT]
                if before < 0:
                    touched[count] = line
                    count += 1
                    state[line, _G] = state[line, _H] = state[line, _N] = 0
                elif b != before:
                    g, h = state[line, _G], state[line, _H]
                    lg = state[line, _TOTAL_G] - g if from_top else g
                    lh = state[line, _TOTAL_H] - h if from_top else h
                    gain = _gain(
                        lg, lh, state[line, _TOTAL_G], state[line, _TOTAL_H], parents[line], gains[line], unit_g,
                        unit_h, ridge, least_h, signed,
                    )  # fmt: skip
                    cut = b if from_top else before
                    if some_may_not and not may[line, j]:
                        gain = -1.0
                    better = gain > gains[line] or (
                        gain == gains[line] and found[line, 0] == j and cut < found[line, 1]
                    )
                    if better and _enough(state[line, _N], state[line, _TOTAL_N], least_rows):
                        gains[line] = gain
                        found[line, 0], found[line, 1], found[line, 2], found[line, 3] = j, cut, lg, lh
                state[line, _AT] = b
                pair = packed[at_row]
                state[line, _G] += pair >> 32
                state[line, _H] += pair & _LOW
                state[line, _N] += 1
            for i in range(count):  # the last cut of each line: at the default bin, or below it
                line = np.uint64(touched[i])
                g, h = state[line, _G], state[line, _H]
                lg = state[line, _TOTAL_G] - g if from_top else g
                lh = state[line, _TOTAL_H] - h if from_top else h
                gain = _gain(
                    lg, lh, state[line, _TOTAL_G], state[line, _TOTAL_H], parents[line], gains[line], unit_g, unit_h,
                    ridge, least_h, signed,
                )  # fmt: skip
                cut = zero if from_top else state[line, _AT]
                if some_may_not and not may[line, j]:
                    gain = -1.0
                better = gain > gains[line] or (gain == gains[line] and found[line, 0] == j and cut < found[line, 1])
                if better and _enough(state[line, _N], state[line, _TOTAL_N], least_rows):
                    gains[line] = gain
                    found[line, 0], found[line, 1], found[line, 2], found[line, 3] = j, cut, lg, lh
                state[line, _AT] = -1


@kernel
def pick(new_nodes, node, gain, features, part_gains, part_found):
    """Over the threads' features, in order: the first of the largest gains becomes the node's split.

    part_gains (parts, line), part_found (parts, line, 4).
    """
    for line in range(new_nodes.shape[0]):
        v, best = new_nodes[line], -1
        for p in range(part_gains.shape[0]):
            if part_found[p, line, 0] >= 0 and part_gains[p, line] > gain[v]:
                gain[v], best = part_gains[p, line], p
        if best < 0:
            node[v, STATE] = CLOSED
            continue
        best_split = part_found[best, line]
        node[v, STATE], node[v, FEATURE], node[v, BIN] = OPEN, features[best_split[0]], best_split[1]
        node[v, LEFT_G], node[v, LEFT_H] = best_split[2], best_split[3]
        node[v, MISSING_LEFT] = 1 if best_split[3] > node[v, SUM_H] - best_split[3] else 0
