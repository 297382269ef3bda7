"""The group whose last known gain is largest, as greedy explainable boosting machines are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.learners.partition import Partition, labels_of, partition
from gpuboost.records import dataclass
from gpuboost.types import Candidates, Cuts, Ensemble, Structure


@dataclass(frozen=True, slots=True)
class SemiGreedyGroups:
    """One group in every round: that of the largest gain when it was last searched, a queue of stale gains.

    The first rounds search each group once, in order; of equal gains the first group is taken. A group's gain is that
    of the splits that its round found, summed over outputs. It costs one group a round where the best of all groups
    costs all of them (InterpretML's explainable boosting machines, "semi-greedy"). A heuristic: no rate is known. For
    stumps, and one worker; its rounds are run on the CPU.

    Parameters
    ----------
    groups : "feature", or a label for each column
        As for ``RandomGroups``.

    Raises
    ------
    RecipeError
        If groups is neither.
    """

    groups: Any = "feature"

    keeps_gains: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", labels_of(self.groups))
        if self.groups == "root":
            raise RecipeError("groups: SemiGreedyGroups takes features; got 'root'. Use 'feature' or labels.")

    def prepared(self, cuts: Cuts, n_groups: int) -> SemiGreedyDraw:
        return SemiGreedyDraw(partition(self.groups, n_groups, cuts))

    def draw(self, n_groups: int, key: Key) -> Candidates:
        """Candidates of a first round; the rule of a run is ``prepared``."""
        return SemiGreedyDraw(partition(self.groups, n_groups)).draw(n_groups, key)


@dataclass(slots=True, eq=False)
class SemiGreedyDraw:
    """The queue of one run."""

    of: Partition
    gains: NDArray[np.float64] = field(init=False)  # (groups,) as last seen; inf before the first search

    def __post_init__(self) -> None:
        self.gains = np.full(self.of.count, np.inf)

    def draw(self, n_groups: int, key: Key) -> Candidates:
        return Candidates(self.of.members(np.array([self._first], np.int32)))

    def observe(self, structures: Sequence[Structure]) -> None:
        """Note the gain of the round's trees, one per output, which were grown from the group drawn last."""
        self.gains[self._first] = sum(float(structure.nodes.gain[0]) for structure in structures)

    def recall(self, ensemble: Ensemble) -> None:
        """Note the gains of the rounds of a model to continue; the group is that of the feature of a tree's root."""
        k = ensemble.n_outputs
        for round in range(len(ensemble.trees) // k):
            nodes = [tree.nodes for tree in ensemble.trees[k * round : k * (round + 1)]]
            split = [int(tree_nodes.feature[0]) for tree_nodes in nodes if tree_nodes.feature[0] >= 0]
            group = self._group(split[0]) if split else self._first
            self.gains[group] = sum(float(tree_nodes.gain[0]) for tree_nodes in nodes)

    @property
    def _first(self) -> int:
        return int(np.argmax(self.gains))

    def _group(self, feature: int) -> int:
        return feature if self.of.group_of is None else int(self.of.group_of[feature])
