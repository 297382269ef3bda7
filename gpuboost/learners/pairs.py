"""Random pairs of feature and cut: type 1 of RGBM (Lu and Mazumder 2020, section 1.2), for stumps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.learners.selection import check_count, count_of, subset
from gpuboost.records import dataclass
from gpuboost.types import Candidates, Cuts


@dataclass(frozen=True, slots=True)
class RandomLearners:
    """Type 1: ``t`` weak learners, uniformly, without replacement, drawn anew in every round. For stumps.

    A weak learner is a pair of a feature and a cut, "x <= cut", or the constant learner. Rows whose value is missing go
    to the side of larger gain, and the last cut of a feature (the only one of a feature with a single bin) includes the
    split of missing from other values. Only drawn features cost time: if t is several times the number of features,
    these are all features, and ``RandomGroups`` does the same at less cost.

    Parameters
    ----------
    t : int or float
        A count of at least 1, or a share of the learners in (0, 1], rounded up.

    Raises
    ------
    RecipeError
        If t is neither; as a fit begins, if trees are deeper than stumps or a feature is categorical.
    """

    t: int | float

    def __post_init__(self) -> None:
        check_count(self.t, "learners")

    def prepared(self, cuts: Cuts, n_groups: int) -> PairDraw:
        """The rule for these cuts. Raises RecipeError if one of the features is categorical."""
        if cuts.is_categorical.any():
            column = int(cuts.columns[np.flatnonzero(cuts.is_categorical)[0]])
            raise RecipeError(
                f"learners: RandomLearners draws (feature, cut) pairs, and column {column} is categorical: its splits "
                "are sets of categories. Use RandomGroups(t)."
            )
        of_feature = np.maximum(cuts.n_bins.astype(np.int64) - 1, 1)
        return PairDraw(self, np.concatenate([[0], np.cumsum(of_feature)]), cuts.n_bins)

    def draw(self, n_groups: int, key: Key) -> Candidates:
        raise RecipeError("learners: RandomLearners draws from the cuts of the data; call prepared(cuts, n) first.")


@dataclass(frozen=True, slots=True, eq=False)
class PairDraw:
    """Random draws of pairs for known cuts."""

    rule: RandomLearners
    start: NDArray[np.int64]  # (d + 1,) index of each feature's first pair; the last learner is the constant
    n_bins: NDArray[np.int32]  # (d,)

    @property
    def n_learners(self) -> int:
        """K: all pairs and the constant."""
        return int(self.start[-1]) + 1

    def draw(self, n_groups: int, key: Key) -> Candidates:
        count = count_of(self.rule.t, self.n_learners)
        if count == self.n_learners:
            return Candidates(np.arange(n_groups, dtype=np.int32))
        drawn = subset(count, self.n_learners, key)
        pairs = drawn[:-1] if drawn[-1] == self.n_learners - 1 else drawn
        if not len(pairs):  # the constant alone: a feature that may not split anything
            return Candidates(np.zeros(1, np.int32), np.zeros((1, 8), np.uint32))
        feature = np.searchsorted(self.start, pairs, side="right") - 1
        features, place = np.unique(feature, return_inverse=True)
        cut = pairs - self.start[feature]
        return Candidates(features.astype(np.int32), self._bits(place, cut, features))

    def _bits(self, place: NDArray[np.intp], cut: NDArray[np.int64], features: NDArray[np.int64]) -> NDArray[np.uint32]:
        bits = np.zeros((len(features), 8), np.uint32)
        _set(bits, place, cut)
        last = cut == np.maximum(self.n_bins[features[place]] - 2, 0)
        _set(bits, place[last], self.n_bins[features[place[last]]].astype(np.int64) - 1)
        return bits


def _set(bits: NDArray[np.uint32], line: NDArray[np.intp], bit: NDArray[np.int64]) -> None:
    np.bitwise_or.at(bits, (line, bit >> 5), np.uint32(1) << (bit & 31).astype(np.uint32))
