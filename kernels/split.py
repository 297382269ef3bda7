"""best_splits: the split of each node that gains most. Definition: Reference.best_splits.

Sums are integers; a gain is formed from them in float64 by one fixed sequence of operations, so it has one value on
every machine. Ties: the lowest feature, then the lowest bin, then missing values right.

The gains of all cuts of a feature are formed first, without a branch, so that they are computed eight at a time; then
the first of the largest is looked for.
"""

import numpy as np

from gpuboost.kernels.gain import NOISE, score
from gpuboost.kernels.jit import kernel
from gpuboost.kernels.narrow_split import MOST_RIDGE, ROOM, best_cut, least_units
from gpuboost.kernels.nodes import (
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

CATEGORY_SMOOTHING = 10.0  # curvature added to a category's own before its ratio is formed
CATEGORY_LAMBDA = 10.0  # added to reg_lambda in the gain of a categorical split
ONE_AGAINST_REST = 4  # up to this many categories in a node, single ones are split off
MOST_CATEGORIES = 32  # on the smaller side of a categorical split
CATEGORY_ROWS = 10.0  # a category of fewer rows follows the rest
GROUP_ROWS = 100.0  # added to the smaller side between two cuts that are judged, and left on the other side

CELLS_AT_ONCE = 2048  # of a node that are completed and searched before the next ones

_LOW = np.int64(0xFFFF_FFFF)


@kernel
def _join(own, part, narrow, begin, end):
    """Add another thread's part of a histogram to cells [begin, end)."""
    cells = own.shape[0] // 2
    for c in range(begin, end):
        own[c] += part[c]
    if not narrow:
        for c in range(cells + begin, cells + end):
            own[c] += part[c]


@kernel
def _spread(own, narrow, starts, first, last, defaults, total_g, total_h):
    """Sparse features [first, last): the default bin holds what the stored entries do not."""
    cells = own.shape[0] // 2
    for j in range(first, last):
        g, h = total_g, total_h
        begin = np.int64(starts[j])
        if narrow:
            pair = (total_g << 32) + total_h
            for c in range(begin, np.int64(starts[j + 1])):
                pair -= own[c]
            own[begin + defaults[j]] += pair
        else:
            for c in range(begin, np.int64(starts[j + 1])):
                g -= own[c]
                h -= own[cells + c]
            own[begin + defaults[j]] += g
            own[cells + begin + defaults[j]] += h


@kernel
def _subtract(parent, built, parent_narrow, built_narrow, narrow, begin, end):
    """Cells [begin, end) of the parent's histogram become those of the built child's sibling, in its form."""
    cells = parent.shape[0] // 2
    if parent_narrow:  # then both children are
        for c in range(begin, end):
            parent[c] -= built[c]
        return
    for c in range(begin, end):
        if built_narrow:
            pair = built[c]
            g, h = parent[c] - (pair >> 32), parent[cells + c] - (pair & _LOW)
        else:
            g, h = parent[c] - built[c], parent[cells + c] - built[cells + c]
        parent[c] = (g << 32) + h if narrow else g
        parent[cells + c] = h


@kernel
def complete(i, histograms, spare, shared, fresh, node, starts, defaults, narrow_rows, first, last):
    """Features [first, last) of fresh pair i: the histograms of both its nodes, from what ``histogram.build`` left."""
    begin, end = np.int64(starts[first]), np.int64(starts[last])
    built, sibling, parent = fresh[i, 0], fresh[i, 1], fresh[i, 2]
    own = histograms[node[built, SLOT]]
    own_narrow = node[built, END] - node[built, BEGIN] <= narrow_rows
    for p in range(shared.shape[1]):
        if shared[i, p] >= 0:
            _join(own, spare[shared[i, p]], own_narrow, begin, end)
    if defaults[0] >= 0:
        _spread(own, own_narrow, starts, first, last, defaults, node[built, SUM_G], node[built, SUM_H])
    if sibling >= 0:
        _subtract(
            histograms[node[sibling, SLOT]], own, node[parent, END] - node[parent, BEGIN] <= narrow_rows,
            own_narrow, node[sibling, END] - node[sibling, BEGIN] <= narrow_rows, begin, end,
        )  # fmt: skip


@kernel
def read(own, narrow, begin, size, g, h):
    """g[:size], h[:size]: the sums of cells begin, begin + 1, ..."""
    cells = own.shape[0] // 2
    if narrow:
        for c in range(size):
            pair = own[begin + c]
            g[c], h[c] = pair >> 32, pair & _LOW
    else:
        for c in range(size):
            g[c], h[c] = own[begin + c], own[cells + begin + c]


@kernel
def read_running(own, narrow, begin, n_bins, g, h):
    """The same as running sums of the value bins; cell n_bins, of the missing values, stays by itself."""
    cells, sum_g, sum_h = own.shape[0] // 2, np.int64(0), np.int64(0)
    if narrow:
        for c in range(n_bins):
            pair = own[begin + c]
            sum_g += pair >> 32
            sum_h += pair & _LOW
            g[c], h[c] = sum_g, sum_h
        pair = own[begin + n_bins]
        g[n_bins], h[n_bins] = pair >> 32, pair & _LOW
    else:
        for c in range(n_bins):
            sum_g += own[begin + c]
            sum_h += own[cells + begin + c]
            g[c], h[c] = sum_g, sum_h
        g[n_bins], h[n_bins] = own[begin + n_bins], own[cells + begin + n_bins]


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
def _one_cut(lg, lh, total_g, total_h, parent, unit_g, unit_h, ridge, least_h, least_gain, signed):
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
    """Whether a feature may not split the node at all."""
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
def seen(g, h, n, b):
    """Whether the node has rows of bin b. Those that add nothing to any sum are seen only where rows are counted."""
    return g[b] != 0 or h[b] != 0 or (n.shape[0] > 0 and n[b] != 0)


@kernel
def _numeric(g, h, n, n_bins, total_g, total_h, total_n, units, rule, restricted, bits, gains, out):
    """The best cut of one feature. g, h: see ``read_running``; n is turned into running sums.

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
    at = first_largest(gains, cuts)
    best, left = gains[at], 0
    if some_missing and cuts > 1:
        cut_gains(
            g, h, n, cuts - 1, missing_g, missing_h, missing_n, total_g, total_h, total_n, units, rule, parent, -1.0,
            gains,
        )  # fmt: skip
        if restricted:
            forbid(gains, cuts - 1, bits)
        other = first_largest(gains, cuts - 1)
        if gains[other] > best or (gains[other] == best and other < at):
            at, best, left = other, gains[other], 1
    if not best > max(rule[2], NOISE * parent):
        return 0.0
    out[0], out[1] = at, left
    out[2], out[3] = g[at] + left * missing_g, h[at] + left * missing_h
    if not some_missing:  # none seen here: a missing value follows the heavier child
        out[1] = 1 if out[3] > total_h - out[3] else 0
    return best


@kernel
def _sort_by_key(order, keys):
    """Both by key, in place, equal keys as they were: merging runs of 1, 2, 4 ... numbers.

    numpy's own would do, but takes numba more than a second to compile.
    """
    size, run = order.shape[0], 1
    other, other_keys = np.empty_like(order), np.empty_like(keys)
    while run < size:
        for begin in range(0, size, 2 * run):
            middle, end = min(begin + run, size), min(begin + 2 * run, size)
            a, b = begin, middle
            for i in range(begin, end):
                if a < middle and (b >= end or keys[a] <= keys[b]):
                    other[i], other_keys[i] = order[a], keys[a]
                    a += 1
                else:
                    other[i], other_keys[i] = order[b], keys[b]
                    b += 1
        for i in range(size):
            order[i], keys[i] = other[i], other_keys[i]
        run *= 2


@kernel
def rank_categories(g, h, n, n_bins, unit_g, unit_h, rows_per_h, order):
    """order[:m]: the bins that are tried one against the rest, if there is but a handful; else by g / (h + smoothing).

    Returns m, and whether they are a handful. order (n_bins + 1,) int64.
    """
    keys, m = np.empty(n_bins + 1, np.float64), 0
    for b in range(n_bins + 1):
        m += seen(g, h, n, b)
    single, m = m <= ONE_AGAINST_REST, 0
    for b in range(n_bins + 1):
        if seen(g, h, n, b) and (single or (b < n_bins and h[b] * rows_per_h >= CATEGORY_ROWS)):
            order[m], keys[m] = b, g[b] * unit_g / (h[b] * unit_h + CATEGORY_SMOOTHING)
            m += 1
    if not single:
        _sort_by_key(order[:m], keys[:m])
    return m, single


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
def _categorical(g, h, n, n_bins, total_g, total_h, total_n, units, rule, out, left_set):
    """The best two sets of categories of one feature. What is missing, rare or unseen stays on the other side.

    Categories are sorted by g / (h + smoothing) (Fisher 1958: in the ratio's order the best set is a prefix) and
    prefixes of up to 32 from either end compete. A handful of categories, missing values among them, is tried one
    against the rest instead.
    Small categories and small steps are left out, as they fit noise; rows are estimated by their share of h.
    left_set (8,) uint32 gets the bins that go left. Otherwise as ``_numeric``.
    """
    unit_g, unit_h = units[0], units[1]
    least_h, least_n = rule[1], np.int64(rule[3])
    used, rows_per_h = np.empty(n_bins + 1, np.int64), rule[4]
    m, single = rank_categories(g, h, n, n_bins, unit_g, unit_h, rows_per_h, used)
    ridge = rule[0] if single else rule[0] + CATEGORY_LAMBDA
    parent = score(total_g * unit_g, total_h * unit_h, ridge)
    floor = max(rule[2], NOISE * parent)
    order = used[:m]
    best, best_sweep, best_size = floor, 0, 0
    for sweep in range(1 if single else 2):
        lg, lh, ln, group = np.int64(0), np.int64(0), np.int64(0), 0.0
        for i in range(m if single else min(m, MOST_CATEGORIES)):
            cell = order[i] if sweep == 0 else order[m - 1 - i]
            if single:
                lg, lh, ln = np.int64(0), np.int64(0), np.int64(0)
            lg += g[cell]
            lh += h[cell]
            group += h[cell] * rows_per_h
            if n.shape[0] > 0:
                ln += n[cell]
            if single and cell == n_bins:  # what is missing against all others, which go left
                lg, lh, ln = total_g - lg, total_h - lh, total_n - ln
            rg, rh = total_g - lg, total_h - lh
            low, high = lh * unit_h, rh * unit_h
            if lh <= 0 or rh <= 0 or low < least_h or high < least_h:
                continue
            if n.shape[0] > 0 and (ln < least_n or total_n - ln < least_n):
                continue
            if not single and (group < GROUP_ROWS or rh * rows_per_h < GROUP_ROWS):
                continue
            group = 0.0
            gain = (score(lg * unit_g, low, ridge) + score(rg * unit_g, high, ridge)) - parent
            if rule[5] > 0.0:
                gain = score((lg - rg) * unit_g, total_h * unit_h, ridge) - parent
            if gain > best:
                best, best_sweep, best_size = gain, sweep, i + 1
                out[2], out[3] = lg, lh
    if best <= floor:
        return 0.0
    put_in_set(order, single, best_sweep, best_size, n_bins, left_set)
    if not seen(g, h, n, n_bins) and out[3] > total_h - out[3]:
        include(left_set, n_bins)
    out[0] = 0
    out[1] = np.int64((left_set[n_bins >> 5] >> np.uint32(n_bins & 31)) & np.uint32(1))
    return best


@kernel
def include(left_set, b):
    """Bin b goes left. left_set (8,) uint32, a bit for each bin."""
    left_set[b >> 5] |= np.uint32(1) << np.uint32(b & 31)


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
    gains (2p, t) float64, found (2p, t, 4) int64, left_sets (2p, t, 8) uint32: what ``_numeric`` and
    ``_categorical`` say, lines 2i and 2i + 1 for the built node and the sibling of pair i.
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
            gains[j] = _one_cut(
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
            gains[j] = _categorical(g, h, n, n_bins[j], total_g, total_h, rows, units, rule, found[j], left_sets[j])
        elif general is not None:  # decided when this is compiled, too
            read_running(cells, narrow, begin, size - 1, g, h)
            gains[j] = _numeric(
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
