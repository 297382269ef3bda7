"""The metrics of a loss of several quantiles: (y, scores, weight, loss) -> value. The same bits on every machine.

y (n,), scores (k, n), weight (n,) or None. They judge the predictions: the scores of a row in increasing order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.metrics.formulas import mean
from gpuboost.types import Array


def mean_pinball(y: Array, scores: Array, weight: Array | None, loss: Any) -> float:
    """Mean over rows and levels of the pinball loss; half the CRPS of the quantiles in the limit of even levels."""
    total = np.zeros(len(y))
    for level, predicted in zip(loss.alpha, loss.inverse_link(scores).T, strict=True):  # in this order everywhere
        total += _pinball(y, predicted, level)
    return mean(total / len(loss.alpha), weight)


def pinball(y: Array, scores: Array, weight: Array | None, loss: Any, *, level: float) -> float:
    """Mean pinball loss of one level."""
    return mean(_pinball(y, loss.inverse_link(scores)[:, loss.alpha.index(level)], level), weight)


def _pinball(y: Array, predicted: Array, level: float) -> Array:
    r = predicted - y
    return np.where(r < 0.0, -level * r, (1.0 - level) * r)


def coverage(y: Array, scores: Array, weight: Array | None, loss: Any) -> float:
    """Share of the weight of rows whose target lies between the lowest and the highest quantile, bounds included."""
    predicted = loss.inverse_link(scores)
    return mean(((predicted[:, 0] <= y) & (y <= predicted[:, -1])).astype(np.float64), weight)


def interval_width(y: Array, scores: Array, weight: Array | None, loss: Any) -> float:
    """Weighted mean of the distance between the lowest and the highest quantile."""
    predicted = loss.inverse_link(scores)
    return mean(predicted[:, -1] - predicted[:, 0], weight)


INTERVALS = {"coverage": coverage, "interval_width": interval_width}
"""Metrics of the interval between the outermost levels."""
