"""Split search of oblivious trees: the split that gains most in sum over the open nodes of a level.

Definition: ``reference.splits.shared_splits``. A candidate's gains are added up node by node, in the order of the
nodes, each candidate for itself: no order of threads can be seen. A node to which the split would give a side that is
not allowed gains nothing and gets it all the same.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import BEGIN, END, SLOT, SUM_G, SUM_H
from gpuboost.kernels.common.records import Criterion, HistogramArrays, HistogramLayout
from gpuboost.kernels.histograms.cells import complete, read, read_running, seen
from gpuboost.kernels.splits.categories import (
    GROUP_ROWS,
    MOST_CATEGORIES,
    SET_LAMBDA,
    include,
    put_in_set,
    rank_categories,
)
from gpuboost.kernels.splits.cuts import cut_gains, first_largest
from gpuboost.kernels.splits.extra_trees import cut_between, place_of
from gpuboost.kernels.splits.gain import ALPHA, MOST, NOISE, SMOOTHING, score, soft_threshold
from gpuboost.kernels.splits.monotone_split import side_score


@kernel
def read_node(v, node, histograms, counts, packed_rows, begin, size, g, h, n):
    """g[:size], h[:size], n[:size]: node v's sums of cells begin, begin + 1, ..."""
    read(histograms[node[v, SLOT]], node[v, END] - node[v, BEGIN] <= packed_rows, begin, size, g, h)
    if n.shape[0] > 0:
        slot = node[v, SLOT]
        for c in range(size):
            n[c] = counts[slot, begin + c]


@kernel
def _read_running(v, node, histograms, counts, packed_rows, begin, n_bins, g, h, n):
    """The same as running sums of the value bins; cell n_bins, of the missing values, stays by itself."""
    read_running(histograms[node[v, SLOT]], node[v, END] - node[v, BEGIN] <= packed_rows, begin, n_bins, g, h)
    if n.shape[0] > 0:
        slot, rows = node[v, SLOT], np.int64(0)
        for c in range(n_bins):
            rows += counts[slot, begin + c]
            n[c] = rows
        n[n_bins] = counts[slot, begin + n_bins]


@kernel
def _sum_level(level, node, histograms, counts, packed_rows, begin, first, size, scratch, g, h, n):
    """g, h, n: cells begin + first ... of the level's nodes added up. Returns the sums of h and of rows of them all."""
    own_g, own_h, own_n = scratch
    total_h, total_n = np.int64(0), np.int64(0)
    for c in range(size):
        g[c] = h[c] = 0
    for c in range(size if n.shape[0] > 0 else 0):
        n[c] = 0
    for v in level:
        read_node(v, node, histograms, counts, packed_rows, begin + first, size, own_g, own_h, own_n)
        for c in range(size):
            g[c] += own_g[c]
            h[c] += own_h[c]
        for c in range(size if n.shape[0] > 0 else 0):
            n[c] += own_n[c]
        total_h += node[v, SUM_H]
        total_n += node[v, END] - node[v, BEGIN]
    return total_h, total_n


@kernel
def heavier_side(level, node, histograms, counts, packed_rows, begin, cut, total_h, scratch, sums):
    """1 if bins 0 .. cut of the level are heavier than the others, so that a missing value follows them; else 0.

    total_h: of the level. The rest as for ``best_shared_cut``.
    """
    level_g, level_h, level_n = sums
    _sum_level(level, node, histograms, counts, packed_rows, begin, 0, cut + 1, scratch, level_g, level_h, level_n)
    lefts = np.int64(0)
    for b in range(cut + 1):
        lefts += level_h[b]
    return 1 if lefts > total_h - lefts else 0


@kernel
def _only_cut(word, level, node, histograms, counts, packed_rows, begin, n_bins, scratch, sums):
    """The bin below the random cut of a feature among the bins of the level, -1 if there is none."""
    g, h, n = sums
    _sum_level(level, node, histograms, counts, packed_rows, begin, 0, n_bins + 1, scratch, g, h, n)
    first, last = np.int64(n_bins), np.int64(-1)
    for b in range(n_bins):
        if seen(g, h, n, b):
            first, last = min(first, b), b
    return cut_between(word, first, last, seen(g, h, n, n_bins)) if last >= 0 else np.int64(-1)


@kernel
def best_shared_cut(
    level, node, histograms, counts, packed_rows, begin, n_bins, units, rule, scratch, sums, gains, word, values, out
):
    """The best shared cut of one feature. out (3,) int64: bin, missing_left, 0. Returns its gain, 0.0 if there is none.

    room, sums: three (257,) int64 each, for g, h and rows. gains (3, 257) float64. word: see ``extra_trees.place_of``.
    values: see ``search``.
    """
    g, h, n = scratch
    level_g, level_h, level_n = sums
    only = np.int64(-1)
    if word >= 0:
        only = _only_cut(word, level, node, histograms, counts, packed_rows, begin, n_bins, scratch, sums)
    total_h, _ = _sum_level(
        level, node, histograms, counts, packed_rows, begin, n_bins, 1, scratch, level_g, level_h, level_n
    )  # fmt: skip
    some_missing = seen(level_g, level_h, level_n, 0)
    cuts = n_bins if some_missing else n_bins - 1
    if cuts < 1:
        return 0.0
    right, left, node_gains = gains[0], gains[1], gains[2]
    for b in range(cuts):
        right[b] = left[b] = 0.0
    parents = 0.0
    for v in level:
        _read_running(v, node, histograms, counts, packed_rows, begin, n_bins, g, h, n)
        totals = node[v, SUM_G], node[v, SUM_H], node[v, END] - node[v, BEGIN]
        above = values[v] if values.shape[0] > 0 else 0.0
        parent = score_of_leaf(totals[0] * units[0], totals[1] * units[1], rule[0], rule, above)
        parents += parent
        _cut_gains(g, h, n, cuts, (0, 0, 0), totals, units, rule, parent, above, node_gains)
        for b in range(cuts):
            right[b] += node_gains[b]
        if some_missing and cuts > 1:
            if seen(g, h, n, n_bins):
                missing = g[n_bins], h[n_bins], n[n_bins] if n.shape[0] > 0 else 0
                _cut_gains(g, h, n, cuts - 1, missing, totals, units, rule, parent, above, node_gains)
            for b in range(cuts - 1):
                left[b] += node_gains[b]
    for b in range(cuts if word >= 0 else 0):
        if b != only:
            right[b] = left[b] = 0.0
    best_bin, out[1], out[2] = first_largest(right, cuts), 0, 0
    best = right[best_bin]
    if some_missing and cuts > 1:
        other = first_largest(left, cuts - 1)
        if left[other] > best or (left[other] == best and other < best_bin):
            best_bin, best, out[1] = other, left[other], 1
    if not best > max(rule[2], NOISE * parents):
        return 0.0
    out[0] = best_bin
    if not some_missing:  # none seen on this level
        out[1] = heavier_side(level, node, histograms, counts, packed_rows, begin, best_bin, total_h, scratch, sums)
    return best


@kernel
def _mark_candidates(h, n, total_h, total_n, order, single, units, rule, valid):
    """valid[sweep, i]: whether the i'th prefix from either end of the order, or its i'th bin alone, is judged."""
    unit_h, least_h, least_n, rows_per_h = units[1], rule[1], np.int64(rule[3]), rule[4]
    m = order.shape[0]
    for sweep in range(1 if single else 2):
        lh, ln, group = np.int64(0), np.int64(0), 0.0
        for i in range(m if single else min(m, MOST_CATEGORIES)):
            valid[sweep, i] = single
            if single:
                continue
            cell = order[i] if sweep == 0 else order[m - 1 - i]
            lh += h[cell]
            ln += n[cell] if n.shape[0] > 0 else 0
            group += h[cell] * rows_per_h
            rh = total_h - lh
            if lh <= 0 or rh <= 0 or lh * unit_h < least_h or rh * unit_h < least_h:
                continue
            if n.shape[0] > 0 and (ln < least_n or total_n - ln < least_n):
                continue
            if group < rule[GROUP_ROWS] or rh * rows_per_h < rule[GROUP_ROWS]:
                continue
            group, valid[sweep, i] = 0.0, True


@kernel
def gain_at(lg, lh, ln, totals, units, rule, ridge, parent, above, counted):
    """Gain of a split at one node; 0 if a side is not allowed."""
    total_g, total_h, total_n = totals
    rg, rh = total_g - lg, total_h - lh
    low, high = lh * units[1], rh * units[1]
    if lh <= 0 or rh <= 0 or low < rule[1] or high < rule[1]:
        return 0.0
    if counted and (ln < rule[3] or total_n - ln < rule[3]):
        return 0.0
    left = score_of_leaf(lg * units[0], low, ridge, rule, above)
    return (left + score_of_leaf(rg * units[0], high, ridge, rule, above)) - parent


@kernel
def _regularised(rule):
    """True if leaf values are regularised by more than lambda."""
    return rule[ALPHA] > 0.0 or rule[MOST] < np.inf or rule[SMOOTHING] > 0.0


@kernel
def score_of_leaf(g, h, ridge, rule, above):
    """Twice the loss reduction of a leaf with these sums, below a node of value ``above``."""
    if not _regularised(rule):
        return score(g, h, ridge)
    return side_score(soft_threshold(g, rule[ALPHA]), h, ridge, -rule[MOST], rule[MOST], rule[SMOOTHING], above)


@kernel
def _cut_gains(g, h, n, cuts, shift, totals, units, rule, parent, above, gains):
    """``cuts.cut_gains``, also where leaf values are regularised by more than lambda; 0 where a side is not allowed."""
    if not _regularised(rule):
        cut_gains(g, h, n, cuts, *shift, *totals, units, rule, parent, 0.0, gains)
        return
    for b in range(cuts):
        ln = n[b] + shift[2] if n.shape[0] > 0 else 0
        left = g[b] + shift[0], h[b] + shift[1], ln
        gains[b] = gain_at(*left, totals, units, rule, rule[0], parent, above, n.shape[0] > 0)


@kernel
def best_shared_set(
    level, node, histograms, counts, packed_rows, begin, n_bins, units, rule, scratch, sums, word, values, out, left_set
):
    """The best shared set of categories of one feature: the candidates of ``split`` for the level's summed histogram.

    out (3,) int64: 0, missing_left, 1 if more than a handful of categories are there. left_set (8,) uint32.
    """
    g, h, n = scratch
    level_g, level_h, level_n = sums
    counted = n.shape[0] > 0
    total_h, total_n = _sum_level(
        level, node, histograms, counts, packed_rows, begin, 0, n_bins + 1, scratch, level_g, level_h, level_n
    )  # fmt: skip
    order, single = rank_categories(level_g, level_h, level_n, n_bins, units, rule)
    m = order.shape[0]
    size, sweeps = m if single else min(m, MOST_CATEGORIES), 1 if single else 2
    valid, gains = np.zeros((2, MOST_CATEGORIES), np.bool_), np.zeros((2, MOST_CATEGORIES))
    _mark_candidates(level_h, level_n, total_h, total_n, order, single, units, rule, valid)
    ridge, parents = rule[0] if single else rule[0] + rule[SET_LAMBDA], 0.0
    for v in level:
        read_node(v, node, histograms, counts, packed_rows, begin, n_bins + 1, g, h, n)
        totals = node[v, SUM_G], node[v, SUM_H], node[v, END] - node[v, BEGIN]
        above = values[v] if values.shape[0] > 0 else 0.0
        parent = score_of_leaf(totals[0] * units[0], totals[1] * units[1], ridge, rule, above)
        parents += parent
        for sweep in range(sweeps):
            lg, lh, ln = np.int64(0), np.int64(0), np.int64(0)
            for i in range(size):
                if single:
                    lg, lh, ln = np.int64(0), np.int64(0), np.int64(0)
                for k in range(m if single else 1):
                    taken = k if single else i
                    cell = order[taken] if sweep == 0 else order[m - 1 - taken]
                    if single and (cell == order[i]) == (order[i] == n_bins):  # what is missing: all others go left
                        continue
                    lg += g[cell]
                    lh += h[cell]
                    ln += n[cell] if counted else 0
                if valid[sweep, i]:
                    gains[sweep, i] += gain_at(lg, lh, ln, totals, units, rule, ridge, parent, above, counted)
    floor, only = max(rule[2], NOISE * parents), place_of(word, size)
    best, best_sweep, best_size = floor, 0, 0
    for sweep in range(sweeps):
        for i in range(size):
            if valid[sweep, i] and (only < 0 or i == only) and gains[sweep, i] > best:
                best, best_sweep, best_size = gains[sweep, i], sweep, i + 1
    if best_size == 0:
        return 0.0
    put_in_set(order, single, best_sweep, best_size, n_bins, left_set)
    out[0], out[1], out[2] = 0, 0, 0 if single else 1
    if not seen(level_g, level_h, level_n, n_bins):
        lefts = np.int64(0)
        for b in range(n_bins):
            if (left_set[b >> 5] >> np.uint32(b & 31)) & np.uint32(1):
                lefts += level_h[b]
        if lefts > total_h - lefts:
            include(left_set, n_bins)
            out[1] = 1
    return best


@kernel
def search(
    layout, kinds, new_pairs, shared, level, node, histograms, criterion, first, last, may, words, gains, splits,
    left_sets, values,
):  # fmt: skip
    """Features [first, last): complete the histograms of every new pair, then look for the best shared splits.

    level (c,) int64: see ``level_of``. may (t,) bool: the features that compete, (0,) for all. words (t,) int64: see
    ``extra_trees.draw_words``, (0,) if all cuts compete. gains (t,) float64,
    splits (t, 3) int64, left_sets (t, 8) uint32: what ``best_shared_cut`` and ``best_shared_set`` say of each feature.
    values (v,) float64: of the nodes, for path smoothing; (0,) without. The rest as for ``split.search``.
    """
    layout, histograms, criterion = HistogramLayout(*layout), HistogramArrays(*histograms), Criterion(*criterion)
    for i in range(new_pairs.shape[0]):
        complete(i, histograms, shared, new_pairs, node, layout, first, last)
    of, counts, packed_rows = histograms.of, histograms.counts, histograms.packed_rows
    starts, n_bins, units, rule = layout.starts, layout.n_bins, criterion.units, criterion.rule
    counted = 257 if counts.shape[1] > 0 else 0
    scratch = np.empty(257, np.int64), np.empty(257, np.int64), np.empty(counted, np.int64)
    sums = np.empty(257, np.int64), np.empty(257, np.int64), np.empty(counted, np.int64)
    cut_room = np.empty((3, 257))
    for j in range(first, last):
        begin, is_categorical, word = np.int64(starts[j]), False, words[j] if words.shape[0] > 0 else np.int64(-1)
        if may.shape[0] > 0 and not may[j]:
            gains[j] = 0.0
            continue
        if kinds is not None:  # decided when this is compiled, as in ``split``
            is_categorical = kinds[j] == 1
        if kinds is not None and is_categorical:
            gains[j] = best_shared_set(
                level, node, of, counts, packed_rows, begin, n_bins[j], units, rule, scratch, sums, word,
                values, splits[j], left_sets[j],
            )  # fmt: skip
        else:
            gains[j] = best_shared_cut(
                level, node, of, counts, packed_rows, begin, n_bins[j], units, rule, scratch, sums, cut_room,
                word, values, splits[j],
            )  # fmt: skip
