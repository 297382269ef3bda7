"""Eval sets and their metrics in a dry run: what a device allocates to score and to judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gpuboost import components, metrics
from gpuboost.backends.cuda.device.dry_run import CountedArray, DryRun
from gpuboost.backends.protocol import Backend
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.execution import Serial
from gpuboost.losses.base import of_output
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.protocol import Loss, is_list_loss, n_targets
from gpuboost.recipe import Recipe
from gpuboost.state.scores import RunningScores
from gpuboost.training.monitoring import RawEvalSet
from gpuboost.training.rows import weight_of
from gpuboost.types import Array, Component, Cuts, Ensemble, FittedTree, Progress, TrainingSet

if TYPE_CHECKING:  # it imports kernels, which take a while
    from gpuboost.backends.cuda.backend import Cuda


@dataclass(frozen=True, slots=True)
class Watching:
    """The eval sets of a training, and the metrics that judge them."""

    sets: tuple[RawEvalSet, ...] = ()  # x is not read
    metrics: tuple[metrics.Metric, ...] = ()


def eval_set_of(n: int, loss: Loss, *, weighted: bool, rows_of_query: int) -> RawEvalSet:
    """An eval set of this size whose target every metric of the loss accepts that a device computes."""
    k = n_targets(loss)
    classes = loss.n_outputs if loss.task == "multiclass" else 2
    labels = np.arange(n) % classes * 1.0
    y = labels if k == 1 else np.repeat(labels[:, None], k, axis=1)
    start = np.append(np.arange(0, n, rows_of_query), n) if is_list_loss(loss) else None
    rows = RowMetadata.of(n, np.linspace(0.5, 1.5, n) if weighted else None)
    return RawEvalSet("", None, y, replace(rows, query_start=start))


class _MetricCalls(NamedTuple):
    """Calls of a device that compute a metric: after a round, and among its verbs; None if the host computes it."""

    begin: Callable[[], object] | None
    record: Callable[[], object] | None


class WatchedRows:
    """A watch for ``boost`` that adds trees to the scores of the eval sets, and computes their metrics."""

    def __init__(self, machine: Cuda, runtime: DryRun, recipe: Recipe, cuts: Cuts, watching: Watching) -> None:
        self._machine, self._runtime, self._recipe, self._metrics = machine, runtime, recipe, watching.metrics
        with runtime.purpose("eval sets"):
            self._data = [self._binned(raw, cuts) for raw in watching.sets]
        self._scores: list[RunningScores] = []
        self._calls: list[_MetricCalls] = []

    def begin(self, data: TrainingSet, ensemble: Ensemble) -> None:
        """Allocate the scores, and prepare the calls for their metrics. data: of the training."""
        chain = self._recipe.chain(data, ensemble)
        with self._runtime.purpose("eval sets"):
            self._scores = [
                RunningScores.of(cast(Backend, self._machine), rows, ensemble, chain.shrink, averages=chain.averages)
                for rows in self._data
            ]
        for rows, scores in zip(self._data, self._scores, strict=True):
            for metric in self._metrics:
                self._calls += self._calls_of(metric, self._recipe.loss, scores.values, rows)

    def __call__(self, progress: Progress) -> bool:
        if not self._in_rounds:
            self._add(progress.trees, progress.factor)
            self._run([calls.begin for calls in self._calls])
        return False

    def evaluate(self, trees: Sequence[FittedTree | Component], factor: float, scale: float) -> None:
        """The same among the verbs of a round, for trainings that evaluate there."""
        if self._in_rounds:
            self._add(trees, factor)
            self._run([calls.record for calls in self._calls])

    @property
    def _in_rounds(self) -> bool:
        """True if metrics are verbs of the rounds, by the rule of ``train``."""
        plain = self._recipe.base_learner is None and type(self._recipe.execution) is Serial
        return plain and all(calls.record is not None for calls in self._calls)

    def _add(self, trees: Sequence[FittedTree | Component], factor: float) -> None:
        with self._runtime.purpose("eval sets"):
            for rows, scores in zip(self._data, self._scores, strict=True):
                for tree in trees:
                    components.add(cast(Backend, self._machine), scores.sums, tree, factor, rows)

    def _run(self, calls: Sequence[Callable[[], object] | None]) -> None:
        with self._runtime.purpose("metrics"):
            for call in calls:
                if call is not None:
                    call()

    def _binned(self, raw: RawEvalSet, cuts: Cuts) -> TrainingSet:
        x: Any = CountedArray((raw.rows.n_kept, cuts.n_columns), np.float32)
        return raw.rows.training_set(self._machine.quantise(x, cuts), cuts, raw.y)

    def _calls_of(self, metric: metrics.Metric, loss: Loss, scores: Array, data: TrainingSet) -> Iterator[_MetricCalls]:
        """Calls of the device by which ``measures.measure`` computes a metric."""
        weight, machine = weight_of(data), self._machine
        if metric.each is not None:
            rows = replace(data, weight=weight, multiplicity=None)
            for c, y in enumerate(np.ascontiguousarray(data.y.T)):
                output_data = replace(rows, y=y)
                yield from self._calls_of(metric.each, of_output(loss, c), scores[c : c + 1], output_data)
            return
        if (mean := metric.mean_of) is not None:
            of_mean = mean, scores, data.y, weight
            record = None if is_of_arrays(mean) else partial(machine.recorded_mean, *of_mean)
            yield _MetricCalls(partial(machine.mean_loss, *of_mean), record)
            return
        of_scores = None
        if metric.score_metric is not None and not (metric.by_query and data.query_start is None):
            of_scores = metric.score_metric(data.y, weight, loss, data.query_start)
        if of_scores is None:  # the host computes it
            yield _MetricCalls(None, None)
        else:
            record = None if metric.by_query else partial(machine.recorded_metric, of_scores, scores)
            yield _MetricCalls(partial(machine.score_metric, of_scores, scores), record)
