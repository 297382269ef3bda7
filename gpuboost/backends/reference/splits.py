"""Definition of the split search: every candidate of every feature, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuboost.backends.numerics.extra_trees import place_of, random_cut, word_of
from gpuboost.backends.numerics.monotone import NodeBounds
from gpuboost.backends.numerics.random_strength import winner
from gpuboost.backends.numerics.split_costs import charge
from gpuboost.keys import Key
from gpuboost.types import Array, Limits, Noise, SplitCosts

NOISE = 2.0**-40  # a gain below this share of the parent's score is rounding, not gain
ONE_AGAINST_REST = 4  # up to this many categories in a node, single ones are split off
MOST_CATEGORIES = 32  # on the smaller side of a categorical split


@dataclass(frozen=True)
class Split:
    """A candidate split of a node."""

    feature: int
    gain: float
    bin: int
    missing_left: bool
    categories: frozenset[int] | None  # bins that go left; None if numeric

    def goes_left(self, codes: Array, missing: int) -> Array:
        """(m,) bool. codes (m,) uint8; ``missing`` is the code of a missing value."""
        if self.categories is not None:
            return np.isin(codes, sorted(self.categories))
        return np.where(codes == missing, self.missing_left, codes <= self.bin)

    def words(self, missing: int) -> Array:
        """(8,) uint32: the categories as 256 bits, without missing values, which ``missing_left`` is for."""
        words = [0] * 8
        for c in (self.categories or frozenset()) - {missing}:
            words[c // 32] |= 1 << (c % 32)
        return np.array(words, np.uint32)


@dataclass(frozen=True)
class _Candidate:
    left: Array  # (3,) int64: g, h, count
    bin: int
    missing_left: bool
    categories: frozenset[int] | None = None


def best_split(
    histogram: dict[int, Array],
    totals: tuple[int, int, int],
    units: tuple[float, float],
    limits: Limits,
    n_bins: Array,
    categorical: Array,
    rows_per_h: float,
    cuts: dict[int, Array] | None = None,
    noise: Noise | None = None,
    within: NodeBounds | None = None,
    draws: Key | None = None,
    costs: SplitCosts | None = None,
) -> Split | None:
    """The candidate of the largest gain, the first of equals. With ``noise``, ``winner`` chooses the feature.

    With ``costs``, the gain of each feature is net of them. With ``draws``, one cut of each feature competes. With
    ``within``, leaf values are clipped to the node's bounds, and a constrained feature's direction is enforced.

    histogram: feature to (b + 1, 3) int64; rows_per_h: rows per unit of h in the whole tree; cuts: feature to (8,)
    uint32, a bit for each allowed cut, None for every cut.
    """
    splits: dict[int, Split | None] = {}
    total = np.array(totals, np.int64)
    if within is not None and within.low >= within.high:
        return None  # all leaves below have one value
    for f in sorted(histogram):
        splits[f] = None
        allowed = None if cuts is None else cuts[f]
        if allowed is not None and not allowed.any():
            continue
        splits[f] = _best_of_feature(
            f,
            histogram[f],
            total,
            units,
            limits,
            int(n_bins[f]),
            bool(categorical[f]),
            rows_per_h,
            allowed,
            within,
            None if draws is None else word_of((totals[0], totals[1]), f, draws),
        )
    _charge(splits, totals[1], costs, rows_per_h, limits)
    return _won(splits, (totals[0], totals[1]), noise)


def shared_splits(
    histograms: list[dict[int, Array]],
    totals: list[tuple[int, int, int]],
    units: tuple[float, float],
    limits: Limits,
    n_bins: Array,
    categorical: Array,
    rows_per_h: float,
    noise: Noise | None = None,
    depth: int = 0,
    draws: Key | None = None,
    within: list[NodeBounds] | None = None,
    costs: SplitCosts | None = None,
) -> list[Split] | None:
    """One split for all nodes of a level, each with its own gain, before costs; None if no candidate gains.

    The candidates are those of the level's summed histogram. A candidate's gain is the sum over the nodes, in their
    order; a node in which a side is not allowed gains 0. The first of the largest gains is the split of all nodes.

    histograms, totals, within: one per node, as for ``best_split``; depth: of the level, for sums in ``winner``.
    """
    splits: dict[int, Split | None] = {}
    own_totals = [np.array(total, np.int64) for total in totals]
    bounds: Sequence[NodeBounds | None] = within or [None] * len(totals)
    for f in sorted(histograms[0]):
        nodes = [histogram[f] for histogram in histograms]
        word = None if draws is None else word_of((depth, 0), f, draws)
        rest = int(n_bins[f]), bool(categorical[f]), rows_per_h, word
        splits[f] = _best_shared(f, nodes, own_totals, bounds, units, limits, *rest)
    _charge(splits, sum(total[1] for total in totals), costs, rows_per_h, limits)
    best = _won(splits, (depth, 0), noise)
    if best is None:
        return None
    f, b = best.feature, int(n_bins[best.feature])
    ridge = _ridge(sum(histogram[f] for histogram in histograms), bool(categorical[f]), limits)
    lefts = [_left(histogram[f], best, b) for histogram in histograms]
    gains = [_gain(*node, units, limits, ridge) for node in zip(lefts, own_totals, bounds, strict=True)]
    return [replace(best, gain=gain) for gain in gains]


def _charge(
    splits: dict[int, Split | None], h: int, costs: SplitCosts | None, rows_per_h: float, limits: Limits
) -> None:
    """Take the costs from the gains of the features' splits, in rows of this sum of h; None where nothing is left."""
    for f, split in splits.items():
        if split is not None and costs is not None:
            net = np.array([[split.gain]])
            charge(net, np.array([h]), np.array([f]), costs, rows_per_h, limits.min_split_gain)
            splits[f] = replace(split, gain=float(net[0, 0])) if net[0, 0] > 0.0 else None


def _won(splits: dict[int, Split | None], sums: tuple[int, int], noise: Noise | None) -> Split | None:
    won = winner({f: split.gain if split else 0.0 for f, split in splits.items()}, sums, noise)
    return None if won is None else splits[won]


def _best_shared(
    f: int,
    of_nodes: list[Array],
    totals: list[Array],
    within: Sequence[NodeBounds | None],
    units: tuple[float, float],
    limits: Limits,
    b: int,
    categorical: bool,
    rows_per_h: float,
    word: int | None,
) -> Split | None:
    level, total = np.sum(of_nodes, axis=0), np.sum(totals, axis=0)
    ridge = _ridge(level, categorical, limits)
    parents = _in_order(_held_score(*node, units, ridge) for node in zip(totals, within, strict=True))
    gain, best = max(limits.min_split_gain, NOISE * parents), None
    used = [c for c in range(b + 1) if _seen(level[c], limits)]
    for candidate in _candidates(level, used, total, b, units, limits, rows_per_h, categorical, word):
        lefts = (_left(sums, candidate, b) for sums in of_nodes)
        here = _in_order(_gain(*node, units, limits, ridge) for node in zip(lefts, totals, within, strict=True))
        if here > gain:
            gain, best = here, candidate
    return None if best is None else _with_missing_side(best, f, gain, level[b], total, b, limits)


def _in_order(numbers: Iterator[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total


def _left(sums: Array, split: _Candidate | Split, b: int) -> Array:
    """(3,) sums of the left side of a node."""
    if split.categories is not None:
        return sums[sorted(split.categories)].sum(axis=0)
    return sums[: split.bin + 1].sum(axis=0) + (sums[b] if split.missing_left else 0)


def _gain(
    left: Array, total: Array, within: NodeBounds | None, units: tuple[float, float], limits: Limits, ridge: float
) -> float:
    """The gain of a shared split at one of its nodes; 0 if a side is not allowed."""
    right = total - left
    if not _allowed(left, units, limits) or not _allowed(right, units, limits):
        return 0.0
    both = _held_score(left, within, units, ridge) + _held_score(right, within, units, ridge)
    return both - _held_score(total, within, units, ridge)


def _held_score(sums: Array, within: NodeBounds | None, units: tuple[float, float], ridge: float) -> float:
    """``_score``, with values that are regularised by more than lambda if there is ``within``."""
    return _score(sums, units, ridge) if within is None else within.score(*_measured(sums, units), ridge)


def _ridge(sums: Array, categorical: bool, limits: Limits) -> float:
    many = categorical and sum(_seen(cell, limits) for cell in sums) > ONE_AGAINST_REST
    return limits.reg_lambda + limits.categories.reg_lambda if many else limits.reg_lambda


def _best_of_feature(
    f: int,
    sums: Array,
    total: Array,
    units: tuple[float, float],
    limits: Limits,
    b: int,
    categorical: bool,
    rows_per_h: float,
    cuts: Array | None,
    within: NodeBounds | None,
    word: int | None,
) -> Split | None:
    used = [c for c in range(b + 1) if _seen(sums[c], limits)]
    ridge = _ridge(sums, categorical, limits)
    free = _score(total, units, ridge)
    parent = _held_score(total, within, units, ridge)
    gain, best = max(limits.min_split_gain, NOISE * max(abs(parent), free)), None
    for candidate in _candidates(sums, used, total, b, units, limits, rows_per_h, categorical, word):
        if cuts is not None and not cuts[candidate.bin >> 5] >> np.uint32(candidate.bin & 31) & np.uint32(1):
            continue
        right = total - candidate.left
        if not _allowed(candidate.left, units, limits) or not _allowed(right, units, limits):
            continue
        if within is None:
            here = _both(candidate.left, right, units, limits, ridge) - parent
        else:
            here = within.both(f, _measured(candidate.left, units), _measured(right, units), ridge) - parent
        if here > gain:
            gain, best = here, candidate
    return None if best is None else _with_missing_side(best, f, gain, sums[b], total, b, limits)


def _candidates(
    sums: Array,
    used: list[int],
    total: Array,
    b: int,
    units: tuple[float, float],
    limits: Limits,
    rows_per_h: float,
    categorical: bool,
    word: int | None,
) -> Iterator[_Candidate]:
    """The cuts or sets of one feature that compete; with ``word``, those that it draws."""
    if categorical:
        yield from _sets(sums, used, total, b, units, limits, rows_per_h, word)
        return
    only = None if word is None else random_cut(used, b, word)
    yield from (cut for cut in _cuts(sums, b, limits) if only is None or cut.bin == only)


def _cuts(sums: Array, b: int, limits: Limits) -> Iterator[_Candidate]:
    """Every cut, with missing values right, then left if there are any."""
    missing = sums[b]
    some_missing = _seen(missing, limits)
    left = np.zeros(3, np.int64)
    for c in range(b if some_missing else b - 1):
        left = left + sums[c]
        yield _Candidate(left, c, False)
        if some_missing and c < b - 1:
            yield _Candidate(left + missing, c, True)


def _sets(
    sums: Array,
    used: list[int],
    total: Array,
    b: int,
    units: tuple[float, float],
    limits: Limits,
    rows_per_h: float,
    word: int | None,
) -> Iterator[_Candidate]:
    """Prefixes of the categories sorted by g / (h + smoothing), from either end; single categories if there are few.

    Missing, rare and unseen categories stay on the other side. Small categories and small steps are left out, as they
    fit noise; rows are estimated by their share of h.
    """
    if len(used) <= ONE_AGAINST_REST:
        yield from (_one_against_rest(sums, used, total, b, used[i]) for i in _places(len(used), word))
        return
    smoothing, _, least_rows, least_group = limits.categories
    large = [c for c in used if c != b and int(sums[c, 1]) * rows_per_h >= least_rows]
    ratio = {c: int(sums[c, 0]) * units[0] / (int(sums[c, 1]) * units[1] + smoothing) for c in large}
    order = sorted(large, key=lambda c: (ratio[c], c))
    places = _places(min(len(order), MOST_CATEGORIES), word)
    for sequence in (order, order[::-1]):
        left, group = np.zeros(3, np.int64), 0.0
        for i, c in enumerate(sequence[:MOST_CATEGORIES]):
            left, group = left + sums[c], group + int(sums[c, 1]) * rows_per_h
            right = total - left
            if not _allowed(left, units, limits) or not _allowed(right, units, limits):
                continue
            if group < least_group or int(right[1]) * rows_per_h < least_group:
                continue
            group, chosen = 0.0, frozenset(sequence[: i + 1])
            if i not in places:
                continue
            yield _Candidate(left, 0, b in chosen, chosen)


def _one_against_rest(sums: Array, used: list[int], total: Array, b: int, c: int) -> _Candidate:
    """One category on the left; missing values against all others, which go left."""
    if c == b:
        return _Candidate(total - sums[c], 0, False, frozenset(used) - {c})
    return _Candidate(sums[c], 0, False, frozenset([c]))


def _places(count: int, word: int | None) -> range:
    """Places of the candidates that compete: all, or the one that is drawn."""
    if word is None:
        return range(count)
    only = place_of(word, count)
    return range(only, only + 1) if count else range(0)


def _allowed(side: Array, units: tuple[float, float], limits: Limits) -> bool:
    return bool(
        side[1] > 0
        and int(side[1]) * units[1] >= limits.min_child_weight
        and (limits.min_samples_leaf <= 1 or side[2] >= limits.min_samples_leaf)
    )


def _both(left: Array, right: Array, units: tuple[float, float], limits: Limits, ridge: float) -> float:
    """Twice the loss reduction of the two leaves; (G_L - G_R)^2 / (H + lambda) for a sign stump."""
    if limits.signed:
        return _score(np.array([left[0] - right[0], left[1] + right[1]]), units, ridge)
    return _score(left, units, ridge) + _score(right, units, ridge)


def _score(sums: Array, units: tuple[float, float], ridge: float) -> float:
    """Twice the loss reduction of a leaf with these sums: G^2 / (H + lambda)."""
    g, h = _measured(sums, units)
    return g * g / (h + ridge)


def _measured(sums: Array, units: tuple[float, float]) -> tuple[float, float]:
    """G and H."""
    return int(sums[0]) * units[0], int(sums[1]) * units[1]


def _seen(cell: Array, limits: Limits) -> bool:
    """True if the node has rows of this bin. Rows of g = h = 0 are seen only where rows are counted."""
    return bool(cell[0] != 0 or cell[1] != 0 or (limits.min_samples_leaf > 1 and cell[2] != 0))


def _with_missing_side(
    candidate: _Candidate, f: int, gain: float, missing: Array, total: Array, b: int, limits: Limits
) -> Split:
    """The split with missing values sent to the heavier child if the node has none."""
    missing_left, categories = candidate.missing_left, candidate.categories
    if not _seen(missing, limits):
        missing_left = bool(candidate.left[1] > total[1] - candidate.left[1])
        if categories is not None and missing_left:
            categories = categories | {b}
    return Split(f, gain, candidate.bin, missing_left, categories)
