"""Split search of a level of packed nodes of an oblivious tree: what ``search`` finds, in a fraction of its time.

A cut's scores, summed over the nodes of the level, are estimated from scores in float32, as in ``packed_split``. They
tell which few cuts of all features may gain most; only these get exact gains, node by node in order. In a node of few
rows most cells are empty, and the sum changes at the others alone.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.nodes import BEGIN, END, NEW, SLOT, STATE, SUM_G, SUM_H
from gpuboost.kernels.common.records import Criterion, HistogramArrays, HistogramLayout, LevelScores
from gpuboost.kernels.common.vector import LANES
from gpuboost.kernels.histograms.cells import complete, next_features
from gpuboost.kernels.shared_splits.search import best_shared_cut, best_shared_set, gain_at, heavier_side
from gpuboost.kernels.splits.cuts import first_largest
from gpuboost.kernels.splits.gain import NOISE, score
from gpuboost.kernels.splits.packed_split import FEWER, SURELY, estimate, least_units, sum_all, sum_occupied

RIGHT, LEFT = 0, 1  # where missing values go
SUMS, STEPS = 0, 1  # forms of numbers
FEW = 16  # cuts of a feature that get exact gains one by one; all cuts at once take no longer than some more

_LOW, _NONE = np.int64(0xFFFF_FFFF), np.float32(0.0)


@kernel
@inlined
def _scores(running, cuts, shift, total, least, ridge, parent, about):
    """about[b]: the score of both sides of a cut, or the node's own where the cut is not allowed, and gains nothing."""
    estimate(running, cuts, shift, total, least, ridge, about)
    for b in range(cuts):
        about[b] = about[b] if about[b] > _NONE else parent


@kernel
@inlined
def _add(about, cuts, some, j, begin, n_bins, numbers, used, places):
    """Add a node's numbers to those of feature j, which are the sums and all steps up to a cell.

    some: True if the numbers are those of ``places`` and of the empty bins behind each. numbers (2, cells) and used
    (2, t): those of one side in LevelScores.
    """
    form = STEPS if some else SUMS
    if not used[form, j]:
        used[form, j] = True
        for b in range(begin, begin + n_bins):
            numbers[form, b] = 0.0
    if not some:
        for b in range(cuts):
            numbers[SUMS, begin + b] += np.float64(about[b])
        return
    before = 0.0
    for i in range(cuts):
        now = np.float64(about[i])
        numbers[STEPS, begin + places[i]] += now - before
        before = now


@kernel
@inlined
def _add_node(own, j, begin, n_bins, total, rows, least, ridge, parent, scores):
    """Add the scores of the cuts of feature j in a node.

    own: its histogram; total: its packed sums; parent: its score, and ridge, both in units. scores: LevelScores.
    """
    running, places, about, other = scores.running, scores.places, scores.about, scores.other
    stored, missing, cuts = own[begin : begin + n_bins], own[begin + n_bins], n_bins
    some = n_bins >= LANES and FEWER * rows < n_bins
    if some:
        cuts = sum_occupied(stored, running, places)
    else:
        sum_all(stored, running)
    _scores(running, cuts, np.int64(0), total, least, ridge, parent, about)
    _add(about, cuts, some, j, begin, n_bins, scores.numbers[RIGHT], scores.used[RIGHT], places)
    if missing == 0:
        return
    _scores(running, cuts, missing, total, least, ridge, parent, other)
    for b in range(cuts):  # what differs from the missing values on the right, which are there for every node
        other[b] -= about[b]
    _add(other, cuts, some, j, begin, n_bins, scores.numbers[LEFT], scores.used[LEFT], places)


@kernel
def _add_nodes(new_pairs, kinds, node, layout, histograms, criterion, scores):
    """Complete the histograms of every new pair, and add up the scores and the missing values of all open nodes."""
    of, starts, t, units = histograms.of, layout.starts, layout.features.shape[0], criterion.units
    least, ridge = least_units(units[1], criterion.rule[1]), criterion.rule[0] / units[1]
    shared = np.empty((new_pairs.shape[0], 0), np.int64)
    for i in range(new_pairs.shape[0]):
        begin = 0
        while begin < t:
            end = next_features(starts, begin, t)
            complete(i, histograms, shared, new_pairs, node, layout, begin, end)
            for side in range(2):
                v = new_pairs[i, side]
                if v < 0 or node[v, STATE] != NEW:
                    continue
                own, rows, g, h = of[node[v, SLOT]], node[v, END] - node[v, BEGIN], node[v, SUM_G], node[v, SUM_H]
                has_cuts, total = rows > 1 and h >= 2 * least, (g << 32) + h
                in_units = np.float32(ridge), np.float32(score(np.float64(g), np.float64(h), ridge))
                for j in range(begin, end):
                    first, n_bins, is_categorical = np.int64(starts[j]), np.int64(layout.n_bins[j]), False
                    scores.missing[j] += own[first + n_bins]
                    if kinds is not None:  # decided when this is compiled
                        is_categorical = kinds[j] == 1
                    if has_cuts and not is_categorical:
                        _add_node(own, j, first, n_bins, total, rows, least, *in_units, scores)
            begin = end


@kernel
def _make_sums(numbers, used, begin, n_bins):
    """Turn the numbers of a feature into sums. numbers (2, cells), used (2,): as for ``_add``."""
    if not used[SUMS]:
        for b in range(begin, begin + n_bins):
            numbers[SUMS, b] = 0.0
    if used[STEPS]:
        step = 0.0
        for b in range(begin, begin + n_bins):
            step += numbers[STEPS, b]
            numbers[SUMS, b] += step


@kernel
def _largest(j, begin, n_bins, some_missing, scores):
    """Turn all numbers of a feature into sums; return the largest of its cuts."""
    right, left = scores.numbers[RIGHT, SUMS], scores.numbers[LEFT, SUMS]
    cuts = n_bins if some_missing else n_bins - 1
    if cuts < 1:
        return 0.0
    _make_sums(scores.numbers[RIGHT], scores.used[RIGHT, :, j], begin, n_bins)
    of_feature = right[begin : begin + n_bins]
    top = of_feature[first_largest(of_feature, cuts)]
    if some_missing and cuts > 1:
        _make_sums(scores.numbers[LEFT], scores.used[LEFT, :, j], begin, n_bins)
        for b in range(begin, begin + n_bins):
            left[b] += right[b]
        of_feature = left[begin : begin + n_bins]
        top = max(top, of_feature[first_largest(of_feature, cuts - 1)])
    return top


@kernel
def _gain(level, parents, node, of, begin, cut, missing, criterion):
    """The gain of a cut over the nodes of the level. missing: cell of the missing values, if they go left, or -1."""
    units, rule, gain = criterion.units, criterion.rule, 0.0
    for i in range(level.shape[0]):
        v = level[i]
        own, left = of[node[v, SLOT]], np.int64(0)
        for c in range(begin, begin + cut + 1):
            left += own[c]
        if missing >= 0:
            left += own[missing]
        totals = (node[v, SUM_G], node[v, SUM_H], np.int64(0))
        of_sides = (left >> 32, left & _LOW, np.int64(0))
        gain += gain_at(*of_sides, totals, units, rule, rule[0], parents[i], 0.0, False)
    return gain


@kernel
def _are_few(begin, n_bins, some_missing, enough, estimates):
    """True if few cuts of a feature have estimates that are ``enough``."""
    count = 0
    for side in range(2 if some_missing else 1):
        for b in range(begin, begin + n_bins):
            count += estimates[side, b] >= enough
    return count <= FEW


@kernel
def _best_cut(level, parents, node, of, begin, n_bins, some_missing, enough, criterion, estimates, split):
    """The gain of the best of a feature's cuts whose estimates are ``enough``. split (3,): bin, missing_left, 0."""
    cuts, best, cut = n_bins if some_missing else n_bins - 1, 0.0, n_bins
    split[1], split[2] = 0, 0
    for side in range(2 if some_missing and cuts > 1 else 1):
        missing = begin + n_bins if side == LEFT else np.int64(-1)
        for b in range(cuts - side):
            if estimates[side, begin + b] >= enough:
                gain = _gain(level, parents, node, of, begin, b, missing, criterion)
                if gain > best or (gain == best and b < cut):
                    best, cut, split[1] = gain, b, side
    split[0] = cut
    return best


@kernel
def search(new_pairs, level, kinds, node, layout, histograms, criterion, scores, gains, splits, left_sets):
    """All features of a level: complete the histograms of every new pair, then look for the best shared splits.

    All nodes are packed, rows do not count, and leaf values are regularised by lambda alone. scores: LevelScores, which
    are overwritten. The other arguments are those of ``search.search``; features that cannot win have no gain.
    """
    layout, histograms, criterion = HistogramLayout(*layout), HistogramArrays(*histograms), Criterion(*criterion)
    scores, of, units, rule = LevelScores(*scores), histograms.of, criterion.units, criterion.rule
    scores.used[:], scores.missing[:] = False, 0
    _add_nodes(new_pairs, kinds, node, layout, histograms, criterion, scores)
    parents, all_parents, total_h = np.empty(level.shape[0]), 0.0, np.int64(0)
    for i in range(level.shape[0]):
        v = level[i]
        parents[i] = score(node[v, SUM_G] * units[0], node[v, SUM_H] * units[1], rule[0])
        all_parents += parents[i]
        total_h += node[v, SUM_H]
    tops, top = np.zeros(layout.features.shape[0]), 0.0
    for j in range(tops.shape[0]):
        if kinds is None or kinds[j] == 0:
            begin, n_bins = np.int64(layout.starts[j]), np.int64(layout.n_bins[j])
            tops[j] = _largest(j, begin, n_bins, scores.missing[j] != 0, scores)
            top = max(top, tops[j])
    room = np.empty(257, np.int64), np.empty(257, np.int64), np.empty(0, np.int64)
    sums = np.empty(257, np.int64), np.empty(257, np.int64), np.empty(0, np.int64)
    every = np.empty((3, 257))
    enough, none, floor = top * np.float64(SURELY), np.empty(0), max(rule[2], NOISE * all_parents)
    for j in range(tops.shape[0]):
        begin, n_bins, some_missing = np.int64(layout.starts[j]), np.int64(layout.n_bins[j]), scores.missing[j] != 0
        of_level, gains[j] = (level, node, of, histograms.counts, histograms.packed_rows, begin), 0.0
        if kinds is not None and kinds[j] == 1:
            gains[j] = best_shared_set(
                *of_level, n_bins, units, rule, room, sums, np.int64(-1), none, splits[j], left_sets[j]
            )
        elif top > 0.0 and tops[j] >= enough:
            estimates = scores.numbers[:, SUMS]
            if not _are_few(begin, n_bins, some_missing, enough, estimates):
                gains[j] = best_shared_cut(
                    *of_level, n_bins, units, rule, room, sums, every, np.int64(-1), none, splits[j]
                )
                continue
            best = _best_cut(
                level, parents, node, of, begin, n_bins, some_missing, enough, criterion, estimates, splits[j]
            )
            if best > floor:
                gains[j] = best
                if not some_missing:  # none seen on this level
                    splits[j, 1] = heavier_side(*of_level, splits[j, 0], total_h, room, sums)
