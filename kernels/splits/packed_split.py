"""The best cut of a numeric feature from a packed histogram: what ``split`` finds, in less than half its time.

Sums of packed pairs are packed pairs, so the running sums of g and h are one addition a bin. And most cuts need no
exact gain: scores in float32, four times as fast as those in float64, tell which few of them may be the best. In a node
of few rows most cells are empty, and cuts behind them are left out.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.vector import (
    EIGHT,
    LANES,
    SIXTEEN,
    at_least,
    cut_scores,
    not_zero,
    running_sums,
    trailing_zeros,
)
from gpuboost.kernels.splits.extra_trees import cut_between
from gpuboost.kernels.splits.gain import NOISE, score
from gpuboost.kernels.splits.monotone_split import best_within

ROOM = 258  # numbers that ``running`` and ``about`` have room for: whole lines of at most 255 cuts, and one more
MOST_RIDGE = 2.0**62  # units of h: with a larger one, scores could be too small for float32
FEWER = 3  # times fewer rows than cuts: then only the cells that hold rows are looked at
SURELY = np.float32(1.0 - 2.0**-18)  # a float32 score is off by at most 13 roundings, of 2**-24 each
_LOW = np.int64(0xFFFF_FFFF)


@kernel
def least_units(unit_h, least_h):
    """The fewest units of h, at least 1, that a child may have; 2**32 if none are enough."""
    if not least_h < unit_h * 2.0**32:
        return np.int64(1) << 32
    least = max(np.int64(least_h / unit_h), 1)
    while least * unit_h < least_h:
        least += 1
    while least > 1 and (least - 1) * unit_h >= least_h:
        least -= 1
    return least


@kernel
@inlined
def estimate(running, cuts, shift, total, least, ridge, about):
    """about[b]: the score of both sides of a cut in units of g^2 / h, to five digits; 0 if it is not allowed.

    Returns the largest. No number reaches 2**126. The cuts that fill up the last line leave the right side no h.
    """
    lines = (cuts + SIXTEEN - 1) // SIXTEEN
    for b in range(cuts, lines * SIXTEEN):
        running[b] = total - shift
    span = np.uint32((total & _LOW) - 2 * least)
    return cut_scores(running.ctypes.data, lines, shift, total, np.uint32(least), span, ridge, about.ctypes.data)


@kernel
@inlined
def _best(running, cuts, shift, total, least, units, ridge, parent, about):
    """The gain and the place of the best allowed cut, the first of equals; -1.0 and 0 if there is none."""
    best, cut = -1.0, 0
    top = estimate(running, cuts, shift, total, least, np.float32(ridge / units[1]), about)
    if not top > np.float32(0.0):  # then no cut gains
        return best, cut
    enough, address = top * SURELY, about.ctypes.data
    for line in range(0, cuts, LANES):
        may = at_least(address + 4 * line, enough)
        if cuts - line < LANES:
            may &= (np.uint64(1) << np.uint64(cuts - line)) - np.uint64(1)
        while may:
            b = line + np.int64(trailing_zeros(may))
            may &= may - np.uint64(1)
            left = running[b] + shift
            right = total - left
            gain = (
                score((left >> 32) * units[0], (left & _LOW) * units[1], ridge)
                + score((right >> 32) * units[0], (right & _LOW) * units[1], ridge)
            ) - parent
            if gain > best:
                best, cut = gain, b
    return best, cut


@kernel
@inlined
def sum_all(stored, running):
    """running[b]: the sum of cells 0 .. b."""
    lines = stored.size // EIGHT
    running_sums(stored.ctypes.data, lines, running.ctypes.data)
    sum_so_far = running[lines * EIGHT - 1] if lines > 0 else np.int64(0)
    for b in range(lines * EIGHT, stored.size):
        sum_so_far += stored[b]
        running[b] = sum_so_far


@kernel
@inlined
def sum_occupied(stored, running, places):
    """The same of the first cell and those that are not 0 alone; places: their bins. Returns how many they are.

    stored: at least LANES cells. A cut behind an empty bin parts the rows as the cut before it does, and comes second.
    """
    count, sum_so_far, done, base = 0, np.int64(0), 0, stored.ctypes.data
    while done < stored.size:
        first = min(done, stored.size - LANES)  # the last line overlaps the one before
        occupied = (not_zero(base + 8 * first) >> np.uint64(done - first)) << np.uint64(done - first)
        if done == 0:
            occupied |= np.uint64(1)
        while occupied:
            b = first + np.int64(trailing_zeros(occupied))
            occupied &= occupied - np.uint64(1)
            sum_so_far += stored[b]
            running[count], places[count] = sum_so_far, b
            count += 1
        done += LANES
    return count


@kernel
@inlined
def best_cut(own, begin, n_bins, total, parent, least, units, rule, rows, running, about, places, out):
    """The best cut of one feature of a packed node: gain, bin, missing_left, left g and left h as ``split`` has them.

    own: its histogram, the feature's cells from ``begin`` on; total: the packed sums of all its rows; parent: their
    score; least: see ``least_units``; units, rule and out as in ``split``; rows: the number of its rows, or more.
    running and places (ROOM,) int64 and about (ROOM,) float32 are scratch.
    """
    ridge, total_h, missing = rule[0], total & _LOW, own[begin + n_bins]
    cuts = n_bins if missing != 0 else n_bins - 1
    if cuts < 1 or total_h < 2 * least:
        return 0.0
    stored, some, behind = own[begin : begin + cuts], cuts >= LANES and FEWER * rows < cuts, cuts
    if some:
        cuts = sum_occupied(stored, running, places)
    else:
        sum_all(stored, running)
    best, cut = _best(running, cuts, np.int64(0), total, least, units, ridge, parent, about)
    left, missing_left = running[cut], 0
    if missing != 0 and behind > 1:
        if not some or places[cuts - 1] == behind - 1:
            cuts -= 1
        other_best, other = _best(running, cuts, missing, total, least, units, ridge, parent, about)
        if other_best > best or (other_best == best and other < cut):
            best, cut, left, missing_left = other_best, other, running[other] + missing, 1
    if not best > max(rule[2], NOISE * parent):
        return 0.0
    out[0], out[1], out[2], out[3] = places[cut] if some else cut, missing_left, left >> 32, left & _LOW
    if missing == 0:  # none seen here: a missing value follows the heavier child
        out[1] = 1 if out[3] > total_h - out[3] else 0
    return best


@kernel
@inlined
def _best_between(own, begin, first, last, shift, total, parent, least, units, rule, rows, within, running, about,
                  places):  # fmt: skip
    """The gain, the bin and the packed left sums of the best of the cuts behind bins first .. last; -1.0 if none.

    shift: packed sums of the missing values, if they go left. The rest as for ``best_counted_cut``.
    """
    for c in range(begin, begin + first):
        shift += own[c]
    stored, cuts = own[begin + first : begin + last + 1], last - first + 1
    some = cuts >= LANES and FEWER * rows < cuts
    if some:
        cuts = sum_occupied(stored, running, places)
    else:
        sum_all(stored, running)
    if within is None:  # decided when this is compiled
        gain, cut = _best(running, cuts, shift, total, least, units, rule[0], parent, about)
    else:
        gain, cut = best_within(running, cuts, shift, total, least, units, rule[0], within, about)
    return gain, first + (places[cut] if some else cut), running[cut] + shift


@kernel
@inlined
def best_counted_cut(own, counts, begin, n_bins, total, parent, least, units, rule, rows, within, running, about,
                     places, out):  # fmt: skip
    """``best_cut`` where each side needs rule[3] rows, or leaf values have bounds.

    counts: numbers of rows by cell, (0,) if rows do not count; rows: all of the node. within: see ``best_within``; None
    if there are no bounds. The more bins go left, the more rows do. So the cuts that leave enough rows on both sides
    are next to each other.
    """
    total_h, missing, counted, missing_rows = total & _LOW, own[begin + n_bins], counts.shape[0] > 0, np.int64(0)
    if counted:
        missing_rows = np.int64(counts[begin + n_bins])
    some_missing, least_rows = missing != 0 or missing_rows != 0, np.int64(rule[3])
    cuts = n_bins if some_missing else n_bins - 1
    if cuts < 1 or total_h < 2 * least or (counted and rows < 2 * least_rows):
        return 0.0
    best, cut, left, missing_left = -1.0, 0, np.int64(0), 0
    for side in range(2 if some_missing and cuts > 1 else 1):
        end = cuts - side
        first, last = 0, end - 1
        if counted:
            lefts = side * missing_rows + counts[begin]
            while first < end and lefts < least_rows:
                first += 1
                lefts += counts[begin + first]
            last, rights = n_bins - 1, (1 - side) * missing_rows
            while last >= first and (last >= end or rights < least_rows):
                rights += counts[begin + last]
                last -= 1
        if last < first:
            continue
        shift = missing if side == 1 else np.int64(0)
        other_best, other, other_left = _best_between(
            own, begin, first, last, shift, total, parent, least, units, rule, rows, within, running, about, places
        )
        if other_best > best or (other_best == best and other < cut):
            best, cut, left, missing_left = other_best, other, other_left, side
    floor = max(rule[2], NOISE * parent) if within is None else within[5]
    if not best > floor:
        return 0.0
    out[0], out[1], out[2], out[3] = cut, missing_left, left >> 32, left & _LOW
    if not some_missing:  # none seen here: a missing value follows the heavier child
        out[1] = 1 if out[3] > total_h - out[3] else 0
    return best


@kernel
@inlined
def best_random_cut(own, counts, begin, n_bins, word, total, parent, units, rule, rows, out):
    """The same of the one cut that a word draws: see ``extra_trees``. counts: (0,) if rows do not count."""
    total_g, total_h, missing = total >> 32, total & _LOW, own[begin + n_bins]
    counted, least_rows, first, last = counts.shape[0] > 0, np.int64(rule[3]), np.int64(0), np.int64(n_bins - 1)
    while first < n_bins and own[begin + first] == 0 and not (counted and counts[begin + first] != 0):
        first += 1
    while last > first and own[begin + last] == 0 and not (counted and counts[begin + last] != 0):
        last -= 1
    some_missing = missing != 0 or (counted and counts[begin + n_bins] != 0)
    cut = cut_between(word, first, last, some_missing) if first < n_bins else np.int64(-1)
    if cut < 0:
        return 0.0
    values, lefts, best = np.int64(0), np.int64(0), -1.0
    for c in range(begin, begin + cut + 1):
        values += own[c]
        lefts += counts[c] if counted else 0
    for side in range(2 if some_missing and cut < n_bins - 1 else 1):
        left = values + side * missing
        lg, lh = left >> 32, left & _LOW
        rg, rh = total_g - lg, total_h - lh
        low, high = lh * units[1], rh * units[1]
        allowed = lh > 0 and rh > 0 and low >= rule[1] and high >= rule[1]
        if counted:
            here = lefts + side * counts[begin + n_bins]
            allowed = allowed and here >= least_rows and rows - here >= least_rows
        gain = (score(lg * units[0], low, rule[0]) + score(rg * units[0], high, rule[0])) - parent
        if allowed and gain > best:
            best, out[0], out[1], out[2], out[3] = gain, cut, side, lg, lh
    if not best > max(rule[2], NOISE * parent):
        return 0.0
    if not some_missing:  # none seen here: a missing value follows the heavier child
        out[1] = 1 if out[3] > total_h - out[3] else 0
    return best
