"""Losses of two classes: y is 0 or 1, and the score is positive where class 1 is more probable.

Both are written in t, the score counted towards the wrong class, so that exchanging the classes mirrors every score
to the last bit.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpuboost.elementary import bounded, exp, exp_array, expit, expit_array, log, log1pexp
from gpuboost.errors import RecipeError
from gpuboost.losses.averages import constant, rising_root, weighted_mean
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.target import number, zero_or_one
from gpuboost.records import dataclass
from gpuboost.types import Array

_MOST_STEPS, _SHORT = 40, 1e-9  # of Newton's method for a start beside offsets
_RAREST = 2.0**-23  # a class that is absent is taken to be this frequent, so that F_0 is finite


@dataclass(frozen=True, slots=True)
class Logistic(BaseLoss):
    """log(1 + e^t) + (ridge / 2) f^2 with t = -f if y = 1, f if y = 0: the negative log-likelihood.

    The score is the log-odds. A positive ridge makes the loss strongly convex (RGBM, section 5.1).

    Raises:
        RecipeError: if ridge is negative.
    """

    ridge: float = 0.0

    name: ClassVar[str] = "logistic"
    facts: ClassVar[LossFacts] = LossFacts(
        task="binary", curvature_change=1.0, default_metric="logloss", link="logistic"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", number("Logistic", "ridge", self.ridge))
        if self.ridge < 0.0:
            raise RecipeError(f"ridge: Logistic needs a number that is not negative; got {self.ridge!r}.")

    @property
    def parameter(self) -> float:
        return self.ridge

    @property
    def smoothness(self) -> float | None:
        return 0.25 + self.ridge

    @property
    def strong_convexity(self) -> float:
        return self.ridge

    @property
    def bounded_level_sets(self) -> bool:
        return self.ridge > 0.0

    @property
    def lipschitz(self) -> float | None:
        return 1.0 if self.ridge == 0.0 else None

    @property
    def log_loss(self) -> Logistic:
        return Logistic()  # without the ridge

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        return log1pexp(-f if y > 0.5 else f) + 0.5 * a * f * f

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        p = expit(bounded(-f if y > 0.5 else f))  # of the wrong class
        return (-p if y > 0.5 else p) + a * f, p * (1.0 - p) + a

    def check_target(self, y: Array) -> None:
        zero_or_one(y, "Logistic")

    def start(self, y: Array, weight: Array) -> Array:
        mean = weighted_mean(y, weight)
        if self.ridge == 0.0:
            return constant(log_odds(mean))
        return constant(rising_root(lambda f: expit(f) - mean + self.ridge * f, -40.0, 40.0))

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return constant(log_odds_beside(y, weight, offset[0], self.ridge))

    def inverse_link(self, scores: Array) -> Array:
        return expit_array(scores[0])


@dataclass(frozen=True, slots=True)
class Exponential(BaseLoss):
    """e^t with t = -f if y = 1, f if y = 0: the loss of AdaBoost. The score is half the log-odds.

    (Friedman, Hastie and Tibshirani 2000.) Where |f| > 40 it goes on as its tangent.
    """

    name: ClassVar[str] = "exponential"
    facts: ClassVar[LossFacts] = LossFacts(
        task="binary", curvature_change=1.0, default_metric="logloss", link="logistic", score_scale=2.0
    )

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        t = -f if y > 0.5 else f
        c = bounded(t)
        return exp(c) * (1.0 + (t - c))

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        e = exp(bounded(-f if y > 0.5 else f))
        return (-e if y > 0.5 else e), e

    def check_target(self, y: Array) -> None:
        zero_or_one(y, "Exponential")

    def start(self, y: Array, weight: Array) -> Array:
        return constant(0.5 * log_odds(weighted_mean(y, weight)))

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        o, y = np.clip(offset[0], -40.0, 40.0), np.asarray(y)
        of_class_1 = weighted_mean(y * exp_array(-o), weight)
        of_class_0 = weighted_mean((1.0 - y) * exp_array(o), weight)
        return constant(bounded(0.5 * (log(max(of_class_1, _RAREST)) - log(max(of_class_0, _RAREST)))))

    def inverse_link(self, scores: Array) -> Array:
        return expit_array(2.0 * scores[0])


def log_odds(mean: float) -> float:
    """Log odds of a share, which is first clipped away from 0 and 1."""
    p = min(max(mean, _RAREST), 1.0 - _RAREST)
    return log(p) - log(1.0 - p)


def log_odds_beside(y: Array, weight: Array, offset: Array, ridge: float = 0.0) -> float:
    """c that minimises the mean of Logistic(ridge) at the scores c + offset: Newton steps of at most 2, from c = 0.

    y, weight, offset: (n,). Between -40 and 40. Sums are exact, so it is the same on every machine.
    """
    mean, level, c = weighted_mean(y, weight), weighted_mean(offset, weight), 0.0
    for _ in range(_MOST_STEPS):
        p = expit_array(c + offset)
        slope = weighted_mean(p, weight) - mean + ridge * (c + level)
        step = slope / max(weighted_mean(p * (1.0 - p), weight) + ridge, _RAREST)
        c = min(max(c - min(max(step, -2.0), 2.0), -40.0), 40.0)
        if abs(step) < _SHORT:
            break
    return c
