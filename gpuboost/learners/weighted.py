"""Groups drawn with given probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.learners.partition import Partition, labels_of, partition
from gpuboost.learners.selection import check_count, count_of
from gpuboost.records import dataclass
from gpuboost.types import Candidates, Cuts


@dataclass(frozen=True, slots=True)
class WeightedGroups:
    """``t`` groups without replacement, one after the other, each in proportion to its weight. A heuristic.

    The largest t of ``log(u) / weight`` (Efraimidis and Spirakis 2006), u being uniform. A group of weight 0 is never
    drawn, so with many of them there may be fewer than t.

    Parameters
    ----------
    t : int or float
        A count of at least 1, or a share of the groups in (0, 1], rounded up.
    weights : numbers, not negative, one for each group
        In the order of columns, or of the first columns of the labels.
    groups : "feature", or a label for each column
        As for ``RandomGroups``.

    Raises
    ------
    RecipeError
        If t, weights or groups is invalid, or (as a fit begins) there is not one weight for each group.
    """

    t: int | float
    weights: Any
    groups: Any = "feature"

    def __post_init__(self) -> None:
        check_count(self.t, "groups")
        weights = np.asarray(self.weights, np.float64) if _are_numbers(self.weights) else np.empty(0)
        if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0.0).any() or not (weights > 0.0).any():
            rule = "finite numbers, not negative and not all 0, one for each group"
            raise RecipeError(f"weights: WeightedGroups needs {rule}; got {self.weights!r}.")
        object.__setattr__(self, "weights", tuple(weights.tolist()))
        object.__setattr__(self, "groups", labels_of(self.groups))
        if self.groups == "root":
            raise RecipeError("groups: WeightedGroups draws features; got 'root'. Use RandomGroups(t, groups='root').")

    def check(self, n_columns: int) -> None:
        """Raise RecipeError unless there is a weight for each group of this many columns."""
        _check(self, partition(self.groups, n_columns))

    def prepared(self, cuts: Cuts, n_groups: int) -> WeightedDraw:
        return _draw(self, partition(self.groups, n_groups, cuts))

    def draw(self, n_groups: int, key: Key) -> Candidates:
        return _draw(self, partition(self.groups, n_groups)).draw(n_groups, key)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedDraw:
    """Weighted draws from a known partition."""

    rule: WeightedGroups
    of: Partition
    possible: NDArray[np.intp]  # groups whose weight is positive
    weights: NDArray[np.float64]  # (groups,) their weights

    def draw(self, n_groups: int, key: Key) -> Candidates:
        from gpuboost.backends.numerics.feature_subsets import weighted_subset  # compiled code

        drawn = weighted_subset(count_of(self.rule.t, self.of.count), self.weights, key)
        return Candidates(self.of.members(self.possible[drawn].astype(np.int32)))


def _check(rule: WeightedGroups, of: Partition) -> None:
    if len(rule.weights) != of.count:
        raise RecipeError(f"weights: one for each group is needed; got {len(rule.weights)} for {of.count} groups.")


def _draw(rule: WeightedGroups, of: Partition) -> WeightedDraw:
    _check(rule, of)
    weights = np.array(rule.weights)
    possible = np.flatnonzero(weights > 0.0)
    return WeightedDraw(rule, of, possible, weights[possible])


def _are_numbers(weights: Any) -> bool:
    try:
        return bool(np.asarray(weights).dtype.kind in "iufb")
    except ValueError:
        return False
