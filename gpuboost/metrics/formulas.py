"""The formulas of the metrics: (y, scores, weight, loss) -> value. The same bits on every machine.

y (n,), scores (k, n), weight (n,) or None. All sums are exact, and exp and log are the library's own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuboost.elementary import exp_array, log1pexp_array, log_array
from gpuboost.errors import InputError
from gpuboost.losses.averages import exact_sum, weighted_mean
from gpuboost.losses.base import BaseLoss, link_of
from gpuboost.losses.per_output import MULTILABEL
from gpuboost.losses.protocol import Loss
from gpuboost.losses.target import require, zero_or_one
from gpuboost.metrics.metric import number
from gpuboost.scoring import curves
from gpuboost.types import Array

LEAST_MEAN = 1e-304
"""Least prediction of a logarithmic link in a deviance, as in kernels/metrics/terms.cu; below it e^f would become 0"""


def mean(values: Array, weight: Array | None) -> float:
    """The weighted mean, of exact sums."""
    return exact_sum(values) / len(values) if weight is None else weighted_mean(values, weight)


def loss(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """The weighted mean of the loss itself, row by row in plain Python."""
    a = loss.parameter
    if loss.n_outputs == 1:
        each = [loss.value(t, f, a) for t, f in zip(y.tolist(), scores[0].tolist(), strict=True)]
    else:
        each = [loss.row_value(t, f, a) for t, f in zip(y.tolist(), scores.T.tolist(), strict=True)]
    return mean(np.array(each), weight)


def logloss(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Weighted mean of -log of the probability of the true class, for two classes; y is 0 or 1."""
    zero_or_one(y, "logloss")
    if loss.task == "binary":
        f = loss.log_odds(scores[0]) if isinstance(loss, BaseLoss) else scores[0]
        return mean(log1pexp_array(np.where(y > 0.5, -f, f)), weight)
    p = np.clip(probabilities(loss, scores), 1e-15, 1.0 - 1e-15)
    return mean(-log_array(np.where(y > 0.5, p, 1.0 - p)), weight)


def mlogloss(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Weighted mean of -log of the probability of the true class; y (n,) is the class, scores (k, n)."""
    top = np.max(scores, axis=0)
    total = np.zeros_like(top)
    for score in scores:  # in this order on every machine
        total += exp_array(score - top)
    chosen = np.take_along_axis(scores, np.asarray(y).astype(np.int64)[None, :], axis=0)[0]
    return mean(log_array(total) + (top - chosen), weight)


def accuracy(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Share of the weight of rows whose true class has the highest probability."""
    return mean((predicted_class(scores, loss) == y).astype(np.float64), weight)


def predicted_class(scores: Array, loss: Loss) -> Array:
    """(n,) number of the class of highest probability; (n, k) of k labels, true where they hold."""
    if loss.task == "multiclass":
        return np.argmax(scores, axis=0)
    if loss.task == MULTILABEL:
        return (scores > 0.0).T
    if loss.task == "binary":
        return scores[0] > 0.0
    return probabilities(loss, scores) > 0.5


def error(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """1 - accuracy."""
    return 1.0 - accuracy(y, scores, weight, loss)


def auc(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """The area under the ROC curve: the share of (1, 0) pairs in the right order, ties counting half."""
    zero_or_one(y, "auc")
    area = area_under_roc(y > 0.5, scores[0], weight)
    if math.isnan(area):
        raise of_one_class(y)
    return area


def of_one_class(y: Array) -> InputError:
    """Error of rows of which all that have weight are of one class."""
    return InputError(f"eval_metric: auc needs rows of both classes; all hold {float(y[0])!r}. Use logloss.")


def area_under_roc(ones: Array, score: Array, weight: Array | None) -> float:
    """The share of (1, 0) pairs in the right order; nan if one of them has no weight. ones (n,) bool; score (n,)."""
    return curves.area("roc", *curves.threshold_steps(ones, score, curves.weight_units(weight, len(ones))))


def mse(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Weighted mean of the squared difference of prediction and y."""
    return mean(np.square(loss.inverse_link(scores) - y), weight)


def rmse(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Root of ``mse``, in units of y."""
    return math.sqrt(mse(y, scores, weight, loss))


def mae(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Weighted mean of the absolute difference, in units of y."""
    return mean(np.abs(loss.inverse_link(scores) - y), weight)


def r2(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """1 - squared error / variance; if y is constant, 1 for exact predictions, else 0 (scikit-learn's rule)."""
    return r2_of(mse(y, scores, weight, loss), variance(y, weight))


def variance(y: Array, weight: Array | None) -> float:
    """Weighted mean of the squared differences from the weighted mean."""
    return mean(np.square(y - mean(y, weight)), weight)


def r2_of(error: float, spread: float) -> float:
    """``r2`` of the squared error and the variance."""
    if spread > 0.0:
        return 1.0 - error / spread
    return 1.0 if error == 0.0 else 0.0


def mape(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Weighted mean of |prediction - y| / |y|, as a share; |y| is taken as at least 2^-52, as in scikit-learn."""
    difference = np.abs(loss.inverse_link(scores) - y)
    return mean(difference / np.maximum(np.abs(y), np.finfo(np.float64).eps), weight)


def smape(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Weighted mean of 2 |prediction - y| / (|prediction| + |y|), from 0 to 2; 0 where both are 0."""
    prediction = loss.inverse_link(scores)
    size = np.abs(prediction) + np.abs(y)
    difference = 2.0 * np.abs(prediction - y)
    return mean(np.divide(difference, size, out=np.zeros(len(y)), where=size > 0.0), weight)


def rmsle(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Root of the mean squared difference of log(1 + y); predictions are taken as at least 1e-6 - 1, as in XGBoost.

    Raises InputError unless y >= 0.
    """
    check_domain(y, "rmsle")
    prediction = np.maximum(loss.inverse_link(scores), 1e-6 - 1.0)
    return math.sqrt(mean(np.square(log_array(prediction + 1.0) - log_array(y + 1.0)), weight))


def quantile(y: Array, scores: Array, weight: Array | None, loss: Loss, *, a: float) -> float:
    """Pinball loss at level a: a for each unit that a prediction is too low, 1 - a for each that it is too high."""
    r = loss.inverse_link(scores) - y
    return mean(np.where(r < 0.0, -a * r, (1.0 - a) * r), weight)


def expectile(y: Array, scores: Array, weight: Array | None, loss: Loss, *, a: float) -> float:
    """Weighted mean of the squares of the differences, times a below the target and 1 - a above."""
    r = loss.inverse_link(scores) - y
    return mean(np.where(r < 0.0, a, 1.0 - a) * r * r, weight)


def huber(y: Array, scores: Array, weight: Array | None, loss: Loss, *, a: float) -> float:
    """Huber loss: half the square of differences up to a, linear beyond."""
    r = np.abs(loss.inverse_link(scores) - y)
    return mean(np.where(r <= a, 0.5 * r * r, a * (r - 0.5 * a)), weight)


def poisson_deviance(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """2 mean(y log(y / m) - y + m), m the prediction. Raises InputError unless y >= 0."""
    expected = _means(loss, scores, "poisson_deviance")
    check_domain(y, "poisson_deviance")
    return 2.0 * mean(y * (log_array(np.where(y > 0.0, y, 1.0)) - log_array(expected)) - y + expected, weight)


def gamma_deviance(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """2 mean(log(m / y) + y / m - 1), m the prediction. Raises InputError unless y > 0."""
    expected = _means(loss, scores, "gamma_deviance")
    check_domain(y, "gamma_deviance")
    return 2.0 * mean(log_array(expected) - log_array(y) + y / expected - 1.0, weight)


def tweedie_deviance(y: Array, scores: Array, weight: Array | None, loss: Loss, *, a: float) -> float:
    """Unit deviance of the Tweedie family with variance power a, 1 < a < 2. Raises InputError unless y >= 0."""
    expected = _means(loss, scores, "tweedie_deviance")
    check_domain(y, "tweedie_deviance")
    log_mean, rising, falling = log_array(expected), 2.0 - a, 1.0 - a
    saturated = exp_array(rising * log_array(y)) / (rising * falling)
    fitted = exp_array(rising * log_mean) / rising - y * exp_array(falling * log_mean) / falling
    return 2.0 * mean(saturated + fitted, weight)


def check_domain(y: Array, metric: str) -> None:
    """Raise InputError unless the metric is defined for y (n,)."""
    if metric == "gamma_deviance":
        require(y > 0.0, y, "gamma_deviance needs positive numbers", "Use tweedie_deviance or rmse.")
    elif metric in ("rmsle", "poisson_deviance", "tweedie_deviance"):
        require(y >= 0.0, y, f"{metric} needs numbers that are not negative", "Use rmse.")


def user_defined(function: Any, weight_as: str, y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Value of a user's function for y and predictions. Raises InputError unless it is a number."""
    prediction = loss.inverse_link(scores)
    if weight_as == "third":
        result = function(y, prediction, weight)
    else:
        result = function(y, prediction, **({"sample_weight": weight} if weight_as == "named" else {}))
    return number(repr(function), result)


def probabilities(loss: Loss, scores: Array) -> Array:
    """(n,) probability of class 1. Raises InputError if the loss's inverse link gives something else."""
    p = loss.inverse_link(scores)
    rule = "probabilities lie between 0 and 1"
    require((p >= 0.0) & (p <= 1.0), p, rule, "Correct that function.", f"inverse_link of {loss.name}")
    return p


def _means(loss: Loss, scores: Array, metric: str) -> Array:
    """(n,) predictions, those of a logarithmic link at least LEAST_MEAN. Raises InputError if one is not positive."""
    expected = loss.inverse_link(scores)
    if link_of(loss)[0] == "log":
        return np.maximum(expected, LEAST_MEAN)
    rule = f"{metric} needs positive predictions"
    require(expected > 0.0, expected, rule, "Correct that function.", f"inverse_link of {loss.name}")
    return expected
