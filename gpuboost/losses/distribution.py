"""Losses that predict a distribution, not only its mean: several scores per row."""

from __future__ import annotations

from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.elementary import bounded, exp, exp_array, log
from gpuboost.losses.averages import constant, location, weighted_mean
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.protocol import Loss
from gpuboost.losses.target import finite
from gpuboost.records import dataclass
from gpuboost.types import Array

_LARGEST = 1e9  # the gradient holds the square of a residual
LEAST_SPREAD = 1e-6  # of a constant target, so that F_0 is finite


@dataclass(frozen=True, slots=True)
class GaussianNLL(BaseLoss):
    """log s + (f - y)^2 / (2 s^2) + log(2 pi) / 2: the negative log-likelihood of a normal target, mean and spread.

    The scores are the mean f and log s; ``predict`` gives the mean. (CatBoost: RMSEWithUncertainty.) Curvatures are
    the Fisher information, 1 / s^2 and 2, so that Newton steps are those of natural gradient boosting (Duan and others
    2020); gradient steps, and so ``langevin``, take the plain gradient. e^(-2 log s) goes on as a constant where
    |2 log s| > 40. In fits without ``langevin``, derivatives of the mean are multiplied by the variance at the start
    (``scaled_to_start``), so that a target in other units has the same trees; those of the first round are the
    squared error's. And steps of log s are a third of Newton's: at full length the spread follows the residuals of
    fitted rows to 0, and the mean stops learning.
    """

    name: ClassVar[str] = "gaussian_nll"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression", n_outputs=2, convex=False, link="other", normal_noise=True, predicts_spread=True
    )

    @staticmethod
    def row_value(y: float, f: Array, a: float) -> float:
        r = f[0] - y
        cost: float = f[1] + 0.5 * r * r * exp(bounded(-2.0 * f[1])) + 0.9189385332046727
        return cost

    @staticmethod
    def row_derivatives(y: float, f: Array, g: Array, h: Array, a: float) -> None:
        r, precision = f[0] - y, exp(bounded(-2.0 * f[1]))
        g[1], h[1] = 1.0 - r * r * precision, 2.0
        if a > 0.0:  # of a fit: the variance at the start
            precision *= a
            precision = 1e18 if precision > 1e18 else precision  # float32 holds it times any residual
            h[1] = 6.0  # a third of the step: residuals of fitted rows are smaller than those of new ones
        g[0], h[0] = r * precision, precision

    def check_target(self, y: Array) -> None:
        finite(y, "GaussianNLL", _LARGEST)

    def start(self, y: Array, weight: Array) -> Array:
        y = np.asarray(y, dtype=np.float64)
        mean = weighted_mean(y, weight)
        variance = weighted_mean(np.square(y - mean), weight)
        return np.concatenate([location(mean, y), constant(0.5 * log(max(variance, LEAST_SPREAD * LEAST_SPREAD)))])

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        start = self.start(np.asarray(y) - offset[0], weight)
        start[1:] -= weighted_mean(offset[1], weight)
        return start

    def noise(self, members: Array, predictions: Array, temperature: float) -> NDArray[np.float64]:
        return np.asarray(np.stack([self.variance(scores) for scores in members]).mean(axis=0))

    def variance(self, scores: Array) -> NDArray[np.float64]:
        """(n,) s^2."""
        return exp_array(np.clip(2.0 * scores[1], -40.0, 40.0))


@dataclass(frozen=True, slots=True)
class ScaledGaussianNLL(BaseLoss):
    """``GaussianNLL`` inside a fit: gradient and curvature of the mean are multiplied by the variance at the start.

    This common factor changes no Newton step but for ``reg_lambda`` and ``min_child_weight``, which are then in units
    of one row whatever the units of the target. Scores stay in the units of the target. The curvature of log s is three
    times the Fisher information, which makes its steps a third as long.

    variance: above 0, of the target at the start.
    """

    name: ClassVar[str] = GaussianNLL.name
    facts: ClassVar[LossFacts] = GaussianNLL.facts
    variance: float

    row_value = staticmethod(GaussianNLL.row_value)
    row_derivatives = staticmethod(GaussianNLL.row_derivatives)

    @property
    def parameter(self) -> float:
        return self.variance

    def check_target(self, y: Array) -> None:
        GaussianNLL().check_target(y)

    def start(self, y: Array, weight: Array) -> Array:
        return GaussianNLL().start(y, weight)


def scaled_to_start(loss: Loss, start: Array) -> Loss:
    """``GaussianNLL`` in units of the spread at the start; any other loss as it is. start: (k,) scores."""
    if not isinstance(loss, GaussianNLL):
        return loss
    return ScaledGaussianNLL(exp(bounded(2.0 * float(start[1]))))


def units_of(loss: Loss) -> tuple[float, ...]:
    """Factors that bring the gradients of the outputs to one unit; () if they are of one.

    The gradient of the mean times the variance at the start has the unit of the target, and that of log s has none.
    """
    return (1.0 / sqrt(loss.variance), 1.0) if isinstance(loss, ScaledGaussianNLL) else ()
