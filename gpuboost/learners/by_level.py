"""Random features for every level of a tree."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpuboost.keys import Key
from gpuboost.learners.selection import check_count, count_of
from gpuboost.records import dataclass
from gpuboost.types import Candidates


@dataclass(frozen=True, slots=True)
class RandomByLevel:
    """``t`` features for every level of a tree, uniformly, without replacement. A heuristic: no rate is known.

    All nodes of one depth may be split by the same features, in leaf-wise growth, too. It is ``colsample_bylevel`` of
    XGBoost, and ``rsm`` of CatBoost. It saves no time, as the histograms of a node's children may need any feature. A
    stump has one level, so for stumps it is ``RandomGroups``.

    Parameters
    ----------
    t : int or float
        A count of at least 1, or a share of the features in (0, 1], rounded up.

    Raises
    ------
    RecipeError
        If t is neither.
    """

    t: int | float

    repeatable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count(self.t, "features")

    def draw(self, n_groups: int, key: Key) -> Candidates:
        features, count = np.arange(n_groups, dtype=np.int32), count_of(self.t, n_groups)
        return Candidates(features) if count == n_groups else Candidates(features, by_node=(count, key), by_level=True)
