"""The features that may split nodes, and the choice among them, by NumPy and of several nodes at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuboost.backends.numerics.feature_subsets import features_of
from gpuboost.backends.numerics.interactions import PathRule
from gpuboost.backends.numerics.random_numbers import gaussian_of, philox
from gpuboost.backends.numerics.split_costs import charge
from gpuboost.kernels.splits.random_strength import LANES, OF_FEATURE, OF_G, OF_H
from gpuboost.keys import Key
from gpuboost.types import Array, Candidates, Cuts, Limits, Noise


class Searched(NamedTuple):
    """Nodes that are searched, or a level whose nodes share a split, as one."""

    numbers: Array  # (q,)
    depths: Array
    drawn_by: tuple[Array, Array]  # int64, by which numbers are drawn: exact g and h; of a level its depth and 0
    total: Array  # (s, q, 1, 1) sums of all rows


class NodeFeatures:
    """The features that each node of a growing tree may be split by."""

    def __init__(self, candidates: Candidates, limits: Limits, cuts: Cuts) -> None:
        self._candidates = candidates
        self._paths = None if limits.interactions is None else _Paths(PathRule.of_features(limits.interactions, cuts))

    def allowed(self, of: Searched) -> Array:
        """(q, t) bool, of the candidates in their order."""
        candidates, every = self._candidates, self._candidates.features
        may = np.full((len(of.numbers), len(every)), candidates.by_node is None)
        if candidates.by_node is not None:
            for row, number, depth in zip(may, of.numbers.tolist(), of.depths.tolist(), strict=True):
                row[features_of(candidates, number, depth)] = True
        return may if self._paths is None else may & self._paths.allow(of.numbers, every)

    def pass_on(self, parents: Array, features: Array) -> None:
        """Add two children of each of these nodes, which are split by these features."""
        if self._paths is not None:
            self._paths.extend(parents, features)


class _Paths:
    """The features of the splits above each node: the sets that all are in, and their columns."""

    def __init__(self, rule: PathRule) -> None:
        self._rule = rule
        columns, self._column = np.unique(rule.columns, return_inverse=True)
        self._sets = np.full((1, rule.sets.shape[1]), 0xFFFF_FFFF, np.uint32)
        self._used = np.zeros((1, len(columns)), np.bool_)

    def allow(self, nodes: Array, features: Array) -> Array:
        """(q, t) bool, as ``PathRule.allows``."""
        common: Array = (self._sets[nodes][:, None] & self._rule.sets[features]).any(axis=2)
        if self._rule.most == 0:
            return common
        used = self._used[nodes]
        n_columns = used.sum(axis=1)[:, None] + ~used[:, self._column[features]]
        allowed: Array = common & (n_columns <= self._rule.most)
        return allowed

    def extend(self, parents: Array, features: Array) -> None:
        """See ``NodeFeatures.pass_on``."""
        sets, used = self._sets[parents] & self._rule.sets[features], self._used[parents]
        used[np.arange(len(parents)), self._column[features]] = True
        self._sets = np.concatenate([self._sets, np.repeat(sets, 2, axis=0)])
        self._used = np.concatenate([self._used, np.repeat(used, 2, axis=0)])


class FeatureChoice:
    """The choice of each node's feature, as ``splits.Competition`` has it."""

    def __init__(self, candidates: Candidates, limits: Limits, output: int, rows_per_h: float) -> None:
        self._features, self._costs = candidates.features, candidates.costs
        self._cuts, self._noise = candidates.random_cuts(output), candidates.gain_noise(output)
        self._least, self._rows_per_h = limits.min_split_gain, rows_per_h

    def words(self, of: Searched, features: Array) -> Array | None:
        """(q, d) words that draw the cuts of these features; None if all cuts compete. See ``Competition.word``."""
        return None if self._cuts is None else _words(of, features, self._cuts)

    def winners(self, gains: Array, of: Searched) -> tuple[Array, Array]:
        """Places of the features that win, and their gains net of costs; 0 where none gains.

        gains (q, t): of the candidates in their order, 0 without a split.
        """
        charge(gains, of.total[1, :, 0, 0], self._features, self._costs, self._rows_per_h, self._least)
        won = self._noisy(gains, of, self._noise).argmax(axis=1)  # the first of equals
        return won, np.take_along_axis(gains, won[:, None], axis=1)[:, 0]

    def _noisy(self, gains: Array, of: Searched, noise: Noise | None) -> Array:
        """The gains that are compared; see ``numerics.random_strength``."""
        if noise is None:
            return gains
        competing, lanes = gains > 0.0, np.zeros((len(gains), LANES))
        for place, f in enumerate(self._features.tolist()):
            lanes[:, f % LANES] += np.where(competing[:, place], gains[:, place], 0.0)
        count = competing.sum(axis=1)
        spread = noise.deviation * (np.cumsum(lanes, axis=1)[:, -1] / np.maximum(count, 1))
        z = gaussian_of(_words(of, self._features, noise.key).ravel()).reshape(gains.shape)
        return np.where(competing, gains + spread[:, None] * z, -np.inf)


def _words(of: Searched, features: Array, key: Key) -> Array:
    """(q, d) uint64 below 2**32: word 0 of the block of each feature in each node, as ``random_strength.block_of``."""
    one, other, features = (values.astype(np.int64).view(np.uint64) for values in (*of.drawn_by, features))
    of_nodes = one * np.uint64(OF_G) + other * np.uint64(OF_H)  # modulo 2**64
    blocks = of_nodes[:, None] + features * np.uint64(OF_FEATURE)
    return philox(blocks.ravel(), key)[:, 0].reshape(blocks.shape)
