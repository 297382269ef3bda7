"""Losses with a logarithmic link, e^f being the predicted mean: counts, amounts, and amounts with many zeros.

For |f| > 40 a loss continues as its tangent, l(c) + l'(c) (f - c) with c the nearer of -40 and 40, and h is that at c.
So no score makes a gradient overflow, and gradients beyond still point back.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.elementary import bounded, exp, exp_array, log
from gpuboost.errors import InputError, RecipeError
from gpuboost.losses.averages import constant, near, weighted_mean
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.target import LARGEST_POSITIVE, finite, number, require
from gpuboost.records import dataclass
from gpuboost.types import Array

_BOUND = 40.0  # of scores, as in ``bounded``


@dataclass(frozen=True, slots=True)
class Poisson(BaseLoss):
    """e^f - y f: half the Poisson deviance, up to a term without f. Counts, y >= 0."""

    name: ClassVar[str] = "poisson"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression", curvature_change=1.0, default_metric="poisson_deviance", link="log", positive_target=True
    )

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        c = bounded(f)
        mean = exp(c)
        return mean - y * c + (mean - y) * (f - c)

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        mean = exp(bounded(f))
        return mean - y, mean

    def noise(self, members: Array, predictions: Array, temperature: float) -> NDArray[np.float64]:
        return np.asarray(predictions.mean(axis=0))

    def check_target(self, y: Array) -> None:
        check_not_negative(y, "Poisson")

    def start(self, y: Array, weight: Array) -> Array:
        return _log_mean(y, weight)

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return _log_ratio(y, weight, offset[0], 1.0)

    def inverse_link(self, scores: Array) -> Array:
        return _means(scores)


@dataclass(frozen=True, slots=True)
class Gamma(BaseLoss):
    """y e^-f + f: half the Gamma deviance, up to a term without f. Amounts, y > 0, with error in proportion to size."""

    name: ClassVar[str] = "gamma"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression",
        bounded_level_sets=True,
        curvature_change=1.0,
        default_metric="gamma_deviance",
        link="log",
        positive_target=True,
        xgboost_objective="reg:gamma",
    )

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        c = bounded(f)
        ratio = y * exp(-c)
        return ratio + c + (1.0 - ratio) * (f - c)

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        ratio = y * exp(-bounded(f))
        return 1.0 - ratio, ratio

    def check_target(self, y: Array) -> None:
        check_positive(y, "Gamma")

    def start(self, y: Array, weight: Array) -> Array:
        return _log_mean(y, weight)

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return _log_ratio(y, weight, offset[0], 2.0)

    def inverse_link(self, scores: Array) -> Array:
        return _means(scores)


@dataclass(frozen=True, slots=True)
class Tweedie(BaseLoss):
    """e^((2 - p) f) / (2 - p) - y e^((1 - p) f) / (1 - p): half the Tweedie deviance, up to a term without f.

    Amounts, y >= 0, many of them zero; p = ``power`` lies between Poisson (1) and Gamma (2).

    Raises:
        RecipeError: if power is not between 1 and 2.
    """

    power: float = 1.5

    name: ClassVar[str] = "tweedie"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression",
        default_metric="tweedie_deviance",
        link="log",
        positive_target=True,
        xgboost_objective="reg:tweedie",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", number("Tweedie", "power", self.power))
        if not 1.0 < self.power < 2.0:
            raise RecipeError(
                f"power: Tweedie needs a number between 1 and 2; got {self.power!r}. For 1 use Poisson, for 2 Gamma."
            )

    @property
    def parameter(self) -> float:
        return self.power

    @property
    def curvature_change(self) -> float | None:
        return max(2.0 - self.power, self.power - 1.0)

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        c = bounded(f)
        rising, falling = exp((2.0 - a) * c), y * exp((1.0 - a) * c)
        return rising / (2.0 - a) - falling / (1.0 - a) + (rising - falling) * (f - c)

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        c = bounded(f)
        rising, falling = exp((2.0 - a) * c), y * exp((1.0 - a) * c)
        return rising - falling, (2.0 - a) * rising + (a - 1.0) * falling

    def check_target(self, y: Array) -> None:
        check_not_negative(y, "Tweedie")

    def start(self, y: Array, weight: Array) -> Array:
        return _log_mean(y, weight)

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return _log_ratio(y, weight, offset[0], self.power)

    def inverse_link(self, scores: Array) -> Array:
        return _means(scores)


def check_positive(y: Array, loss: str) -> None:
    """Raise InputError unless all numbers are above 0, between 1e-17 and 1e17."""
    y = finite(y, loss, LARGEST_POSITIVE)
    require(y > 0.0, y, f"{loss} needs positive numbers", "Drop those rows, or use Tweedie, which takes zeros.")
    rule = f"{loss} needs numbers of at least {1.0 / LARGEST_POSITIVE:g}"
    require(y >= 1.0 / LARGEST_POSITIVE, y, rule, "Rescale y.")


def check_not_negative(y: Array, loss: str) -> None:
    """Raise InputError unless all numbers are 0 or more, at most 1e17, and one is above 0."""
    y = finite(y, loss, LARGEST_POSITIVE)
    require(y >= 0.0, y, f"{loss} needs numbers that are not negative", "Drop those rows, or use SquaredError.")
    if not y.any():
        raise InputError(f"y: {loss} needs a positive mean; all {len(y)} values are 0. There is nothing to learn.")


def _log_mean(y: Array, weight: Array) -> Array:
    mean = weighted_mean(y, weight)
    return near(bounded(log(mean)), float(np.max(y) - np.min(y)) / mean)


def _log_ratio(y: Array, weight: Array, offset: Array, power: float) -> Array:
    """Start value beside offsets o: log of sum w y e^((1 - p) o) over sum w e^((2 - p) o)."""
    o = np.clip(offset, -_BOUND, _BOUND)
    falling, rising = np.asarray(y) * exp_array((1.0 - power) * o), exp_array((2.0 - power) * o)
    return constant(bounded(log(weighted_mean(falling, weight)) - log(weighted_mean(rising, weight))))


def _means(scores: Array) -> Array:
    return exp_array(np.minimum(scores[0], 700.0))  # finite, whatever the score
