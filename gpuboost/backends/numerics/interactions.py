"""Interaction constraints: the features that may split a node, given the features of the splits above it.

A node's path may hold features of one set only (Friedman's "no interactions" is a set for each feature), and at most
so many different columns. scikit-learn, XGBoost and LightGBM have the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuboost.records import dataclass
from gpuboost.types import Cuts, Interactions


@dataclass(frozen=True, slots=True, eq=False)
class PathRule:
    """``Interactions`` by features."""

    columns: NDArray[np.int32]  # (d,) number that features of one column share
    sets: NDArray[np.uint32]  # (d, words) bit s % 32 of word s // 32 is set if the feature is in set s
    most: int

    @staticmethod
    def of_features(interactions: Interactions, cuts: Cuts) -> PathRule:
        """The rule for features with these cuts: a feature is in the sets of its column."""
        of, columns = cuts.columns, cuts.columns
        if interactions.same is not None:
            columns = np.array(interactions.same, np.int32)[of]
        return PathRule(columns, _by_column(interactions.sets, cuts.n_columns)[of], interactions.most)

    def allows(self, path: Sequence[int], feature: int) -> bool:
        """True if the feature may split a node below splits on the features of ``path``."""
        common = np.bitwise_and.reduce(self.sets[[*path, feature]], axis=0)
        columns = {int(self.columns[f]) for f in (*path, feature)}
        return bool(common.any()) and (self.most == 0 or len(columns) <= self.most)


@lru_cache(maxsize=4)  # the same for every tree of a training
def _by_column(sets: tuple[tuple[int, ...], ...], n_columns: int) -> NDArray[np.uint32]:
    """``PathRule.sets`` by columns."""
    bits = np.zeros((n_columns, max(1, -(-len(sets) // 32))), np.uint32)
    for s, members in enumerate(sets):
        bits[list(members), s // 32] |= np.uint32(1 << s % 32)
    return bits
