"""Monitoring of a fit: eval sets, metrics, callbacks, early stopping and the progress bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost import metrics
from gpuboost.backends.optional_verbs import Evaluator, RoundEvaluator
from gpuboost.backends.protocol import Backend
from gpuboost.backends.several_rounds import RoundScorer
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.errors import RecipeError
from gpuboost.losses.averages import exact_sum
from gpuboost.losses.base import of_output
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.records import dataclass
from gpuboost.scoring.device_metrics import ScoreMetric
from gpuboost.training.parameters.values import integer
from gpuboost.training.rows import weight_of
from gpuboost.types import Array, TrainingSet
from gpuboost.watch.callbacks import as_watcher
from gpuboost.watch.early_stopping import EarlyStopping
from gpuboost.watch.evaluation import Measure, NextValue, Pending
from gpuboost.watch.history import History
from gpuboost.watch.progress import ProgressBar
from gpuboost.watch.record import Watcher


@dataclass(frozen=True, slots=True)
class RawEvalSet:
    """An eval set before it is binned."""

    name: str
    x: Any  # numbers (n, d)
    y: NDArray[Any]  # (n,) float64, as the loss expects it
    rows: RowMetadata


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The metrics and watchers of a fit; created for each fit."""

    metrics: tuple[metrics.Metric, ...]
    history: History
    stopping: EarlyStopping | None
    watchers: tuple[Watcher, ...]  # history and stopping among them
    given_stopping: bool = False  # True: ``stopping`` is a callback of the user

    @classmethod
    def of(cls, params: Mapping[str, Any], loss: Loss) -> Monitoring:
        """The watchers that the parameters name.

        Raises
        ------
        RecipeError, InputError
            If a parameter is out of its range; the message names it.
        """
        history = History()
        watchers = [history, *_callbacks(params["callbacks"])]
        if params["early_stopping_rounds"] is not None:
            watchers.append(EarlyStopping(integer("early_stopping_rounds", params["early_stopping_rounds"], 1)))
        stoppers = [watcher for watcher in watchers if isinstance(watcher, EarlyStopping)]
        if len(stoppers) > 1:
            raise RecipeError("early_stopping_rounds: one rule decides when to stop; callbacks hold another one.")
        verbose = params["verbose"]
        every = int(verbose) if isinstance(verbose, bool) else integer("verbose", verbose, 0)
        if every:
            watchers.append(ProgressBar(every))
        fit_metrics = metrics_of(params["eval_metric"], loss, params.get("eval_at"))
        return cls(fit_metrics, history, stoppers[0] if stoppers else None, tuple(watchers))

    @property
    def means(self) -> tuple[Loss, ...]:
        """Losses whose means are metrics, which a backend computes."""
        listed = [metric if metric.each is None else metric.each for metric in self.metrics]
        return tuple(metric.mean_of for metric in listed if metric.mean_of is not None)

    def in_turn(self, sequences: int) -> Monitoring:
        """The same for rounds of this many sequences in turn: ``early_stopping_rounds`` counts rounds of each."""
        if sequences == 1 or self.stopping is None or self.given_stopping:
            return self
        stopping = EarlyStopping(self.stopping.rounds * sequences, self.stopping.min_delta)
        watchers = tuple(stopping if watcher is self.stopping else watcher for watcher in self.watchers)
        return replace(self, stopping=stopping, watchers=watchers)


def measure(metric: metrics.Metric, loss: Loss, backend: Backend) -> Measure:
    """The metric as the watchers call it; computed by the backend if that can, or else from a copy of the scores."""
    if metric.each is not None:
        device: _OutputMeasures | _DeviceMeasure = _OutputMeasures(measure(metric.each, of_output(loss, 0), backend))
    elif backend.offers.metrics:
        device = _DeviceMeasure(metric, loss, backend)
    else:
        several = backend.offers.scores_of_rounds and metric.mean_of is not None
        of_rounds = partial(_measured_rounds, metric, cast(RoundScorer, backend)) if several else None
        of = partial(_measured, metric, loss, backend)
        return Measure(metric.name, metric.higher_is_better, of, of_rounds=of_rounds)
    in_rounds = device if backend.offers.recorded_metrics else None
    return Measure(metric.name, metric.higher_is_better, lambda scores, data: device(scores, data)(), device, in_rounds)


def _measured(metric: metrics.Metric, loss: Loss, backend: Backend, scores: Array, data: TrainingSet) -> float:
    weight = weight_of(data)
    if metric.mean_of is None:
        return metric(data.y, backend.to_host(scores), weight, loss, data.query_start)
    return metric.finish(backend.loss_value(metric.mean_of, scores, data.y, weight))


def _measured_rounds(metric: metrics.Metric, backend: RoundScorer, scores: Array, data: TrainingSet) -> list[float]:
    assert metric.mean_of is not None
    return [metric.finish(value) for value in backend.loss_values(metric.mean_of, scores, data.y, weight_of(data))]


class _DeviceMeasure:
    """A metric that a device begins to compute. Its record is made once for each eval set."""

    def __init__(self, metric: metrics.Metric, loss: Loss, backend: Backend) -> None:
        self._metric, self._loss, self._backend = metric, loss, backend
        self._known: dict[int, tuple[TrainingSet, Array | None, ScoreMetric | None]] = {}

    def __call__(self, scores: Array, data: TrainingSet) -> Pending:
        metric, device = self._metric, cast(Evaluator, self._backend)
        _, weight, of_scores = self._known_of(data)
        if metric.mean_of is not None:
            begun = device.mean_loss(metric.mean_of, scores, data.y, weight)
        elif of_scores is not None:
            begun = device.score_metric(of_scores, scores)
        else:
            value = metric(data.y, self._backend.to_host(scores), weight, self._loss, data.query_start)
            return lambda: value
        return lambda: metric.finish(begun())

    def records(self, data: TrainingSet) -> bool:
        """As of ``MeasureInRounds``. Values of many lists are fetched in each round."""
        mean, of_scores = self._metric.mean_of, self._known_of(data)[2]
        return not is_of_arrays(mean) if mean is not None else of_scores is not None and not self._metric.by_query

    def record(self, scores: Array, data: TrainingSet) -> NextValue:
        """As of ``MeasureInRounds``."""
        metric, device = self._metric, cast(RoundEvaluator, self._backend)
        _, weight, of_scores = self._known_of(data)
        if metric.mean_of is not None:
            values = device.recorded_mean(metric.mean_of, scores, data.y, weight)
        else:
            assert of_scores is not None
            values = device.recorded_metric(of_scores, scores)

        def after() -> Pending:
            value = values.next()
            return lambda: metric.finish(value())

        return after

    def _known_of(self, data: TrainingSet) -> tuple[TrainingSet, Array | None, ScoreMetric | None]:
        if id(data) not in self._known:
            self._known[id(data)] = self._record_of(data)
        return self._known[id(data)]

    def _record_of(self, data: TrainingSet) -> tuple[TrainingSet, Array | None, ScoreMetric | None]:
        """The eval set, its weights, and the record of the metric; None if the host computes it."""
        metric, weight = self._metric, weight_of(data)
        if metric.mean_of is not None or metric.score_metric is None or (metric.by_query and data.query_start is None):
            return data, weight, None
        return data, weight, metric.score_metric(data.y, weight, self._loss, data.query_start)


class _OutputMeasures:
    """The mean over the outputs of a metric of each one. The target of an output is taken out of y once."""

    def __init__(self, output_measure: Measure) -> None:
        self._one = output_measure
        self._parts: dict[int, tuple[TrainingSet, Array, list[tuple[Array, TrainingSet]]]] = {}

    def __call__(self, scores: Array, data: TrainingSet) -> Pending:
        begun = [self._one.begun(*part) for part in self._parts_of(scores, data)]
        return lambda: exact_sum([value() for value in begun]) / len(begun)

    def _parts_of(self, scores: Array, data: TrainingSet) -> list[tuple[Array, TrainingSet]]:
        known = self._parts.get(id(data))
        if known is None or known[1] is not scores:
            known = self._parts[id(data)] = data, scores, self._divided(scores, data)
        return known[2]

    def records(self, data: TrainingSet) -> bool:
        """As of ``MeasureInRounds``: the parts differ in their targets."""
        in_rounds = self._one.in_rounds
        return in_rounds is not None and in_rounds.records(replace(data, y=np.ascontiguousarray(data.y[:, 0])))

    def record(self, scores: Array, data: TrainingSet) -> NextValue:
        """As of ``MeasureInRounds``."""
        in_rounds = self._one.in_rounds
        assert in_rounds is not None
        each = [in_rounds.record(*part) for part in self._parts_of(scores, data)]

        def after() -> Pending:
            begun = [value() for value in each]
            return lambda: exact_sum([value() for value in begun]) / len(begun)

        return after

    @staticmethod
    def _divided(scores: Array, data: TrainingSet) -> list[tuple[Array, TrainingSet]]:
        """The (1, n) scores and the rows of each output."""
        rows, targets = replace(data, weight=weight_of(data), multiplicity=None), np.ascontiguousarray(data.y.T)
        return [(scores[c : c + 1], replace(rows, y=y)) for c, y in enumerate(targets)]


def metrics_of(asked: Any, loss: Loss, eval_at: Any = None) -> tuple[metrics.Metric, ...]:
    """The metrics that ``eval_metric`` names; a ranking metric without a place is evaluated at each of ``eval_at``."""
    listed: Sequence[Any] = asked if isinstance(asked, (list, tuple)) else [asked]
    if is_list_loss(loss):
        listed = [name for metric in listed for name in _at_places("ndcg" if metric is None else metric, eval_at)]
    resolved = tuple(metrics.default_metric(loss) if metric is None else metrics.get(metric, loss) for metric in listed)
    if not resolved or len({metric.name for metric in resolved}) < len(resolved):
        raise RecipeError(f"eval_metric: needs one or more metrics of different names; got {asked!r}.")
    return resolved


def _at_places(metric: Any, eval_at: Any) -> list[Any]:
    """For "ndcg" and the places 5 and 10: "ndcg@5", "ndcg@10"."""
    eval_at = eval_at.tolist() if isinstance(eval_at, np.ndarray) else eval_at
    places = () if eval_at is None else eval_at if isinstance(eval_at, (list, tuple)) else (eval_at,)
    if eval_at is not None and not len(places):
        raise RecipeError("eval_at: needs one place or more, or None for whole lists; got none.")
    for k in places:
        integer("eval_at", k, 1)
    name, colon, empty = metric.partition(":") if isinstance(metric, str) else ("", "", "")
    if name not in metrics.RANKINGS or not places:
        return [metric]
    return [f"{name}@{int(k)}{colon}{empty}" for k in places]


def _callbacks(callbacks: Any) -> list[Watcher]:
    if not isinstance(callbacks, (list, tuple)):
        raise RecipeError(f"callbacks: must be a list of callables; got {callbacks!r}.")
    return [as_watcher(callback) for callback in callbacks]
