"""Losses of the residual r = f - y, for targets of any sign. The score is the prediction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.losses.averages import location, lower_quantile, weighted_mean
from gpuboost.losses.base import BaseLoss, LossFacts, named
from gpuboost.losses.protocol import RowDerivatives, RowValue
from gpuboost.losses.target import finite, number
from gpuboost.records import dataclass
from gpuboost.types import Array

_REWEIGHTINGS = 100  # Newton's method on a piecewise linear slope: it ends after a few


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
class Expectile(BaseLoss):
    """alpha r^2 below the target, (1 - alpha) r^2 above (Newey and Powell 1987): the alpha-expectile; r^2 / 2 at 1/2.

    The expectile balances the mean excess on both sides, as the quantile balances probabilities: smooth, and moved by
    the size of outliers.

    Raises:
        RecipeError: if alpha is not between 0 and 1.
    """

    alpha: float = 0.5

    name: ClassVar[str] = "expectile"
    facts: ClassVar[LossFacts] = LossFacts(task="regression", bounded_level_sets=True, default_metric="expectile")

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number("Expectile", "alpha", self.alpha))
        if not 0.0 < self.alpha < 1.0:
            raise RecipeError(f"alpha: Expectile needs a number between 0 and 1; got {self.alpha!r}.")

    @property
    def parameter(self) -> float:
        return self.alpha

    @property
    def smoothness(self) -> float | None:
        return 2.0 * max(self.alpha, 1.0 - self.alpha)

    @property
    def strong_convexity(self) -> float:
        return 2.0 * min(self.alpha, 1.0 - self.alpha)

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        return (a if f < y else 1.0 - a) * (f - y) * (f - y)

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        h = 2.0 * (a if f < y else 1.0 - a)
        return h * (f - y), h

    def check_target(self, y: Array) -> None:
        finite(y, "Expectile")

    def start(self, y: Array, weight: Array) -> Array:
        """The root of alpha E(y - f)+ = (1 - alpha) E(f - y)+, by iterated weighted means (exact sums)."""
        y, weight = np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64)
        centre = weighted_mean(y, weight)
        for _ in range(_REWEIGHTINGS):
            before, centre = centre, weighted_mean(y, weight * np.where(y > centre, self.alpha, 1.0 - self.alpha))
            if centre == before:
                break
        return location(centre, y)

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

    A list of levels makes a ``Quantiles``: one model that predicts all of them, in order.

    Raises:
        RecipeError: if alpha is not between 0 and 1.
    """

    alpha: float = 0.5

    name: ClassVar[str] = "quantile"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression", bounded_level_sets=True, has_curvature=False, default_metric="quantile"
    )

    def __new__(cls, alpha: Any = 0.5) -> Any:
        if isinstance(alpha, (list, tuple, np.ndarray)):
            return Quantiles(alpha)  # type: ignore[arg-type]
        return object.__new__(cls)

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


@dataclass(frozen=True, slots=True)
class Quantiles(BaseLoss):
    """The sum of the quantile losses of several levels, one score each. ``Quantile([0.05, 0.5, 0.95])`` makes one.

    Score c is trained as by ``Quantile(alpha[c])`` alone: same trees, same leaf values. The prediction is the scores of
    a row in increasing order, so that quantiles never cross (rearrangement: Chernozhukov, Fernandez-Val and Galichon
    2010). Sorting never raises the loss, whatever y is: the quantile loss of level a is a (y - f) + max(f - y, 0),
    whose second term is the same for every level, so that the exchange of f_i > f_j, where a_i < a_j, lowers the sum
    by (a_j - a_i) (f_i - f_j); sorting is a sequence of such exchanges.

    Raises:
        RecipeError: if the levels are not two or more increasing numbers between 0 and 1.
    """

    alpha: tuple[float, ...] = (0.05, 0.5, 0.95)

    name: ClassVar[str] = "quantiles"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression",
        bounded_level_sets=True,
        has_curvature=False,
        default_metric="quantile",
        link="other",
        checks_parameters=True,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _levels(self.alpha))

    @property
    def n_outputs(self) -> int:
        return len(self.alpha)

    @property
    def lipschitz(self) -> float | None:
        return math.sqrt(sum(max(level, 1.0 - level) ** 2 for level in self.alpha))

    @property
    def row_value(self) -> RowValue:
        return _formulas(self.alpha)[0]

    @property
    def row_derivatives(self) -> RowDerivatives:
        return _formulas(self.alpha)[1]

    def of_output(self, output: int) -> Quantile:
        return Quantile(self.alpha[output])

    def check_target(self, y: Array) -> None:
        finite(y, "Quantile")

    def start(self, y: Array, weight: Array) -> Array:
        return np.concatenate([Quantile(level).start(y, weight) for level in self.alpha])

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        each = enumerate(self.alpha)
        return np.concatenate([Quantile(level).start_beside(y, weight, offset[c : c + 1]) for c, level in each])

    def inverse_link(self, scores: Array) -> Array:
        """(k, n) scores to (n, k) quantiles that do not decrease from column to column."""
        return np.ascontiguousarray(np.sort(scores, axis=0).T)


def _levels(alpha: Any) -> tuple[float, ...]:
    rule = "alpha: several quantiles need two or more increasing numbers between 0 and 1"
    if isinstance(alpha, np.ndarray) and alpha.ndim == 1:
        alpha = alpha.tolist()
    flat = isinstance(alpha, Sequence) and not any(isinstance(level, (Sequence, np.ndarray)) for level in alpha)
    if isinstance(alpha, (str, bytes)) or not flat:
        raise RecipeError(f"{rule}; got {alpha!r}.")
    levels = tuple(number("Quantile", "alpha", level) for level in alpha)
    steps = zip((0.0, *levels), (*levels, 1.0), strict=True)
    if len(levels) < 2 or not all(low < high for low, high in steps):
        advice = f" For one use Quantile({levels[0]!r})." if len(levels) == 1 and 0.0 < levels[0] < 1.0 else ""
        raise RecipeError(f"{rule}; got {list(levels)!r}.{advice}")
    return levels


@cache
def _formulas(levels: tuple[float, ...]) -> tuple[RowValue, RowDerivatives]:
    """The formulas of a row. The levels are constants in them, since ``a`` holds one number only."""

    def row_value(y: float, f: Array, a: float) -> float:
        total = 0.0
        for c, level in enumerate(levels):
            r = f[c] - y
            total += -level * r if r < 0.0 else (1.0 - level) * r
        return total

    def row_derivatives(y: float, f: Array, g: Array, h: Array, a: float) -> None:
        for c, level in enumerate(levels):
            high = 1.0 - level if f[c] > y else 0.0
            g[c] = -level if f[c] < y else high
            h[c] = 0.0

    return named(row_value, f"quantiles_{levels}"), named(row_derivatives, f"quantiles_{levels}")
