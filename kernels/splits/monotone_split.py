"""Split search where leaf values have bounds. Definition: ``reference.splits.best_split`` with ``NodeBounds``.

Monotonic constraints set bounds, and so does ``max_delta_step``; ``reg_alpha`` and path smoothing are here too. A
kernel of its own, so that other trees neither pass bounds nor compile code that reads them. ``bounds`` (v, 3): lowest
and highest leaf value below a node, and the node's own value, to which those below it are drawn.

``best_within`` finds the best cut of a packed node in a fraction of the time of ``best_held_cut``, as ``packed_split``
does: estimates in float32 tell which few cuts may be the best, and only these get exact gains. Here an estimate is
never below the score: it has a margin for all of its roundings.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.nodes import (
    BEGIN,
    END,
    FEATURE,
    LEFT,
    LEFT_G,
    LEFT_H,
    NEW,
    RIGHT,
    SLOT,
    STATE,
    SUM_G,
    SUM_H,
)
from gpuboost.kernels.common.records import Criterion, HistogramArrays, HistogramLayout, NodeSums, Splits
from gpuboost.kernels.common.vector import LANES, at_least, trailing_zeros, wide_vectors
from gpuboost.kernels.histograms.cells import complete, next_features, read, read_running, seen
from gpuboost.kernels.splits.categories import (
    MOST_CATEGORIES,
    SET_LAMBDA,
    next_candidate,
    rank_categories,
    settle_set,
)
from gpuboost.kernels.splits.cuts import no_bit
from gpuboost.kernels.splits.extra_trees import allow_only, place_of, random_cut
from gpuboost.kernels.splits.gain import (
    ALPHA,
    NOISE,
    SMOOTHING,
    score,
    score_of,
    score_within,
    smoothed_within,
    soft_threshold,
    value_within,
)

_LOW = np.int64(0xFFFF_FFFF)
_FARTHEST = 2.0**32  # values in units of g / h are nearer to 0; to clip there lowers no score
_ONE, _NONE, _MARGIN = np.float32(1.0), np.float32(0.0), np.float32(2.0**-16)
_REFUSED, _LEAST, _FAR_ABOVE = np.float32(-np.inf), np.int32(-(2**31)), np.float32(2.0**126)
_SIGN = np.int32(0x7FFF_FFFF)
BELOW = 1.0 - 2.0**-20  # a factor of more than the roundings of a number to float32


@kernel
def _value(g, h, ridge, low, high, smoothing, above):
    """Value of a side of a node; see ``value_within`` and ``smoothed_within``."""
    if smoothing > 0.0:
        return smoothed_within(g, h, ridge, low, high, smoothing, above)
    return value_within(g, h, ridge, low, high)


@kernel
def side_score(g, h, ridge, low, high, smoothing, above):
    """Twice the loss reduction of a side with its value; of the node itself, that of a side with all of its rows."""
    if smoothing > 0.0:
        return score_of(smoothed_within(g, h, ridge, low, high, smoothing, above), g, h + ridge)
    return score_within(g, h, ridge, low, high)


@kernel
def both_within(lg, lh, rg, rh, ridge, low, high, smoothing, above, direction):
    """Twice the loss reduction of two leaves with these G and H; -inf if they violate the constraint."""
    if direction != 0:
        left = _value(lg, lh, ridge, low, high, smoothing, above)
        if direction * (left - _value(rg, rh, ridge, low, high, smoothing, above)) > 0.0:
            return -np.inf
    left = side_score(lg, lh, ridge, low, high, smoothing, above)
    return left + side_score(rg, rh, ridge, low, high, smoothing, above)


@kernel
def inherit(new_pairs, node, directions, units, ridge, alpha, smoothing, bounds):
    """Bounds of both nodes of every new pair, from those of their parents. directions (d,): of all features.

    A root's are there before, but for its value: see ``split.search`` for the pairs.
    """
    for i in range(new_pairs.shape[0]):
        v = new_pairs[i, 2]
        if new_pairs[i, 1] < 0:
            g, h = soft_threshold(node[0, SUM_G] * units[0], alpha), node[0, SUM_H] * units[1]
            bounds[0, 2] = value_within(g, h, ridge, bounds[0, 0], bounds[0, 1])
            continue
        low, high, left, right = bounds[v, 0], bounds[v, 1], node[v, LEFT], node[v, RIGHT]
        for child in (left, right):
            bounds[child, 0], bounds[child, 1] = low, high
        direction = directions[node[v, FEATURE]]
        if direction == 0 and not smoothing > 0.0:
            continue
        lg, lh = node[v, LEFT_G], node[v, LEFT_H]
        rg, rh = node[v, SUM_G] - lg, node[v, SUM_H] - lh
        of_node = ridge, low, high, smoothing, bounds[v, 2]
        a = _value(soft_threshold(lg * units[0], alpha), lh * units[1], *of_node)
        b = _value(soft_threshold(rg * units[0], alpha), rh * units[1], *of_node)
        bounds[left, 2], bounds[right, 2] = a, b
        if direction != 0:
            below, above = (left, right) if direction > 0 else (right, left)
            bounds[below, 1] = bounds[above, 0] = (a + b) / 2.0


@kernel
def best_held_cut(g, h, n, n_bins, totals, units, rule, bounds, direction, restricted, bits, out):
    """See ``cuts.general_cut``; bounds (3,): the node's, direction: the feature's."""
    total_g, total_h, total_n = totals
    unit_g, unit_h, ridge, least_h, least_n = units[0], units[1], rule[0], rule[1], np.int64(rule[3])
    missing_g, missing_h = g[n_bins], h[n_bins]
    missing_n = n[n_bins] if n.shape[0] > 0 else np.int64(0)
    some_missing = seen(g, h, n, n_bins)
    cuts = n_bins if some_missing else n_bins - 1
    alpha, of_node = rule[ALPHA], (ridge, bounds[0], bounds[1], rule[SMOOTHING], bounds[2])
    parent = side_score(soft_threshold(total_g * unit_g, alpha), total_h * unit_h, *of_node)
    floor = max(rule[2], NOISE * max(abs(parent), score(total_g * unit_g, total_h * unit_h, ridge)))
    best, ln = floor, np.int64(0)
    for b in range(cuts):
        if n.shape[0] > 0:
            ln += n[b]
        if restricted and not (bits[b >> 5] >> np.uint32(b & 31)) & np.uint32(1):
            continue
        for side in range(2 if some_missing and b < n_bins - 1 else 1):
            lg, lh = g[b] + side * missing_g, h[b] + side * missing_h
            rg, rh = total_g - lg, total_h - lh
            if lh <= 0 or rh <= 0 or lh * unit_h < least_h or rh * unit_h < least_h:
                continue
            own_n = ln + side * missing_n
            if n.shape[0] > 0 and (own_n < least_n or total_n - own_n < least_n):
                continue
            left, right = soft_threshold(lg * unit_g, alpha), soft_threshold(rg * unit_g, alpha)
            sides = both_within(left, lh * unit_h, right, rh * unit_h, *of_node, direction)
            if sides - parent > best:
                best = sides - parent
                out[0], out[1], out[2], out[3] = b, side, lg, lh
    if not best > floor:
        return 0.0
    if not some_missing:  # none seen here: a missing value follows the heavier child
        out[1] = 1 if out[3] > total_h - out[3] else 0
    return best


@kernel
def best_held_set(g, h, n, n_bins, totals, units, rule, bounds, word, out, left_set):
    """See ``categories.best_set``. A categorical feature has no direction, but a node may have bounds."""
    unit_g, unit_h = units[0], units[1]
    total_g, total_h, _ = totals
    order, single = rank_categories(g, h, n, n_bins, units, rule)
    m = order.shape[0]
    ridge = rule[0] if single else rule[0] + rule[SET_LAMBDA]
    alpha, of_node = rule[ALPHA], (ridge, bounds[0], bounds[1], rule[SMOOTHING], bounds[2])
    parent = side_score(soft_threshold(total_g * unit_g, alpha), total_h * unit_h, *of_node)
    floor = max(rule[2], NOISE * max(abs(parent), score(total_g * unit_g, total_h * unit_h, ridge)))
    only = place_of(word, m if single else min(m, MOST_CATEGORIES))
    best, best_sweep, best_size = floor, 0, 0
    for sweep in range(1 if single else 2):
        left = np.int64(0), np.int64(0), np.int64(0), 0.0
        for i in range(m if single else min(m, MOST_CATEGORIES)):
            cell = order[i] if sweep == 0 else order[m - 1 - i]
            left, judged = next_candidate(cell, left, g, h, n, n_bins, totals, units, rule, single)
            if not judged or (only >= 0 and i != only):
                continue
            lg, lh = left[0], left[1]
            rg, rh = total_g - lg, total_h - lh
            left_gradient, right_gradient = soft_threshold(lg * unit_g, alpha), soft_threshold(rg * unit_g, alpha)
            sides = both_within(left_gradient, lh * unit_h, right_gradient, rh * unit_h, *of_node, 0)
            if sides - parent > best:
                best, best_sweep, best_size = sides - parent, sweep, i + 1
                out[2], out[3] = lg, lh
    if not best > floor:
        return 0.0
    settle_set(order, single, best_sweep, best_size, g, h, n, n_bins, total_h, out, left_set)
    return best


@kernel
def _estimate(running, cuts, shift, total, least, alpha, ridge, low, high, direction, smoothed, about):
    """about[b]: no less than the score of both sides of a cut in units of g^2 / h; -inf if it is not allowed.

    running: packed sums of each cut's left side, but for ``shift``. alpha, ridge, low and high, float32, are in units
    of g, of h, and of g / h; alpha is not above the true one, so that no gradient is taken for smaller than it is.
    smoothed: S, the value above, in the same units, and what each estimate is raised by; None without path smoothing.
    """
    wide_vectors()
    for b in range(cuts):
        left = running[b] + shift
        right = total - left
        left_h, right_h = left & _LOW, right & _LOW
        a, c = np.float32(np.int32(left >> 32)), np.float32(np.int32(right >> 32))
        p, q = np.float32(np.uint32(left_h)) + ridge, np.float32(np.uint32(right_h)) + ridge
        both = _ONE / (p * q)
        r, s = q * both, p * both
        x = a - alpha if a > alpha else a + alpha if a < -alpha else _NONE
        y = c - alpha if c > alpha else c + alpha if c < -alpha else _NONE
        v, w = -x * r, -y * s
        v, w = low if v < low else high if v > high else v, low if w < low else high if w > high else w
        of_v, of_w, raised = abs(a * r) + abs(v), abs(c * s) + abs(w), _NONE  # what the roundings are in proportion to
        if smoothed is not None:  # decided when this is compiled
            smoothing, above, raised = smoothed
            own, other_own = np.float32(np.uint32(left_h)), np.float32(np.uint32(right_h))
            own, other_own = own / (own + smoothing), other_own / (other_own + smoothing)
            v, w = own * v + (_ONE - own) * above, other_own * w + (_ONE - other_own) * above
            v, w = low if v < low else high if v > high else v, low if w < low else high if w > high else w
            of_v, of_w = own * of_v + abs(above), other_own * of_w + abs(above)
        of_left, of_right = -(v * (x + x + p * v)), -(w * (y + y + q * w))
        if smoothed is None:  # the score is largest at such a value, so that an error of the value lowers it little
            sizes = abs(v * a) + abs(of_left) + abs(w * c) + abs(of_right)
        else:
            sizes = of_v * (abs(a) + p * of_v) + of_w * (abs(c) + q * of_w)
        allowed = (left_h >= least) & (right_h >= least) & (direction * (v - w) <= _MARGIN * (of_v + of_w) + raised)
        about[b] = (of_left + of_right) + _MARGIN * sizes + raised if allowed else _REFUSED


@kernel
def _in_units(smoothing, above):
    """S and the value above as ``_estimate`` has them. Where they are too large or small for float32, all is exact."""
    is_small = above != 0.0 and abs(above) < 2.0**-60
    raised = _FAR_ABOVE if smoothing > 2.0**40 or is_small else _NONE
    return np.float32(smoothing), np.float32(above), raised


@kernel
def _largest(bits, cuts):
    """The largest of the first numbers. bits: theirs, int32. The order of floats is that of such integers."""
    top = _LEAST
    for b in range(cuts):
        key = bits[b] ^ ((bits[b] >> np.int32(31)) & _SIGN)
        top = max(top, key)
    return top


@kernel
def _first_of_largest(about, cuts):
    """The place of the largest number, the first of equals."""
    bits = about.view(np.int32)
    top = _largest(bits, cuts)
    for b in range(cuts):
        if bits[b] ^ ((bits[b] >> np.int32(31)) & _SIGN) == top:
            return b
    return 0


@kernel
@inlined
def _gain(left, total, units, ridge, within):
    """The exact gain of a cut. left: packed sums of its left side."""
    alpha, low, high, direction, parent, _, smoothing, above = within
    right = total - left
    g, h = soft_threshold((left >> 32) * units[0], alpha), (left & _LOW) * units[1]
    other_g, other_h = soft_threshold((right >> 32) * units[0], alpha), (right & _LOW) * units[1]
    return both_within(g, h, other_g, other_h, ridge, low, high, smoothing, above, direction) - parent


@kernel
def best_within(running, cuts, shift, total, least, units, ridge, within, about):
    """The gain and the place of the best allowed cut, the first of equals; -1.0 and 0 if none gains enough.

    within: reg_alpha, the node's bounds, the feature's direction, the node's own score, what a gain must exceed, S of
    path smoothing, and the node's value.
    """
    alpha, low, high, direction, parent, floor, smoothing, above = within
    of_value, of_score = units[1] / units[0], units[1] / (units[0] * units[0])
    of_node = (
        np.float32(alpha / units[0] * BELOW), np.float32(ridge / units[1]),
        np.float32(min(max(low * of_value, -_FARTHEST), _FARTHEST)),
        np.float32(min(max(high * of_value, -_FARTHEST), _FARTHEST)), np.float32(direction),
    )  # fmt: skip
    if smoothing > 0.0:
        smoothed = _in_units(smoothing / units[1], above * of_value)
        _estimate(running, cuts, shift, total, least, *of_node, smoothed, about)
    else:
        _estimate(running, cuts, shift, total, least, *of_node, None, about)
    best, cut, first, address = floor, np.int64(-1), np.int64(_first_of_largest(about, cuts)), about.ctypes.data
    if about[first] == _REFUSED:
        return -1.0, np.int64(0)
    gain = _gain(running[first] + shift, total, units, ridge, within)
    if gain > best:
        best, cut = gain, first
    for line in range(0, cuts, LANES):
        enough = (best + parent) * of_score
        may = at_least(address + 4 * line, np.float32(enough - (1.0 - BELOW) * (best + abs(parent)) * of_score))
        if cuts - line < LANES:
            may &= (np.uint64(1) << np.uint64(cuts - line)) - np.uint64(1)
        while may:
            b = line + np.int64(trailing_zeros(may))
            may &= may - np.uint64(1)
            gain = _gain(running[b] + shift, total, units, ridge, within)
            if gain > best or (gain == best and 0 <= b < cut):
                best, cut = gain, b
    if cut < 0:
        return -1.0, np.int64(0)
    return best, cut


@kernel
def search(
    bounds, directions, layout, kinds, new_pairs, shared, node, histograms, criterion, first, last, general, by_node,
    words, results,
):  # fmt: skip
    """``split.search``, with bounds (v, 3) of all nodes and directions (t,) of the features that compete.

    general: not read; the arguments after ``directions`` are those of ``split.search``.
    """
    layout, histograms = HistogramLayout(*layout), HistogramArrays(*histograms)
    criterion, results = Criterion(*criterion), Splits(*results)
    of, counts, starts, root = histograms.of, histograms.counts, layout.starts, criterion.root
    n = np.empty(257 if counts.shape[1] > 0 else 0, np.int64)
    scratch = np.empty(257, np.int64), np.empty(257, np.int64), n
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
                        (bounds[v, 0], bounds[v, 1], bounds[v, 2]), directions, of[slot],
                        counts[slot] if counts.shape[1] > 0 else counts[0], sums, layout, kinds, criterion, begin, end,
                        scratch, root if v == 0 else root[:0],
                        by_node[line if by_node.shape[0] > 0 else 0 : line + 1],
                        words[line if words.shape[0] > 0 else 0 : line + 1], results, line,
                    )  # fmt: skip
            begin = end


@kernel
def _search_node(
    bounds, directions, cells, counts, sums, layout, kinds, criterion, first, last, scratch, bits, may, words, results,
    line,
):  # fmt: skip
    """Features [first, last) of one node. bits (t, 8), (0, 8) for all cuts; may (1, t), (0, t) for all features.

    words (1, t), (0, t) for all cuts.
    """
    g, h, n = scratch
    starts, n_bins, units, rule = layout.starts, layout.n_bins, criterion.units, criterion.rule
    rows, is_packed, total_g, total_h = sums.rows, sums.is_packed, sums.g, sums.h
    gains, splits, left_sets = results.gains[line], results.splits[line], results.left_sets[line]
    restricted, every = bits.shape[0] > 0, np.empty(8, np.uint32)
    for j in range(first, last):
        gains[j] = 0.0
        if bounds[0] >= bounds[1]:  # all leaves below have one value
            continue
        if (restricted and no_bit(bits[j])) or (may.shape[0] > 0 and not may[0, j]):
            continue
        begin, size = np.int64(starts[j]), np.int64(starts[j + 1]) - np.int64(starts[j])
        for c in range(size if n.shape[0] > 0 else 0):
            n[c] = counts[begin + c]
        is_categorical = False
        if kinds is not None:
            is_categorical = kinds[j] == 1
        if kinds is not None and is_categorical:
            read(cells, is_packed, begin, size, g, h)
            gains[j] = best_held_set(
                g, h, n, n_bins[j], (total_g, total_h, rows), units, rule, bounds,
                words[0, j] if words.shape[0] > 0 else np.int64(-1), splits[j], left_sets[j],
            )  # fmt: skip
        else:
            read_running(cells, is_packed, begin, size - 1, g, h)
            if words.shape[0] > 0:
                allow_only(random_cut(words[0, j], g, h, n, n_bins[j]), every)
            gains[j] = best_held_cut(
                g, h, n, n_bins[j], (total_g, total_h, rows), units, rule, bounds, directions[j],
                restricted or words.shape[0] > 0, bits[j] if restricted else every, splits[j],
            )  # fmt: skip
