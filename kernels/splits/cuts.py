"""The best cut of a numeric feature, whatever the histogram and the limits: see ``packed_split`` for the quick case.

The gains of all cuts are formed first, without a branch, so that they are computed eight at a time; then the first of
the largest is looked for.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.histograms.cells import seen
from gpuboost.kernels.splits.gain import NOISE, score


@kernel
def cut_gains(g, h, n, cuts, shift_g, shift_h, shift_n, total_g, total_h, total_n, units, rule, parent, refused,
              gains):  # fmt: skip
    """gains[b] of sending bins 0 .. b left, b < cuts; ``refused`` where a side is not allowed. g, h: running sums.

    ``shift`` is added to the left side: the missing values, if they go there. n has no entries if rows do not count.
    """
    unit_g, unit_h = units[0], units[1]
    ridge, least_h, least_n = rule[0], rule[1], np.int64(rule[3])
    for b in range(cuts):
        lg, lh = g[b] + shift_g, h[b] + shift_h
        rg, rh = total_g - lg, total_h - lh
        low, high = lh * unit_h, rh * unit_h
        gain = (score(lg * unit_g, low, ridge) + score(rg * unit_g, high, ridge)) - parent
        allowed = (lh > 0) & (rh > 0) & (low >= least_h) & (high >= least_h)
        gains[b] = gain if allowed else refused
    if rule[5] > 0.0:  # both leaves share one value
        below = total_h * unit_h + ridge
        for b in range(cuts):
            sum_g = ((g[b] + shift_g) - (total_g - (g[b] + shift_g))) * unit_g
            gains[b] = gains[b] if gains[b] == refused else sum_g * sum_g / below - parent
    if n.shape[0] > 0:
        for b in range(cuts):
            ln = n[b] + shift_n
            gains[b] = gains[b] if ln >= least_n and total_n - ln >= least_n else refused


@kernel
def only_cut(lg, lh, total_g, total_h, parent, unit_g, unit_h, ridge, least_h, least_gain, signed):
    """The gain of the only cut of two bins without missing values: the case of every indicator column."""
    rg, rh = total_g - lg, total_h - lh
    low, high = lh * unit_h, rh * unit_h
    if lh <= 0 or rh <= 0 or low < least_h or high < least_h:
        return 0.0
    if signed > 0.0:
        gain = score((lg - rg) * unit_g, total_h * unit_h, ridge) - parent
    else:
        gain = (score(lg * unit_g, low, ridge) + score(rg * unit_g, high, ridge)) - parent
    return gain if gain > max(least_gain, NOISE * parent) else 0.0


@kernel
def forbid(gains, cuts, bits):
    """gains[b] = -1 for every cut whose bit is not set. bits (8,) uint32."""
    for b in range(cuts):
        if not (bits[b >> 5] >> np.uint32(b & 31)) & np.uint32(1):
            gains[b] = -1.0


@kernel
def no_bit(bits):
    """True if a feature may not split the node at all."""
    some = np.uint32(0)
    for word in range(8):
        some |= bits[word]
    return some == 0


@kernel
def first_largest(gains, cuts):
    """The index of the largest, the first of equals. Four maxima are kept, as each waits for the one before."""
    top = second = third = fourth = gains[0]
    whole = cuts - cuts % 4
    for b in range(0, whole, 4):
        top, second = max(top, gains[b]), max(second, gains[b + 1])
        third, fourth = max(third, gains[b + 2]), max(fourth, gains[b + 3])
    for b in range(whole, cuts):
        top = max(top, gains[b])
    top = max(top, second, third, fourth)
    for b in range(cuts):
        if gains[b] == top:
            return b
    return 0


@kernel
def general_cut(g, h, n, n_bins, total_g, total_h, total_n, units, rule, restricted, bits, gains, out):
    """The best cut of one feature. g, h: see ``cells.read_running``; n is turned into running sums.

    units (2,): value of one unit of g and of h. rule (6,): reg_lambda, min_child_weight, min_split_gain,
    min_samples_leaf, rows for each unit of h in the whole tree, and 1 if both leaves are to share one value.
    restricted: whether only cuts whose bit is set compete. out (4,) int64: bin, missing_left, left g, left h.
    Returns the gain, 0.0 if there is no split.
    """
    missing_g, missing_h = g[n_bins], h[n_bins]
    missing_n = n[n_bins] if n.shape[0] > 0 else np.int64(0)
    some_missing = seen(g, h, n, n_bins)
    cuts = n_bins if some_missing else n_bins - 1
    if cuts < 1:
        return 0.0
    if n.shape[0] > 0:
        for b in range(1, cuts):
            n[b] += n[b - 1]
    parent = score(total_g * units[0], total_h * units[1], rule[0])
    none = np.int64(0)
    cut_gains(g, h, n, cuts, none, none, none, total_g, total_h, total_n, units, rule, parent, -1.0, gains)
    if restricted:
        forbid(gains, cuts, bits)
    cut = first_largest(gains, cuts)
    best, left = gains[cut], 0
    if some_missing and cuts > 1:
        cut_gains(
            g, h, n, cuts - 1, missing_g, missing_h, missing_n, total_g, total_h, total_n, units, rule, parent, -1.0,
            gains,
        )  # fmt: skip
        if restricted:
            forbid(gains, cuts - 1, bits)
        other = first_largest(gains, cuts - 1)
        if gains[other] > best or (gains[other] == best and other < cut):
            cut, best, left = other, gains[other], 1
    if not best > max(rule[2], NOISE * parent):
        return 0.0
    out[0], out[1] = cut, left
    out[2], out[3] = g[cut] + left * missing_g, h[cut] + left * missing_h
    if not some_missing:  # none seen here: a missing value follows the heavier child
        out[1] = 1 if out[3] > total_h - out[3] else 0
    return best
