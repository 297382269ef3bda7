"""Groups in turn, as additive models are fitted by backfitting."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.learners.partition import Partition, labels_of, partition
from gpuboost.learners.selection import check_count, count_of
from gpuboost.records import dataclass
from gpuboost.types import Candidates, Cuts


@dataclass(frozen=True, slots=True)
class CyclicGroups:
    """The next ``t`` groups in every round, from the first again after the last: the order of explainable boosting
    machines. A heuristic: no rate is known. For stumps, and for base learners that are not trees.

    Parameters
    ----------
    t : int or float
        A count of at least 1, or a share of the groups in (0, 1], rounded up.
    groups : "feature", or a label for each column
        As for ``RandomGroups``.

    Raises
    ------
    RecipeError
        If t is not a count or a share, or groups is neither.
    """

    t: int | float = 1
    groups: Any = "feature"

    def __post_init__(self) -> None:
        check_count(self.t, "groups")
        object.__setattr__(self, "groups", labels_of(self.groups))
        if self.groups == "root":
            raise RecipeError("groups: CyclicGroups takes features in turn; got 'root'. Use 'feature' or labels.")

    def prepared(self, cuts: Cuts, n_groups: int) -> CyclicDraw:
        return CyclicDraw(self, partition(self.groups, n_groups, cuts))

    def draw(self, n_groups: int, key: Key) -> Candidates:
        return CyclicDraw(self, partition(self.groups, n_groups)).draw(n_groups, key)


@dataclass(frozen=True, slots=True, eq=False)
class CyclicDraw:
    """Cyclic draws from a known partition."""

    rule: CyclicGroups
    of: Partition

    def draw(self, n_groups: int, key: Key) -> Candidates:
        t, turn = count_of(self.rule.t, self.of.count), max(key.iteration, 0)
        groups = (turn * t + np.arange(t)) % self.of.count
        return Candidates(self.of.members(np.sort(groups).astype(np.int32)))
