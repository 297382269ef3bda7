"""Splits of a categorical feature: which sets of categories compete, and the best of them.

Categories are sorted by g / (h + smoothing) (Fisher 1958: in the ratio's order the best set is a prefix) and prefixes
of up to 32 from either end compete. A handful of categories, missing values among them, is tried one against the rest
instead. What is missing, rare or unseen stays on the other side. Small categories and small steps are left out, as they
fit noise; rows are estimated by their share of h.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.histograms.cells import seen
from gpuboost.kernels.splits.extra_trees import place_of
from gpuboost.kernels.splits.gain import NOISE, score

ONE_AGAINST_REST = 4  # up to this many categories in a node, single ones are split off
MOST_CATEGORIES = 32  # on the smaller side of a categorical split
SMOOTHING, SET_LAMBDA, CATEGORY_ROWS, GROUP_ROWS = 6, 7, 8, 9  # indices of ``rule``: see ``types.CategoryLimits``


@kernel
def _put_in_order(bins, keys, order):
    """order: the bins by key, those of equal keys as they come.

    Each goes to the place that is the number of smaller keys, or to the next free one. To count them needs no branch,
    and takes a third to a half of the time of a sort, of 255 bins too.
    """
    m = keys.shape[0]
    order[:m] = -1
    for i in range(m):
        key, place = keys[i], 0
        for j in range(m):
            place += keys[j] < key
        while order[place] >= 0:
            place = place + 1 if place + 1 < m else 0  # there is no order of 0 / 0
        order[place] = bins[i]


@kernel
def rank_categories(g, h, n, n_bins, units, rule):
    """The bins that are tried one against the rest, if there is but a handful; else those by g / (h + smoothing).

    Returns (m,) int64, and whether they are a handful.
    """
    m, total_h, rows_per_h = 0, np.int64(0), rule[4]
    for b in range(n_bins + 1):
        m += seen(g, h, n, b)
        total_h += h[b]
    single, m = m <= ONE_AGAINST_REST, 0
    room = np.empty(2 * n_bins + 2, np.int64)
    order, bins = room[: n_bins + 1], room[n_bins + 1 :]
    if not single and total_h * rows_per_h < 1.999 * rule[GROUP_ROWS]:  # two sides of so many rows there cannot be
        return order[:0], single
    for b in range(n_bins + 1):
        if seen(g, h, n, b) and (single or (b < n_bins and h[b] * rows_per_h >= rule[CATEGORY_ROWS])):
            bins[m] = b
            m += 1
    if single:
        return bins[:m], single
    keys = np.empty(m, np.float64)
    for i in range(m):
        keys[i] = g[bins[i]] * units[0] / (h[bins[i]] * units[1] + rule[SMOOTHING])
    _put_in_order(bins, keys, order)
    return order[:m], single


@kernel
def include(left_set, b):
    """Bin b goes left. left_set (8,) uint32, a bit for each bin."""
    left_set[b >> 5] |= np.uint32(1) << np.uint32(b & 31)


@kernel
def put_in_set(order, single, sweep, size, n_bins, left_set):
    """left_set (8,) uint32: the ``size``'th candidate of a sweep through the order."""
    m = order.shape[0]
    left_set[:] = 0
    all_but_missing = single and order[size - 1] == n_bins
    for i in range(m if all_but_missing else size):
        if not single or (i != size - 1) == all_but_missing:
            include(left_set, order[i] if sweep == 0 else order[m - 1 - i])


@kernel
@inlined
def next_candidate(cell, before, g, h, n, n_bins, totals, units, rule, single):
    """The candidate of a sweep that sends one bin more to the left than the one before; if single, this bin alone.

    before: (g, h, rows) on the left, and the rows added since the last one that was judged; (0, 0, 0, 0.0) at first.
    totals: g, h and rows of the node. Returns the same of this one, and whether it is to be judged.
    """
    lg, lh, ln, group = before
    total_g, total_h, total_n = totals
    unit_h, least_h, least_n, rows_per_h = units[1], rule[1], np.int64(rule[3]), rule[4]
    if single:
        lg, lh, ln = np.int64(0), np.int64(0), np.int64(0)
    lg += g[cell]
    lh += h[cell]
    group += h[cell] * rows_per_h
    if n.shape[0] > 0:
        ln += n[cell]
    if single and cell == n_bins:  # what is missing against all others, which go left
        lg, lh, ln = total_g - lg, total_h - lh, total_n - ln
    rh = total_h - lh
    judged = lh > 0 and rh > 0 and lh * unit_h >= least_h and rh * unit_h >= least_h
    if n.shape[0] > 0:
        judged = judged and ln >= least_n and total_n - ln >= least_n
    if not single:
        judged = judged and group >= rule[GROUP_ROWS] and rh * rows_per_h >= rule[GROUP_ROWS]
    return (lg, lh, ln, 0.0 if judged else group), judged


@kernel
def settle_set(order, single, sweep, size, g, h, n, n_bins, total_h, out, left_set):
    """The ``size``'th candidate of a sweep has won; out[2:] are its left sums. Sets the rest of out, and left_set."""
    put_in_set(order, single, sweep, size, n_bins, left_set)
    if not seen(g, h, n, n_bins) and out[3] > total_h - out[3]:  # a missing value follows the heavier child
        include(left_set, n_bins)
    out[0] = 0
    out[1] = np.int64((left_set[n_bins >> 5] >> np.uint32(n_bins & 31)) & np.uint32(1))


@kernel
def best_set(g, h, n, n_bins, totals, units, rule, word, out, left_set):
    """The best set of categories of one feature, for the left side.

    g, h, n: sums of each bin; totals: those of the node. word: see ``extra_trees.place_of``. left_set
    (8,) uint32 gets the bins that go left. Otherwise as ``cuts.general_cut``.
    """
    unit_g, unit_h = units[0], units[1]
    total_g, total_h, _ = totals
    order, single = rank_categories(g, h, n, n_bins, units, rule)
    m = order.shape[0]
    ridge = rule[0] if single else rule[0] + rule[SET_LAMBDA]
    parent = score(total_g * unit_g, total_h * unit_h, ridge)
    floor = max(rule[2], NOISE * parent)
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
            gain = (score(lg * unit_g, lh * unit_h, ridge) + score(rg * unit_g, rh * unit_h, ridge)) - parent
            if rule[5] > 0.0:
                gain = score((lg - rg) * unit_g, total_h * unit_h, ridge) - parent
            if gain > best:
                best, best_sweep, best_size = gain, sweep, i + 1
                out[2], out[3] = lg, lh
    if best <= floor:
        return 0.0
    settle_set(order, single, best_sweep, best_size, g, h, n, n_bins, total_h, out, left_set)
    return best
