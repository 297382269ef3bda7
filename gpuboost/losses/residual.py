"""Losses of the residual r = f - y, for targets of any sign. The score is the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.losses.averages import location, lower_quantile, weighted_mean
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.target import finite, number
from gpuboost.types import Array


@dataclass(frozen=True, slots=True)
class SquaredError(BaseLoss):
    """r^2 / 2: the mean."""

    name: ClassVar[str] = "squared_error"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression",
        smoothness=1.0,
        strong_convexity=1.0,
        bounded_level_sets=True,
        default_metric="rmse",
        normal_noise=True,
    )

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        return 0.5 * (f - y) * (f - y)

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        return f - y, 1.0

    def noise(self, members: Array, predictions: Array, temperature: float) -> NDArray[np.float64]:
        return np.full(members.shape[2], 1.0 / temperature)

    def check_target(self, y: Array) -> None:
        finite(y, "SquaredError")

    def start(self, y: Array, weight: Array) -> Array:
        return location(weighted_mean(y, weight), y)

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return self.start(np.asarray(y) - offset[0], weight)


@dataclass(frozen=True, slots=True)
class Huber(BaseLoss):
    """r^2 / 2 where |r| <= delta, delta (|r| - delta / 2) beyond (Huber 1964): the mean, less moved by outliers.

    h is 0 where |r| > delta, so a leaf of outliers has none: the automatic step is the gradient step, h = 1 = sigma.
    The start is the lower median, not the exact minimiser, as is usual (Friedman 2001).

    Raises:
        RecipeError: if delta is not positive.
    """

    delta: float = 1.0

    name: ClassVar[str] = "huber"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression", smoothness=1.0, bounded_level_sets=True, has_curvature=False, default_metric="huber"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", number("Huber", "delta", self.delta))
        if not self.delta > 0.0:
            raise RecipeError(f"delta: Huber needs a positive number; got {self.delta!r}.")

    @property
    def parameter(self) -> float:
        return self.delta

    @property
    def lipschitz(self) -> float | None:
        return self.delta

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        r = abs(f - y)
        return 0.5 * r * r if r <= a else a * (r - 0.5 * a)

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        r = f - y
        g = a if r > a else r
        return (-a if g < -a else g), (1.0 if abs(r) <= a else 0.0)

    def check_target(self, y: Array) -> None:
        finite(y, "Huber")

    def start(self, y: Array, weight: Array) -> Array:
        return location(lower_quantile(y, weight, 0.5), y)

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return self.start(np.asarray(y) - offset[0], weight)


@dataclass(frozen=True, slots=True)
class AbsoluteError(BaseLoss):
    """|r|: the (lower) median. Its derivative at r = 0 is taken as 0, the middle of the subgradient."""

    name: ClassVar[str] = "absolute_error"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression",
        bounded_level_sets=True,
        lipschitz=1.0,
        has_curvature=False,
        leaf_quantile=0.5,
        default_metric="mae",
    )

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        return abs(f - y)

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        g = 1.0 if f > y else 0.0
        return (-1.0 if f < y else g), 0.0

    def check_target(self, y: Array) -> None:
        finite(y, "AbsoluteError")

    def start(self, y: Array, weight: Array) -> Array:
        return location(lower_quantile(y, weight, 0.5), y)

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return self.start(np.asarray(y) - offset[0], weight)


@dataclass(frozen=True, slots=True)
class Quantile(BaseLoss):
    """alpha (y - f) below the target, (1 - alpha) (f - y) above (Koenker and Bassett 1978): the lower alpha-quantile.

    Raises:
        RecipeError: if alpha is not between 0 and 1.
    """

    alpha: float = 0.5

    name: ClassVar[str] = "quantile"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression", bounded_level_sets=True, has_curvature=False, default_metric="quantile"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number("Quantile", "alpha", self.alpha))
        if not 0.0 < self.alpha < 1.0:
            raise RecipeError(f"alpha: Quantile needs a number between 0 and 1; got {self.alpha!r}.")

    @property
    def parameter(self) -> float:
        return self.alpha

    @property
    def lipschitz(self) -> float | None:
        return max(self.alpha, 1.0 - self.alpha)

    @property
    def leaf_quantile(self) -> float | None:
        return self.alpha

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        return a * (y - f) if f < y else (1.0 - a) * (f - y)

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        g = 1.0 - a if f > y else 0.0
        return (-a if f < y else g), 0.0

    def check_target(self, y: Array) -> None:
        finite(y, "Quantile")

    def start(self, y: Array, weight: Array) -> Array:
        return location(lower_quantile(y, weight, self.alpha), y)

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return self.start(np.asarray(y) - offset[0], weight)
