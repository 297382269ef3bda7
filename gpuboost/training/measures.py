"""Metrics of eval sets as a backend computes them: from scores in its memory, or by the host from a copy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from gpuboost import metrics
from gpuboost.backends.optional_verbs import Evaluator, RoundEvaluator
from gpuboost.backends.protocol import Backend
from gpuboost.backends.several_rounds import RoundScorer
from gpuboost.losses.averages import exact_sum
from gpuboost.losses.base import of_output
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.protocol import Loss
from gpuboost.scoring.device_metrics import ScoreMetric
from gpuboost.training.rows import weight_of
from gpuboost.types import Array, TrainingSet
from gpuboost.watch.evaluation import Measure, NextValue, Pending


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
        return Measure(metric.name, of, of_rounds=of_rounds)
    in_rounds = device if backend.offers.recorded_metrics else None
    return Measure(metric.name, lambda scores, data: device(scores, data)(), device, in_rounds)


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
