"""Scores of the eval sets, updated tree by tree, and their metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gpuboost.types import Array, Component, FittedTree, Progress, TrainingSet

AddTree: TypeAlias = Callable[[Array, FittedTree | Component, float, TrainingSet], None]
"""``components.add`` on a backend: (scores, updated in place; tree or component; factor; rows of the scores)"""

RefreshScores: TypeAlias = Callable[[Array, float, Array], None]
"""(running sums, scale of the ensemble, scores to write)"""


def as_they_are(sums: Array, scale: float, scores: Array) -> None:
    """Do nothing: without shrinkage the scores are the sums."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric, bound to the loss whose scores it is to judge."""

    name: str
    greater_is_better: bool
    of: Callable[[Array, TrainingSet], float]  # (k, n) scores, and the rows they are of


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Rows that are watched, not learned from."""

    name: str
    data: TrainingSet
    scores: Array  # (k, n) float64 of the ensemble so far; written to
    sums: Array | None = None  # (k, n) float64, if the ensemble is shrunk: scores = bias + scale * sums


class Evaluation:
    """Call it once a round: it adds the round's trees to the scores and measures them."""

    def __init__(
        self,
        sets: Sequence[EvalSet],
        measures: Sequence[Measure],
        add_tree: AddTree,
        refresh: RefreshScores = as_they_are,
    ) -> None:
        self.sets = tuple(sets)
        self.measures = tuple(measures)
        self._add_tree = add_tree
        self._refresh = refresh

    def __call__(self, progress: Progress) -> dict[str, dict[str, float]]:
        return {one.name: self._evaluate(one, progress) for one in self.sets}

    def _evaluate(self, one: EvalSet, progress: Progress) -> dict[str, float]:
        sums = one.scores if one.sums is None else one.sums
        for tree in progress.trees:
            self._add_tree(sums, tree, progress.factor, one.data)
        self._refresh(sums, progress.scale, one.scores)
        return {measure.name: measure.of(one.scores, one.data) for measure in self.measures}
