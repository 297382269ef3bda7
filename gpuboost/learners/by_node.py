"""Random features for every node, as in random forests."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpuboost.keys import Key
from gpuboost.learners.selection import check_count, count_of
from gpuboost.records import dataclass
from gpuboost.types import Candidates


@dataclass(frozen=True, slots=True)
class RandomByNode:
    """``t`` features for every node of a tree, uniformly, without replacement. A heuristic: no rate is known.

    It saves no time, as the histograms of a node's children may need any feature. A stump has one node, so for stumps
    it is ``RandomGroups``. Not for oblivious trees.

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
        count = count_of(self.t, n_groups)
        return Candidates(np.arange(n_groups, dtype=np.int32), by_node=None if count == n_groups else (count, key))
