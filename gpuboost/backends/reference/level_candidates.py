"""Candidate splits by NumPy, of several nodes at once: those of ``splits``, in the same order.

Sums are arrays (s, q, d, .) int64 of g, h and, where rows are counted, count, of q nodes and d features. Those of the
bins have their missing values at ``n_bins``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuboost.backends.reference.level_values import GH, LeafValues
from gpuboost.backends.reference.splits import MOST_CATEGORIES, ONE_AGAINST_REST
from gpuboost.types import Array, Limits


@dataclass(frozen=True, slots=True)
class GainRules:
    """Limits of splits, and gains, of arrays."""

    units: tuple[float, float]
    limits: Limits
    rows_per_h: float  # of the whole tree

    @property
    def counts(self) -> bool:
        """True if rows are counted."""
        return self.limits.min_samples_leaf > 1

    def seen(self, sums: Array) -> Array:
        """Look which bins a node has rows of. Rows of g = h = 0 are seen only where rows are counted."""
        return (sums != 0).any(axis=0)

    def allowed(self, side: Array) -> Array:
        """Find the sides of splits that satisfy the limits."""
        allowed: Array = (side[1] > 0) & (side[1] * self.units[1] >= self.limits.min_child_weight)
        return allowed & (side[2] >= self.limits.min_samples_leaf) if self.counts else allowed

    def measured(self, sums: Array | GH) -> GH:
        """G and H."""
        return sums[0] * self.units[0], sums[1] * self.units[1]

    def gains(
        self, left: Array, total: Array, real: Array | np.bool_, ridge: Array, values: LeafValues, without: float
    ) -> Array:
        """Gains of the candidates that are real, by the sums on their left; ``without`` where a side is not allowed."""
        right = total - left
        allowed = real & self.allowed(left) & self.allowed(right)
        own = ridge[0, 0] if ridge.size == 1 else np.broadcast_to(ridge, allowed.shape)[allowed]
        # sums[:2, allowed] would be a third of a fit's time
        of_left = self.measured((left[0][allowed], left[1][allowed]))
        of_right = self.measured((right[0][allowed], right[1][allowed]))
        both = values.at(allowed).both(of_left, of_right, own)
        gains = np.full(allowed.shape, without)
        parent = values.score(*self.measured(total), ridge)
        gains[allowed] = both - np.broadcast_to(parent, allowed.shape)[allowed]
        return gains


class CutCandidates:
    """Cuts of numeric features: at each bin, with missing values right and then, if some nodes have any, left."""

    def __init__(self, sums: Array, n_bins: Array, rules: GainRules, words: Array | None) -> None:
        """words: see ``FeatureChoice.words``."""
        q, d, b = sums.shape[1:]
        self._n_bins, self._features = n_bins, np.arange(d)
        self.some_missing = some = rules.seen(sums[:, :, self._features, n_bins])
        cut, last = np.arange(b), n_bins[None, :, None]
        ways = [np.where(some[..., None], cut < last, cut < last - 1)]
        if some.any():
            ways.append(some[..., None] & (cut < last - 1))
        if words is not None:
            drawn = self._drawn(rules.seen(sums), words)
            ways = [way & (cut == drawn) for way in ways]
        self._ways = len(ways)
        self.real = np.stack(ways, axis=-1).reshape(q, d, -1)  # (q, d, b * ways)
        self.ridge = np.full((1, 1, 1), rules.limits.reg_lambda)
        self.own = self.lefts(sums)

    def _drawn(self, seen: Array, words: Array) -> Array:
        """(q, d, 1) the cuts that compete, -1 for none: as ``extra_trees.random_cut``."""
        values = seen & (np.arange(seen.shape[2]) < self._n_bins[:, None])
        first, last = values.argmax(axis=2), seen.shape[2] - 1 - values[..., ::-1].argmax(axis=2)
        count = np.where(values.any(axis=2), last - first + self.some_missing, 0)
        return np.where(count > 0, first + _place_of(words, count), -1)[..., None]

    def lefts(self, sums: Array) -> Array:
        """(s, q, d, b * ways) sums on the left of each candidate."""
        left = np.cumsum(sums, axis=3)  # no cut is real from the missing values on
        missing = sums[:, :, self._features, self._n_bins, None]
        return left if self._ways == 1 else _flat(np.stack([left, left + missing], axis=-1))

    def chosen(self, nodes: Array, features: Array, places: Array) -> tuple[Array, Array, Array]:
        """Bins, sides of missing values and (., 8) left sets of these candidates."""
        bins, ways = np.divmod(places, self._ways)
        return bins, ways == 1, np.zeros((len(nodes), 8), np.uint32)


class SetCandidates:
    """Sets of categories: prefixes of those sorted by their ratio, from either end; single ones if there are few."""

    def __init__(self, sums: Array, n_bins: Array, rules: GainRules, words: Array | None) -> None:
        """words: see ``FeatureChoice.words``."""
        self._n_bins, limits, codes = n_bins[:, None], rules.limits, np.arange(sums.shape[3])
        smoothing, more_ridge, least_rows, _ = limits.categories
        self._used = rules.seen(sums)
        self.some_missing = np.take_along_axis(self._used, self._n_bins[None], axis=2)[..., 0]
        n_used = self._used.sum(axis=2)
        self._few = few = (n_used <= ONE_AGAINST_REST)[..., None]
        self.ridge = np.where(few, limits.reg_lambda, limits.reg_lambda + more_ridge)
        large = self._used & (codes != self._n_bins) & (sums[1] * rules.rows_per_h >= least_rows)
        ratio = np.full(large.shape, np.inf)
        np.divide(sums[0] * rules.units[0], sums[1] * rules.units[1] + smoothing, out=ratio, where=large)
        competing = np.where(few, self._used, large)
        order = np.lexsort((np.where(few, 0.0, ratio), ~competing))  # codes of equals increase
        count, place = competing.sum(axis=2)[..., None], np.arange(min(MOST_CATEGORIES, len(codes)))
        backward = np.take_along_axis(order, np.maximum(count - 1 - place, 0), axis=2)
        self._order = np.stack([order[..., : len(place)], backward], axis=2)  # (q, d, 2, .)
        self.own = self.lefts(sums)
        in_order = (place < count)[:, :, None] & (~few[..., None] | np.array([[True], [False]]))
        real = self._large_enough(sums, in_order, rules)
        if words is not None:
            only = _place_of(words, np.minimum(count[..., 0], MOST_CATEGORIES))
            real = real & (place == only[..., None, None])
        self.real = real.reshape(self.own.shape[1:])

    def lefts(self, sums: Array) -> Array:
        """(s, q, d, k) sums on the left of each candidate, of these nodes or of the ones that they are the sum of."""
        single = np.take_along_axis(sums[..., None, :], self._order[None], axis=4)
        others = np.where(self._used, sums, 0).sum(axis=3)[..., None, None] - single
        is_missing = self._order == self._n_bins[..., None]
        return _flat(np.where(self._few[..., None], np.where(is_missing, others, single), np.cumsum(single, axis=4)))

    def chosen(self, nodes: Array, features: Array, places: Array) -> tuple[Array, Array, Array]:
        """Bins, sides of missing values and (., 8) left sets of these candidates."""
        sets = np.zeros((len(nodes), 256), np.bool_)
        for left, *candidate in zip(sets, nodes, features, places, strict=True):
            self._fill(left, *candidate)
        no = np.zeros(len(nodes), np.int64)
        return no, no.astype(np.bool_), np.packbits(sets, axis=1, bitorder="little").view("<u4").astype(np.uint32)

    def _fill(self, left: Array, node: int, feature: int, place: int) -> None:
        """Set True for the categories of one candidate."""
        end, place = divmod(place, self._order.shape[3])
        order = self._order[node, feature, end, : place + 1]
        if not self._few[node, feature, 0]:
            left[order] = True
        elif order[-1] == self._n_bins[feature, 0]:
            left[: order[-1]] = self._used[node, feature, : order[-1]]
        else:
            left[order[-1]] = True

    def _large_enough(self, sums: Array, real: Array, rules: GainRules) -> Array:
        """(q, d, 2, .) bool: the prefix is a candidate, since enough rows came to it after the one before."""
        left, least = self.own.reshape(-1, *real.shape), rules.limits.categories[3]
        right = sums.sum(axis=3)[..., None, None] - left
        real = real & (self._few[..., None] | (rules.allowed(left) & rules.allowed(right)))
        rest = right[1] * rules.rows_per_h >= least
        rows = np.take_along_axis(sums[1][:, :, None], self._order, axis=3) * rules.rows_per_h
        group = np.zeros(real.shape[:3])
        for place in range(real.shape[3]):
            group += rows[..., place]
            enough = self._few | (rest[..., place] & (group >= least))
            real[..., place] &= enough
            group[real[..., place]] = 0.0
        return real


def _place_of(words: Array, counts: Array) -> Array:
    """As ``extra_trees.place_of``, of arrays."""
    return (words * counts.astype(np.uint64) >> np.uint64(32)).astype(np.int64)


def _flat(sums: Array) -> Array:
    return sums.reshape(*sums.shape[:3], -1)
