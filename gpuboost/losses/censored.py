"""Loss of times of which some are censored: an observation ended before the event, so that its time is longer.

The target of a row is one number: t > 0 is the time of an event, and -t stands for a row that was observed up to t
without one. Beyond the bounds of z below a loss continues as its tangent.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_one_of
from gpuboost.elementary import (
    bounded,
    exp,
    exp_array,
    expit,
    expit_array,
    hazard_excess,
    log,
    log1pexp,
    log_array,
    log_near_one,
    mills_ratio,
)
from gpuboost.errors import InputError, RecipeError, shown
from gpuboost.losses.averages import near, weighted_mean
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.protocol import Derivatives, Value
from gpuboost.losses.target import LARGEST_POSITIVE, finite, number, require
from gpuboost.records import dataclass
from gpuboost.types import Array

Floats = NDArray[np.float64]

_HALF_LOG_2_PI = 0.9189385332046727
_ROOT_OF_2_PI = 2.5066282746310002
_FARTHEST = -12.0  # z of a censored row, below which the normal hazard is no normal float32 number
_CLOSE = 1e-4  # |z| below which a quotient by z is its series
_LEAST_SCALE, _LARGEST_SCALE = 1e-3, 1e3
_ITERATIONS, _PRECISION = 100, 1e-10  # of the start value
_LARGEST_LOG = 700.0  # of predictions, which stay finite


def of_time(y: float, f: float, a: float) -> float:
    """z = a (log |y| - f), the residual in units of the scale."""
    return a * (log(abs(y)) - f)


def normal_hazard(z: float) -> float:
    """phi(z) / (1 - Phi(z)), the derivative of -log(1 - Phi(z))."""
    if z >= 0.0:
        return z + hazard_excess(z)
    density = exp(-0.5 * z * z) / _ROOT_OF_2_PI
    return density / (1.0 - density * mills_ratio(-z))


def normal_value(y: float, f: float, a: float) -> float:
    """Loss of one row with normal noise. y: the signed time; f: the score; a: 1 / scale, as of all below."""
    z = of_time(y, f, a)
    if y > 0.0:
        return 0.5 * z * z + _HALF_LOG_2_PI + (log(y) - log(a))
    c = z if z > _FARTHEST else _FARTHEST
    if c >= 0.0:
        return 0.5 * c * c + _HALF_LOG_2_PI - log(mills_ratio(c))
    below = exp(-0.5 * c * c) / _ROOT_OF_2_PI * mills_ratio(-c)
    cost = log_near_one(-below, 0.0) if below < 0.29 else log(1.0 - below)
    return normal_hazard(c) * (z - c) - cost


def normal_derivatives(y: float, f: float, a: float) -> tuple[float, float]:
    """First derivative by f, and the curvature, of ``normal_value``."""
    z = of_time(y, f, a)
    if y > 0.0:
        return -z * a, a * a
    c = z if z > _FARTHEST else _FARTHEST
    if c >= 0.0:  # as normal_hazard has it, but computed once: on a GPU a second time would spill registers
        excess = hazard_excess(c)
        hazard = c + excess
    else:
        hazard = normal_hazard(c)
        excess = hazard - c
    bend = hazard * excess
    return -hazard * a, (1.0 if bend > 1.0 else bend) * (a * a)


def logistic_value(y: float, f: float, a: float) -> float:
    """Loss of one row with logistic noise."""
    z = of_time(y, f, a)
    c = bounded(z)
    if y > 0.0:
        t = abs(c)
        slope = 1.0 - 2.0 * expit(-t)
        return t + 2.0 * log1pexp(-t) + slope * (abs(z) - t) + (log(y) - log(a))
    return log1pexp(c) + expit(c) * (z - c)


def logistic_derivatives(y: float, f: float, a: float) -> tuple[float, float]:
    """First derivative by f, and the curvature, of ``logistic_value``."""
    c = bounded(of_time(y, f, a))
    t = abs(c)
    p = expit(-t)  # at most 1/2, so that no digits of the products cancel
    q = 1.0 - p
    if y > 0.0:
        slope = q - p
        bend = slope / t if t > _CLOSE else 0.5
        return (-slope if c > 0.0 else slope) * a, bend * (a * a)
    return -(q if c > 0.0 else p) * a, p * q * (a * a)


def extreme_value(y: float, f: float, a: float) -> float:
    """Loss of one row with noise of the extreme value distribution."""
    z = of_time(y, f, a)
    c = bounded(z)
    e = exp(c)
    if y > 0.0:
        return e - c + (e - 1.0) * (z - c) + (log(y) - log(a))
    return e + e * (z - c)


def extreme_derivatives(y: float, f: float, a: float) -> tuple[float, float]:
    """First derivative by f, and the curvature, of ``extreme_value``."""
    c = bounded(of_time(y, f, a))
    e = exp(c)
    if y < 0.0:
        return -e * a, e * (a * a)
    bend = e
    if c < 0.0:
        bend = (e - 1.0) / c if c < -_CLOSE else 1.0 + 0.5 * c
    return (1.0 - e) * a, bend * (a * a)


_FORMULAS: dict[str, tuple[Value, Derivatives]] = {
    "normal": (normal_value, normal_derivatives),
    "logistic": (logistic_value, logistic_derivatives),
    "extreme": (extreme_value, extreme_derivatives),
}


@dataclass(frozen=True, slots=True)
class AFT(BaseLoss):
    """Negative log-likelihood of the accelerated failure time model, log t = f + scale e, with censored times.

    e has a normal, a logistic or an extreme value distribution (that of the logarithm of an exponential variable), so
    that times are log-normal, log-logistic or Weibull. y > 0 is the time of an event; y < 0 says that there was none up
    to -y. With z = (log |y| - f) / scale the loss of an event is -log(density(z) / (scale y)), of a censored row
    -log(1 - F(z)) (Barnwal, Cho and Hocking 2022, arXiv 2006.04920; XGBoost: survival:aft; CatBoost: SurvivalAft).

    The prediction e^f is the median of the time; for "extreme" it is the scale of the Weibull distribution, by which
    63.2 % of the events have happened, and the median is log(2)^scale times it. For an event h is the second
    derivative or, where that is less, the gradient over the distance to the score of least loss: so a Newton step does
    not lead past the row's own time, however far it is.

    Raises:
        RecipeError: if there is no such distribution, or the scale is not between 0.001 and 1000.
    """

    distribution: str = "normal"
    scale: float = 1.0

    name: ClassVar[str] = "aft"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression",
        link="log",
        censored_target=True,
        checks_parameters=True,
        xgboost_objective="survival:aft",
    )

    def __post_init__(self) -> None:
        if not is_one_of(self.distribution, tuple(_FORMULAS)):
            names = ", ".join(map(repr, _FORMULAS))
            raise RecipeError(f"distribution: AFT needs one of {names}; got {shown(self.distribution)}.")
        object.__setattr__(self, "scale", number("AFT", "scale", self.scale))
        if not _LEAST_SCALE <= self.scale <= _LARGEST_SCALE:
            raise RecipeError(
                f"scale: AFT needs a number from {_LEAST_SCALE} to {_LARGEST_SCALE:g}; got {self.scale!r}."
            )

    @property
    def parameter(self) -> float:
        return 1.0 / self.scale

    @property
    def smoothness(self) -> float | None:
        largest = {"normal": 1.0, "logistic": 0.5}.get(self.distribution)
        return None if largest is None else largest / (self.scale * self.scale)

    @property
    def lipschitz(self) -> float | None:
        return 1.0 / self.scale if self.distribution == "logistic" else None

    @property
    def value(self) -> Value:
        return _FORMULAS[self.distribution][0]

    @property
    def derivatives(self) -> Derivatives:
        return _FORMULAS[self.distribution][1]

    def check_target(self, y: Array) -> None:
        check_times(y, "AFT")

    def start(self, y: Array, weight: Array) -> Array:
        return self.start_beside(y, weight, np.zeros((1, 1)))

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        y, weight = np.asarray(y, np.float64), np.asarray(weight, np.float64)
        counts, times = weight > 0.0, log_array(np.abs(y))
        residuals = (times - offset[0])[counts]
        fitted = _likeliest_extreme if self.distribution == "extreme" else self._likeliest
        score = fitted(residuals, y[counts] < 0.0, weight[counts], self.scale)
        return near(bounded(score), float(np.max(times) - np.min(times)))

    def _likeliest(self, times: Floats, censored: Any, weight: Floats, scale: float) -> float:
        """The constant of the least loss, by Newton steps inside an interval that holds it.

        times (n,): logarithms.
        """
        bends = _normal_bends if self.distribution == "normal" else _logistic_bends
        low, high = float(np.min(times)), float(np.max(times)) + 40.0 * scale
        score = weighted_mean(times, weight)
        for _ in range(_ITERATIONS):
            slope, bend = (weighted_mean(each, weight) for each in bends((times - score) / scale, censored))
            low, high = (score, high) if slope > 0.0 else (low, score)
            following = score + scale * slope / bend if bend > 0.0 else high
            following = following if low < following < high else 0.5 * (low + high)
            before, score = score, following
            if abs(score - before) <= _PRECISION * max(scale, abs(score)):
                break
        return score

    def inverse_link(self, scores: Array) -> Array:
        return exp_array(np.minimum(scores[0], _LARGEST_LOG))


def check_times(y: Any, loss: str) -> None:
    """Raise InputError unless all are times or negative times, of size 1e-17 to 1e17, and one is that of an event."""
    y = finite(y, loss, LARGEST_POSITIVE)
    rule = f"{loss} needs times: t > 0 of an event, -t of a row that is censored at t"
    require(y != 0.0, y, rule, "Drop rows of time 0, or count time from an earlier moment.")
    rule = f"{loss} needs times of at least {1.0 / LARGEST_POSITIVE:g}"
    require(np.abs(y) >= 1.0 / LARGEST_POSITIVE, y, rule, "Rescale y.")
    if not (y > 0.0).any():
        raise InputError(
            f"y: {loss} needs an event, a time above 0; all {len(y)} rows are censored. There is nothing to learn."
        )


def _normal_bends(z: Floats, censored: Any) -> tuple[Floats, Floats]:
    """(n,) first and second derivatives of the loss by z."""
    tail: Any = mills_ratio(np.abs(z))  # type: ignore[arg-type]  # arithmetic, of arrays too
    density = exp_array(-0.5 * z * z) / _ROOT_OF_2_PI
    hazard = np.where(z >= 0.0, 1.0 / tail, density / (1.0 - density * tail))
    return np.where(censored, hazard, z), np.where(censored, np.clip(hazard * (hazard - z), 0.0, 1.0), 1.0)


def _logistic_bends(z: Floats, censored: Any) -> tuple[Floats, Floats]:
    """(n,) first and second derivatives of the loss by z."""
    p = expit_array(z)
    return np.where(censored, p, 2.0 * p - 1.0), np.where(censored, 1.0, 2.0) * p * (1.0 - p)


def _likeliest_extreme(times: Floats, censored: Any, weight: Floats, scale: float) -> float:
    """The constant of the least loss: at it the mean of e^z is the share of events. times (n,): logarithms."""
    last = float(np.max(times))
    total = weighted_mean(exp_array((times - last) / scale), weight)
    return last + scale * (log(total) - log(weighted_mean(np.where(censored, 0.0, 1.0), weight)))
