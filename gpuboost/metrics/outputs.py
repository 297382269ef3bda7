"""Metrics of several targets a row: the mean over the outputs of the metric of each one."""

from __future__ import annotations

from functools import partial

import numpy as np

from gpuboost.errors import InputError
from gpuboost.losses.averages import exact_sum
from gpuboost.losses.per_output import PerOutput
from gpuboost.metrics.metric import Function, Metric
from gpuboost.types import Array


def refuse_of_several(metric: str | Metric, loss: PerOutput) -> None:
    """Raise InputError if the metric is of one target and several scores."""
    if isinstance(metric, Metric) and metric.mean_of is not None and metric.mean_of.n_outputs > 1:
        raise InputError(
            f"eval_metric: the term of {metric.name!r} is of several scores and one target, and y has "
            f"{loss.n_outputs} columns. Pass a term of one score, whose mean over the columns is taken, or a function "
            "of (y_true, prediction)."
        )


def over_outputs(one: Metric) -> Metric:
    """The mean over the outputs of a metric of one output. Raises InputError if that is of rankings."""
    if one.by_query:
        raise InputError(f"eval_metric: {one.name!r} judges rankings; use GradientBoostingRanker.")
    return Metric(one.name, one.higher_is_better, partial(_mean, one), each=one)


def _mean(function: Function, y: Array, scores: Array, weight: Array | None, loss: PerOutput) -> float:
    """y (n, k), scores (k, n)."""
    each = enumerate(np.ascontiguousarray(y.T))
    return exact_sum(np.array([function(t, scores[c : c + 1], weight, loss.loss) for c, t in each])) / len(scores)
