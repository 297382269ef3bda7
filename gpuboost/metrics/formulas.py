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
from gpuboost.losses.base import BaseLoss
from gpuboost.losses.protocol import Loss
from gpuboost.losses.target import require, zero_or_one
from gpuboost.types import Array


def _mean(values: Array, weight: Array | None) -> float:
    return exact_sum(values) / len(values) if weight is None else weighted_mean(values, weight)


def loss(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """The weighted mean of the loss itself, row by row in plain Python."""
    a = loss.parameter
    if loss.n_outputs == 1:
        each = [loss.value(t, f, a) for t, f in zip(y.tolist(), scores[0].tolist(), strict=True)]
    else:
        each = [loss.row_value(t, f, a) for t, f in zip(y.tolist(), scores.T.tolist(), strict=True)]
    return _mean(np.array(each), weight)


def logloss(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Weighted mean of -log of the probability of the true class, for two classes; y is 0 or 1."""
    zero_or_one(y, "logloss")
    if loss.task == "binary":
        f = loss.log_odds(scores[0]) if isinstance(loss, BaseLoss) else scores[0]
        return _mean(log1pexp_array(np.where(y > 0.5, -f, f)), weight)
    p = np.clip(_probabilities(loss, scores), 1e-15, 1.0 - 1e-15)
    return _mean(-log_array(np.where(y > 0.5, p, 1.0 - p)), weight)


def mlogloss(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Weighted mean of -log of the probability of the true class; y (n,) is the class, scores (k, n)."""
    top = np.max(scores, axis=0)
    total = np.zeros_like(top)
    for score in scores:  # in this order on every machine
        total += exp_array(score - top)
    chosen = np.take_along_axis(scores, np.asarray(y).astype(np.int64)[None, :], axis=0)[0]
    return _mean(log_array(total) + (top - chosen), weight)


def accuracy(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Share of the weight of rows whose true class has the highest probability."""
    if loss.task == "multiclass":
        predicted = np.argmax(scores, axis=0)
    elif loss.task == "binary":
        predicted = scores[0] > 0.0
    else:
        predicted = _probabilities(loss, scores) > 0.5
    return _mean((predicted == y).astype(np.float64), weight)


def error(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """1 - accuracy."""
    return 1.0 - accuracy(y, scores, weight, loss)


def auc(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """The area under the ROC curve: the share of (1, 0) pairs in the right order, ties counting half."""
    zero_or_one(y, "auc")
    weight = np.ones(len(y)) if weight is None else weight
    order = np.argsort(scores[0], kind="stable")
    ordered, ones = scores[0][order], y[order] > 0.5
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # the last row of each run of equal scores
    positive = np.cumsum(np.where(ones, weight[order], 0.0))[ends]
    negative = np.cumsum(np.where(ones, 0.0, weight[order]))[ends]
    if not (positive[-1] > 0.0 and negative[-1] > 0.0):
        raise InputError(f"eval_metric: auc needs rows of both classes; all hold {float(y[0])!r}. Use logloss.")
    gained = np.diff(positive, prepend=0.0)
    below = negative - 0.5 * np.diff(negative, prepend=0.0)
    return exact_sum(gained * below) / float(positive[-1] * negative[-1])


def mse(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Weighted mean of the squared difference of prediction and y."""
    return _mean(np.square(loss.inverse_link(scores) - y), weight)


def rmse(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Root of ``mse``, in units of y."""
    return math.sqrt(mse(y, scores, weight, loss))


def mae(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Weighted mean of the absolute difference, in units of y."""
    return _mean(np.abs(loss.inverse_link(scores) - y), weight)


def r2(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """1 - squared error / variance; if y is constant, 1 for exact predictions, else 0 (scikit-learn's rule)."""
    spread, error = _mean(np.square(y - _mean(y, weight)), weight), mse(y, scores, weight, loss)
    if spread > 0.0:
        return 1.0 - error / spread
    return 1.0 if error == 0.0 else 0.0


def quantile(y: Array, scores: Array, weight: Array | None, loss: Loss, *, a: float) -> float:
    """Pinball loss at level a: a for each unit that a prediction is too low, 1 - a for each that it is too high."""
    r = loss.inverse_link(scores) - y
    return _mean(np.where(r < 0.0, -a * r, (1.0 - a) * r), weight)


def huber(y: Array, scores: Array, weight: Array | None, loss: Loss, *, a: float) -> float:
    """Huber loss: half the square of differences up to a, linear beyond."""
    r = np.abs(loss.inverse_link(scores) - y)
    return _mean(np.where(r <= a, 0.5 * r * r, a * (r - 0.5 * a)), weight)


def poisson_deviance(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """2 mean(y log(y / m) - y + m), m the prediction. Raises InputError unless y >= 0."""
    mean = _means(loss, scores, "poisson_deviance")
    require(y >= 0.0, y, "poisson_deviance needs numbers that are not negative", "Use rmse.")
    return 2.0 * _mean(y * (log_array(np.where(y > 0.0, y, 1.0)) - log_array(mean)) - y + mean, weight)


def gamma_deviance(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """2 mean(log(m / y) + y / m - 1), m the prediction. Raises InputError unless y > 0."""
    mean = _means(loss, scores, "gamma_deviance")
    require(y > 0.0, y, "gamma_deviance needs positive numbers", "Use tweedie_deviance or rmse.")
    return 2.0 * _mean(log_array(mean) - log_array(y) + y / mean - 1.0, weight)


def tweedie_deviance(y: Array, scores: Array, weight: Array | None, loss: Loss, *, a: float) -> float:
    """Unit deviance of the Tweedie family with variance power a, 1 < a < 2. Raises InputError unless y >= 0."""
    mean = _means(loss, scores, "tweedie_deviance")
    require(y >= 0.0, y, "tweedie_deviance needs numbers that are not negative", "Use rmse.")
    log_mean, rising, falling = log_array(mean), 2.0 - a, 1.0 - a
    saturated = exp_array(rising * log_array(y)) / (rising * falling)
    fitted = exp_array(rising * log_mean) / rising - y * exp_array(falling * log_mean) / falling
    return 2.0 * _mean(saturated + fitted, weight)


def user_defined(function: Any, weight_as: str, y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Value of a user's function for y and predictions. Raises InputError unless it is a number."""
    prediction = loss.inverse_link(scores)
    if weight_as == "third":
        result = function(y, prediction, weight)
    else:
        result = function(y, prediction, **({"sample_weight": weight} if weight_as == "named" else {}))
    try:
        return float(result)
    except (TypeError, ValueError):
        raise InputError(f"eval_metric: {function!r} must return a number; it returned {result!r}.") from None


def _probabilities(loss: Loss, scores: Array) -> Array:
    p = loss.inverse_link(scores)
    rule = "probabilities lie between 0 and 1"
    require((p >= 0.0) & (p <= 1.0), p, rule, "Correct that function.", f"inverse_link of {loss.name}")
    return p


def _means(loss: Loss, scores: Array, metric: str) -> Array:
    mean = loss.inverse_link(scores)
    rule = f"{metric} needs positive predictions"
    require(mean > 0.0, mean, rule, "Correct that function.", f"inverse_link of {loss.name}")
    return mean
