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


Pending: TypeAlias = Callable[[], float]
"""A value that a device may still be computing; the call waits for it"""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric, bound to the loss whose scores it is to judge."""

    name: str
    greater_is_better: bool
    of: Callable[[Array, TrainingSet], float]  # (k, n) scores, and the rows they are of
    begin: Callable[[Array, TrainingSet], Pending] | None = None  # the same without waiting, where a device can

    def begun(self, scores: Array, data: TrainingSet) -> Pending:
        """The value of these scores, also if they change before it is asked for."""
        if self.begin is not None:
            return self.begin(scores, data)
        value = self.of(scores, data)
        return lambda: value


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
        return self.begin(progress)()

    def begin(self, progress: Progress) -> Callable[[], dict[str, dict[str, float]]]:
        """Add the trees; the values of the metrics, for which the call waits. Later rounds do not change them."""
        begun = {one.name: self._begun(one, progress) for one in self.sets}
        return lambda: {name: {metric: value() for metric, value in of.items()} for name, of in begun.items()}

    def _begun(self, one: EvalSet, progress: Progress) -> dict[str, Pending]:
        sums = one.scores if one.sums is None else one.sums
        for tree in progress.trees:
            self._add_tree(sums, tree, progress.factor, one.data)
        self._refresh(sums, progress.scale, one.scores)
        return {measure.name: measure.begun(one.scores, one.data) for measure in self.measures}
