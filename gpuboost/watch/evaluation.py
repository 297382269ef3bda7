"""Scores of the eval sets, updated tree by tree, and their metrics."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from gpuboost.records import dataclass
from gpuboost.types import Array, Component, FittedTree, Progress, TrainingSet

AddTree: TypeAlias = Callable[[Array, FittedTree | Component, float, TrainingSet], None]
"""``components.add`` on a backend: (scores, updated in place; tree or component; factor; rows of the scores)"""

RefreshScores: TypeAlias = Callable[[Array, float, Array], None]
"""(running sums, scale of the ensemble, scores to write)"""


def as_they_are(sums: Array, scale: float, scores: Array) -> None:
    """Do nothing: without shrinkage the scores are the sums."""


Pending: TypeAlias = Callable[[], float]
"""A value that a device may still be computing; the call waits for it"""

NextValue: TypeAlias = Callable[[], Pending]
"""(), once for each round -> the value after it"""


AddRounds: TypeAlias = Callable[[Array, Sequence[tuple[FittedTree | Component, ...]], float, TrainingSet], Array | None]
"""(scores (k, n), updated in place; trees of rounds; factor; rows) -> (k, rounds, n): the scores after each round, or
None, and nothing done, where a machine does it tree by tree"""


class MeasureInRounds(Protocol):
    """A metric that is computed by verbs of a round, and so again where a device repeats the round."""

    def records(self, data: TrainingSet) -> bool:
        """Return True if ``record`` may be called for these rows."""
        ...

    def record(self, scores: Array, data: TrainingSet) -> NextValue:
        """Compute it from the scores as they are. Every round of a training calls it for the same arrays."""
        ...


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric, bound to the loss whose scores it is to judge."""

    name: str
    of: Callable[[Array, TrainingSet], float]  # (k, n) scores, and the rows they are of
    begin: Callable[[Array, TrainingSet], Pending] | None = None  # the same without waiting, where a device can
    in_rounds: MeasureInRounds | None = None  # the same as a part of the rounds of a training, where a device can
    of_rounds: Callable[[Array, TrainingSet], list[float]] | None = None  # (k, rounds, n) scores, where it is faster

    def begun(self, scores: Array, data: TrainingSet) -> Pending:
        """The value of these scores, also if they change before the call that returns it."""
        if self.begin is not None:
            return self.begin(scores, data)
        value = self.of(scores, data)
        return lambda: value

    def after_rounds(self, scores: Array, data: TrainingSet) -> list[float]:
        """The values of scores (k, rounds, n)."""
        if self.of_rounds is not None:
            return self.of_rounds(scores, data)
        return [self.of(np.ascontiguousarray(scores[:, i]), data) for i in range(scores.shape[1])]


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Rows that are watched, not learned from."""

    name: str
    data: TrainingSet
    scores: Array  # (k, n) float64 of the ensemble so far; written to
    sums: Array | None = None  # (k, n) float64: scores = bias + scale * sums; the scores themselves if nothing shrinks


class Evaluation:
    """Call it once a round: it adds the round's trees to the scores and measures them."""

    def __init__(
        self,
        sets: Sequence[EvalSet],
        measures: Sequence[Measure],
        add_tree: AddTree,
        refresh: RefreshScores = as_they_are,
        add_rounds: AddRounds = lambda scores, rounds, factor, data: None,
    ) -> None:
        self.sets = tuple(sets)
        self.measures = tuple(measures)
        self._add_tree = add_tree
        self._refresh = refresh
        self._add_rounds = add_rounds
        self._recorded: dict[str, dict[str, NextValue]] = {}
        self._expected: deque[dict[str, dict[str, Pending]]] = deque()  # of rounds, the sets that are evaluated

    def __call__(self, progress: Progress) -> dict[str, dict[str, float]]:
        return self.begin(progress)()

    @property
    def recordable(self) -> bool:
        """True if ``record`` may be called."""
        measures = [measure.in_rounds for measure in self.measures]
        return bool(self.sets) and all(
            measure is not None and measure.records(eval_set.data) for eval_set in self.sets for measure in measures
        )

    def record(self, trees: Sequence[FittedTree | Component], factor: float, scale: float) -> None:
        """Add the trees of a round and measure the scores, among the verbs of the round, which may be repeated.

        Every round of a training must be recorded, or none.
        """
        for eval_set in self.sets:
            self._add(eval_set, trees, factor, scale)
            self._recorded[eval_set.name] = {
                measure.name: measure.in_rounds.record(eval_set.scores, eval_set.data)
                for measure in self.measures
                if measure.in_rounds is not None
            }

    def expect(self, rounds: Sequence[tuple[FittedTree | Component, ...]], factor: float) -> None:
        """Evaluate rounds that are done, before ``begin`` is called for one after the other, where that is faster."""
        self._expected = deque({} for _ in rounds)
        for eval_set in self.sets:
            shrunk = eval_set.sums is not None and eval_set.sums is not eval_set.scores
            scores = None if shrunk else self._add_rounds(eval_set.scores, rounds, factor, eval_set.data)
            if scores is None:
                continue
            values = {measure.name: measure.after_rounds(scores, eval_set.data) for measure in self.measures}
            for i, of_round in enumerate(self._expected):
                of_round[eval_set.name] = {metric: partial(float, every[i]) for metric, every in values.items()}

    def begin(self, progress: Progress) -> Callable[[], dict[str, dict[str, float]]]:
        """Add the trees; the values of the metrics, for which the call waits. Later rounds do not change them."""
        if self._recorded:
            begun = {name: {metric: after() for metric, after in of.items()} for name, of in self._recorded.items()}
        else:
            expected = self._expected.popleft() if self._expected else {}
            begun = {
                eval_set.name: expected.get(eval_set.name) or self._begun(eval_set, progress) for eval_set in self.sets
            }
        return lambda: {name: {metric: value() for metric, value in of.items()} for name, of in begun.items()}

    def _begun(self, eval_set: EvalSet, progress: Progress) -> dict[str, Pending]:
        self._add(eval_set, progress.trees, progress.factor, progress.scale)
        return {measure.name: measure.begun(eval_set.scores, eval_set.data) for measure in self.measures}

    def _add(self, eval_set: EvalSet, trees: Sequence[FittedTree | Component], factor: float, scale: float) -> None:
        sums = eval_set.scores if eval_set.sums is None else eval_set.sums
        for tree in trees:
            self._add_tree(sums, tree, factor, eval_set.data)
        self._refresh(sums, scale, eval_set.scores)
