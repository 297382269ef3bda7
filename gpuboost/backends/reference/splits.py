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
class SplitCriterion:
    """The measure of a tree's splits. Sums of rows are (3,) int64: g, h, count."""

    units: tuple[float, float]  # value of one unit of g and of h
    limits: Limits
    rows_per_h: float  # rows per unit of h in the whole tree

    def score(self, sums: Array, ridge: float, within: NodeBounds | None = None) -> float:
        """Twice the loss reduction of a leaf: G^2 / (H + lambda); with ``within``, that of a value in these bounds."""
        g, h = self._measured(sums)
        return g * g / (h + ridge) if within is None else within.score(g, h, ridge)

    def both(self, f: int, left: Array, right: Array, ridge: float, within: NodeBounds | None) -> float:
        """Twice the loss reduction of the two leaves; (G_L - G_R)^2 / (H + lambda) for a sign stump."""
        if within is not None:
            return within.both(f, self._measured(left), self._measured(right), ridge)
        if self.limits.signed:
            return self.score(np.array([left[0] - right[0], left[1] + right[1]]), ridge)
        return self.score(left, ridge) + self.score(right, ridge)

    def shared_gain(self, left: Array, total: Array, within: NodeBounds | None, ridge: float) -> float:
        """The gain of a shared split at one of its nodes; 0 if a side is not allowed."""
        right = total - left
        if not (self.allows(left) and self.allows(right)):
            return 0.0
        both = self.score(left, ridge, within) + self.score(right, ridge, within)
        return both - self.score(total, ridge, within)

    def ridge(self, sums: Array, *, categorical: bool) -> float:
        """Lambda of a feature with these sums of bins."""
        many = categorical and sum(self.sees(cell) for cell in sums) > ONE_AGAINST_REST
        return self.limits.reg_lambda + self.limits.categories.reg_lambda if many else self.limits.reg_lambda

    def rows(self, sums: Array) -> float:
        """Number of rows, estimated by their share of h."""
        return int(sums[1]) * self.rows_per_h

    def allows(self, side: Array) -> bool:
        """True if these rows may be a leaf."""
        limits = self.limits
        return bool(
            side[1] > 0
            and int(side[1]) * self.units[1] >= limits.min_child_weight
            and (limits.min_samples_leaf <= 1 or side[2] >= limits.min_samples_leaf)
        )

    def sees(self, cell: Array) -> bool:
        """True if the node has rows of this bin. Rows of g = h = 0 are seen only where rows are counted."""
        return bool(cell[0] != 0 or cell[1] != 0 or (self.limits.min_samples_leaf > 1 and cell[2] != 0))

    def _measured(self, sums: Array) -> tuple[float, float]:
        """G and H."""
        return int(sums[0]) * self.units[0], int(sums[1]) * self.units[1]


@dataclass(frozen=True)
class Competition:
    """The cuts that compete, and what is added to their gains."""

    cuts: dict[int, Array] | None = None  # feature to (8,) uint32, a bit for each allowed cut; None: every cut
    draws: Key | None = None  # of the one cut of each feature that competes; None: all compete
    noise: Noise | None = None  # with which ``winner`` chooses the feature
    costs: SplitCosts | None = None  # of which the gain of each feature is net

    def word(self, sums: tuple[int, int], f: int) -> int | None:
        """The word that draws the cut of a feature in a node of these sums; None if all cuts compete."""
        return None if self.draws is None else word_of(sums, f, self.draws)

    def winner(
        self, splits: dict[int, Split | None], sums: tuple[int, int], h: int, criterion: SplitCriterion
    ) -> Split | None:
        """The split, of the best ones of each feature, that wins in rows of this sum of h."""
        if self.costs is not None:
            splits = {f: split and self._net(split, h, self.costs, criterion) for f, split in splits.items()}
        won = winner({f: split.gain if split else 0.0 for f, split in splits.items()}, sums, self.noise)
        return None if won is None else splits[won]

    @staticmethod
    def _net(split: Split, h: int, costs: SplitCosts, criterion: SplitCriterion) -> Split | None:
        """The split with its gain net of costs; None if nothing is left."""
        net, least = np.array([[split.gain]]), criterion.limits.min_split_gain
        charge(net, np.array([h]), np.array([split.feature]), costs, criterion.rows_per_h, least)
        return replace(split, gain=float(net[0, 0])) if net[0, 0] > 0.0 else None


EVERY_CUT = Competition()


def best_split(
    histogram: dict[int, Array],
    totals: tuple[int, int, int],
    categorical: Array,
    criterion: SplitCriterion,
    competition: Competition = EVERY_CUT,
    within: NodeBounds | None = None,
) -> Split | None:
    """The candidate of the largest gain, the first of equals.

    With ``within``, leaf values are clipped to the node's bounds, and a constrained feature's direction is enforced.

    histogram: feature to (b + 1, 3) int64, of missing values last; categorical: (d,) bool.
    """
    splits: dict[int, Split | None] = {}
    total, (g, h, _) = np.array(totals, np.int64), totals
    if within is not None and within.low >= within.high:
        return None  # all leaves below have one value
    for f in sorted(histogram):
        splits[f] = None
        allowed = None if competition.cuts is None else competition.cuts[f]
        if allowed is not None and not allowed.any():
            continue
        feature = _Feature(f, histogram[f], total, bool(categorical[f]), competition.word((g, h), f))
        splits[f] = _best_of_feature(feature, criterion, allowed, within)
    return competition.winner(splits, (g, h), h, criterion)


def shared_splits(
    histograms: list[dict[int, Array]],
    totals: list[tuple[int, int, int]],
    categorical: Array,
    criterion: SplitCriterion,
    competition: Competition = EVERY_CUT,
    within: list[NodeBounds] | None = None,
    depth: int = 0,
) -> list[Split] | None:
    """One split for all nodes of a level, each with its own gain, before costs; None if no candidate gains.

    The candidates are those of the level's summed histogram. A candidate's gain is the sum over the nodes, in their
    order; a node in which a side is not allowed gains 0. The first of the largest gains is the split of all nodes.

    histograms, totals, within: one per node, as for ``best_split``; depth: of the level, for sums in ``winner``.
    """
    splits: dict[int, Split | None] = {}
    own_totals = [np.array(total, np.int64) for total in totals]
    of_level = np.sum(own_totals, axis=0)
    bounds: Sequence[NodeBounds | None] = within or [None] * len(totals)
    for f in sorted(histograms[0]):
        nodes = [histogram[f] for histogram in histograms]
        word = competition.word((depth, 0), f)
        feature = _Feature(f, np.sum(nodes, axis=0), of_level, bool(categorical[f]), word)
        splits[f] = _best_shared(feature, nodes, own_totals, bounds, criterion)
    best = competition.winner(splits, (depth, 0), int(of_level[1]), criterion)
    if best is None:
        return None
    nodes = [histogram[best.feature] for histogram in histograms]
    ridge = criterion.ridge(np.sum(nodes, axis=0), categorical=bool(categorical[best.feature]))
    lefts = [_left(sums, best) for sums in nodes]
    gains = [criterion.shared_gain(*node, ridge) for node in zip(lefts, own_totals, bounds, strict=True)]
    return [replace(best, gain=gain) for gain in gains]


@dataclass(frozen=True)
class _Candidate:
    left: Array  # (3,) int64: g, h, count
    bin: int
    missing_left: bool
    categories: frozenset[int] | None = None


@dataclass(frozen=True)
class _Feature:
    """A feature of a node, or of a level that shares a split."""

    number: int
    sums: Array  # (b + 1, 3) int64, of missing values last
    total: Array  # (3,) int64, of all rows
    categorical: bool
    word: int | None  # draws the cut that competes; None: all compete

    @property
    def missing(self) -> int:
        """Bin of missing values."""
        return len(self.sums) - 1


def _best_of_feature(
    feature: _Feature, criterion: SplitCriterion, cuts: Array | None, within: NodeBounds | None
) -> Split | None:
    total, ridge = feature.total, criterion.ridge(feature.sums, categorical=feature.categorical)
    free, parent = criterion.score(total, ridge), criterion.score(total, ridge, within)
    gain, best = max(criterion.limits.min_split_gain, NOISE * max(abs(parent), free)), None
    for candidate in _candidates(feature, criterion):
        if cuts is not None and not cuts[candidate.bin >> 5] >> np.uint32(candidate.bin & 31) & np.uint32(1):
            continue
        right = total - candidate.left
        if not (criterion.allows(candidate.left) and criterion.allows(right)):
            continue
        here = criterion.both(feature.number, candidate.left, right, ridge, within) - parent
        if here > gain:
            gain, best = here, candidate
    return None if best is None else _with_missing_side(best, gain, feature, criterion)


def _best_shared(
    feature: _Feature, of_nodes: list[Array], totals: list[Array], within: Sequence[NodeBounds | None],
    criterion: SplitCriterion,
) -> Split | None:  # fmt: skip
    ridge = criterion.ridge(feature.sums, categorical=feature.categorical)
    parents = _in_order(criterion.score(total, ridge, of) for total, of in zip(totals, within, strict=True))
    gain, best = max(criterion.limits.min_split_gain, NOISE * parents), None
    for candidate in _candidates(feature, criterion):
        lefts = (_left(sums, candidate) for sums in of_nodes)
        here = _in_order(criterion.shared_gain(*node, ridge) for node in zip(lefts, totals, within, strict=True))
        if here > gain:
            gain, best = here, candidate
    return None if best is None else _with_missing_side(best, gain, feature, criterion)


def _in_order(numbers: Iterator[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total


def _left(sums: Array, split: _Candidate | Split) -> Array:
    """(3,) sums of the left side of a node."""
    if split.categories is not None:
        return sums[sorted(split.categories)].sum(axis=0)
    return sums[: split.bin + 1].sum(axis=0) + (sums[-1] if split.missing_left else 0)


def _candidates(feature: _Feature, criterion: SplitCriterion) -> Iterator[_Candidate]:
    """The cuts or sets of one feature that compete: all, or those that its word draws."""
    used = [c for c, cell in enumerate(feature.sums) if criterion.sees(cell)]
    if feature.categorical:
        yield from _sets(feature, used, criterion)
        return
    only = None if feature.word is None else random_cut(used, feature.missing, feature.word)
    yield from (cut for cut in _cuts(feature, criterion) if only is None or cut.bin == only)


def _cuts(feature: _Feature, criterion: SplitCriterion) -> Iterator[_Candidate]:
    """Every cut, with missing values right, then left if there are any."""
    sums, b = feature.sums, feature.missing
    some_missing = criterion.sees(sums[b])
    left = np.zeros(3, np.int64)
    for c in range(b if some_missing else b - 1):
        left = left + sums[c]
        yield _Candidate(left, c, False)
        if some_missing and c < b - 1:
            yield _Candidate(left + sums[b], c, True)


def _sets(feature: _Feature, used: list[int], criterion: SplitCriterion) -> Iterator[_Candidate]:
    """Prefixes of the categories sorted by g / (h + smoothing), from either end; single categories if there are few.

    Missing, rare and unseen categories stay on the other side. Small categories and small steps are left out, as they
    fit noise; rows are estimated by their share of h.
    """
    if len(used) <= ONE_AGAINST_REST:
        yield from (_one_against_rest(feature, used, used[i]) for i in _places(len(used), feature.word))
        return
    sums, b, (unit_g, unit_h) = feature.sums, feature.missing, criterion.units
    smoothing, _, least_rows, least_group = criterion.limits.categories
    large = [c for c in used if c != b and criterion.rows(sums[c]) >= least_rows]
    ratio = {c: int(sums[c, 0]) * unit_g / (int(sums[c, 1]) * unit_h + smoothing) for c in large}
    order = sorted(large, key=lambda c: (ratio[c], c))
    places = _places(min(len(order), MOST_CATEGORIES), feature.word)
    for sequence in (order, order[::-1]):
        left, group = np.zeros(3, np.int64), 0.0
        for i, c in enumerate(sequence[:MOST_CATEGORIES]):
            left, group = left + sums[c], group + criterion.rows(sums[c])
            right = feature.total - left
            if not (criterion.allows(left) and criterion.allows(right)):
                continue
            if group < least_group or criterion.rows(right) < least_group:
                continue
            group, chosen = 0.0, frozenset(sequence[: i + 1])
            if i not in places:
                continue
            yield _Candidate(left, 0, b in chosen, chosen)


def _one_against_rest(feature: _Feature, used: list[int], c: int) -> _Candidate:
    """One category on the left; missing values against all others, which go left."""
    if c == feature.missing:
        return _Candidate(feature.total - feature.sums[c], 0, False, frozenset(used) - {c})
    return _Candidate(feature.sums[c], 0, False, frozenset([c]))


def _places(count: int, word: int | None) -> range:
    """Places of the candidates that compete: all, or the one that is drawn."""
    if word is None:
        return range(count)
    only = place_of(word, count)
    return range(only, only + 1) if count else range(0)


def _with_missing_side(candidate: _Candidate, gain: float, feature: _Feature, criterion: SplitCriterion) -> Split:
    """The split with missing values sent to the heavier child if the node has none."""
    missing_left, categories = candidate.missing_left, candidate.categories
    if not criterion.sees(feature.sums[feature.missing]):
        missing_left = bool(candidate.left[1] > feature.total[1] - candidate.left[1])
        if categories is not None and missing_left:
            categories = categories | {feature.missing}
    return Split(feature.number, gain, candidate.bin, missing_left, categories)
