"""``feature_weights=``: features drawn in proportion to weights, by the rules that draw features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.learners.by_level import RandomByLevel
from gpuboost.learners.by_node import RandomByNode
from gpuboost.learners.groups import RandomGroups
from gpuboost.learners.selection import Selection, count_of
from gpuboost.learners.weighted import WeightedGroups
from gpuboost.records import dataclass
from gpuboost.types import Candidates, Cuts


@dataclass(frozen=True, slots=True)
class WeightedNodes:
    """``RandomByNode`` or ``RandomByLevel``, by the weights of columns. A heuristic: no rate is known."""

    rule: RandomByNode | RandomByLevel
    weights: tuple[float, ...]  # (columns,) not negative, not all 0

    @property
    def by_level(self) -> bool:
        """True if all nodes of a level have the same features."""
        return isinstance(self.rule, RandomByLevel)

    def prepared(self, cuts: Cuts, n_groups: int) -> WeightedNodeDraw:
        columns = cuts.columns[:n_groups]
        of_features = np.array(self.weights)[columns] / np.bincount(columns)[columns]  # a wide column's is shared out
        return WeightedNodeDraw(self, of_features)

    def draw(self, n_groups: int, key: Key) -> Candidates:
        return WeightedNodeDraw(self, np.array(self.weights)).draw(n_groups, key)

    def __repr__(self) -> str:
        return f"{self.rule!r} with feature_weights"


@dataclass(frozen=True, slots=True, eq=False)
class WeightedNodeDraw:
    """Weighted draws for nodes or levels from known features."""

    of: WeightedNodes
    weights: NDArray[np.float64]  # (features,)

    def draw(self, n_groups: int, key: Key) -> Candidates:
        possible = np.flatnonzero(self.weights > 0.0).astype(np.int32)
        count = min(count_of(self.of.rule.t, n_groups), len(possible))
        if count == len(possible):
            return Candidates(possible)
        weights = self.weights[possible]
        return Candidates(possible, by_node=(count, key), by_level=self.of.by_level, weights=weights)


def weighted(rule: Any, weights: tuple[float, ...] | None) -> Any:
    """The rule with the weights of columns; itself if all weights are equal, whose draws are those without weights.

    Raises
    ------
    RecipeError
        If the rule draws no features, or has groups or weights of its own.
    """
    if weights is None:
        return rule
    if isinstance(rule, (RandomByNode, RandomByLevel)):
        return rule if len(set(weights)) == 1 else WeightedNodes(rule, weights)
    if isinstance(rule, RandomGroups) and rule.groups == "feature":
        return rule if len(set(weights)) == 1 else WeightedGroups(rule.t, weights)
    raise RecipeError(
        f"feature_weights: they are chances of columns to be drawn, and learners={_shown(rule)} draws no single "
        "columns by them. Use a share or a count of the columns, as learners=0.5, gb.RandomByLevel(0.5) or "
        "gb.RandomByNode(0.5); gb.FeatureCosts holds columns back where all of them compete."
    )


def _shown(rule: Selection) -> str:
    from gpuboost.learners.selection import AllLearners

    return "None" if isinstance(rule, AllLearners) else repr(rule)
