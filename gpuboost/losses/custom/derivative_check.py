"""Check of a custom loss against finite differences of its own functions, at a few rows and scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from gpuboost.errors import RecipeError
from gpuboost.records import dataclass
from gpuboost.types import Array

Formula: TypeAlias = Callable[[float, float], float]

_ROWS = 12
_OFFSETS = (-0.37, 0.11, 0.73)  # of scores from the start and from the target, in units and in standard deviations
_STEP = 2.0**-13
_TOLERANCE = 0.01  # relative difference that counts as equal, and largest relative error of a usable difference
_SMALLEST, _LARGEST = 0.1, 100.0  # curvature relative to the second derivative
_ARRAY_ROWS = 5
_ADVICE_OF_ARRAYS = "Correct the function, or pass check_derivatives=False to custom_arrays() if that is meant."
_ADVICE = "Correct the function, or pass check_derivatives=False to custom() if the difference is meant."


@dataclass(frozen=True, slots=True)
class Slope:
    """A central difference and a bound on its error."""

    value: float
    error: float

    def is_usable(self, other: float) -> bool:
        """True if the error is small beside this slope or ``other``."""
        size = max(abs(self.value), abs(other))
        return math.isfinite(size) and self.error < _TOLERANCE * size

    def differs(self, other: float) -> bool:
        return abs(self.value - other) > _TOLERANCE * max(abs(self.value), abs(other)) + self.error


def along(functions: tuple[Any, ...], start: Sequence[float], output: int) -> tuple[Formula, Formula, Formula]:
    """Value, gradient and curvature as functions of (y, score of one output); the other scores are near ``start``."""
    value, *derivatives = functions
    others = [score + _OFFSETS[c % len(_OFFSETS)] for c, score in enumerate(start)]

    def at(f: float) -> Array:
        return np.array([f if c == output else other for c, other in enumerate(others)])

    def value_along(y: float, f: float) -> float:
        return float(value(y, at(f)))

    def derivative_along(function: Any, y: float, f: float) -> float:
        out = np.full(len(others), math.nan)
        function(y, at(f), out)
        return float(out[output])

    gradient, hessian = (partial(derivative_along, function) for function in derivatives)
    return value_along, gradient, hessian


def check_gradient(value: Formula, gradient: Formula, y: Array, start: float, of: str = "") -> None:
    """Raise RecipeError if the gradient is not the derivative of the value.

    Points where either cannot be computed, or where the value has a kink or a jump, are left out.

    Args:
        value, gradient: functions of (y, f).
        y: (n,) targets.
        start: a score that is typical of the loss.
        of: the output, in messages.
    """
    for target, score, unit in _points(y, start):
        stated, slope = _number(gradient, target, score), _slope(value, target, score, unit)
        if slope.is_usable(stated) and slope.differs(stated):
            raise RecipeError(
                f"gradient{of}: at y={target:g}, f={score:g} it is {stated:g}, and the value rises by {slope.value:g} "
                f"per unit of f. {_ADVICE}"
            )


def check_hessian(gradient: Formula, hessian: Formula, y: Array, start: float, of: str = "") -> None:
    """Raise RecipeError if the curvature has the wrong sign or size, measured by differences of the gradient.

    It may be an upper bound of the second derivative; where that is negative, any curvature is accepted. Arguments are
    those of ``check_gradient``.
    """
    ratios = []
    for target, score, unit in _points(y, start):
        stated, slope = _number(hessian, target, score), _slope(gradient, target, score, unit)
        if not slope.is_usable(0.0) or slope.value <= 0.0 or not math.isfinite(stated):
            continue
        ratios.append(stated / slope.value)
        if ratios[-1] < _SMALLEST:
            wrong = "negative" if stated < 0.0 else f"less than {_SMALLEST:g} of that"
            raise RecipeError(
                f"hessian{of}: at y={target:g}, f={score:g} the gradient rises by {slope.value:g} per unit of f, and "
                f"the hessian {stated:g} is {wrong}. {_ADVICE}"
            )
    if ratios and min(ratios) > _LARGEST:
        raise RecipeError(
            f"hessian{of}: it is {min(ratios):g} times the second derivative, or more, wherever that was measured; "
            f"such a model would hardly learn. {_ADVICE}"
        )


def check_facts(gradient: Formula, smoothness: float | None, convex: bool, y: Array, start: float) -> None:
    """Raise RecipeError if the second derivative exceeds ``smoothness``, or is negative in a loss called convex.

    Arguments are those of ``check_gradient``.
    """
    for target, score, unit in _points(y, start):
        slope = _slope(gradient, target, score, unit)
        if not slope.is_usable(0.0):
            continue
        place = f"at y={target:g}, f={score:g} the second derivative is {slope.value:g}"
        if smoothness is not None and slope.value > (1.0 + _TOLERANCE) * smoothness:
            raise RecipeError(f"smoothness: {smoothness:g} is the largest second derivative; {place}. {_ADVICE}")
        if convex and slope.value < 0.0:
            raise RecipeError(f"convex: the loss is not; {place}. {_ADVICE}")


def check_arrays(
    value: Callable[[Array], float], derivatives: Callable[[Array], tuple[Array, Array]], start: Array, n: int
) -> None:
    """Compare g and h of a function of arrays with finite differences, in single scores of some rows.

    Points where a difference says nothing, as at a kink or a jump, are left out; h may be an upper bound of the second
    derivative.

    Args:
        value: (k, n) scores -> the sum of all losses.
        derivatives: (k, n) scores -> (k, n) g and h.
        start: (k,) scores that are typical of the loss.
        n: number of rows.

    Raises:
        RecipeError: if g is not the derivative of the value, or h has the wrong sign or is too small.
    """
    spread = np.cos(np.arange(n * len(start), dtype=np.float64)).reshape(len(start), n)  # no two scores are equal
    for offset in _OFFSETS:
        scores = start[:, None] + offset + 0.5 * spread
        for row in np.unique(np.linspace(0, n - 1, _ARRAY_ROWS).astype(int)).tolist():
            for output in range(len(start)):
                _check_at(value, derivatives, scores, output, row)


def _check_at(
    value: Callable[[Array], float], derivatives: Callable[[Array], tuple[Array, Array]], scores: Array, output: int,
    row: int,
) -> None:  # fmt: skip
    def moved(f: float) -> Array:
        changed = scores.copy()
        changed[output, row] = f
        return changed

    def gradient(_: float, f: float) -> float:
        return float(derivatives(moved(f))[0][output, row])

    f = float(scores[output, row])
    stated, curvature = (float(part[output, row]) for part in derivatives(scores))
    where = f"in row {row}" + (f", output {output}" if len(scores) > 1 else "") + f", at a score of {f:g}"
    slope = _slope(lambda _, f: value(moved(f)), 0.0, f, 1.0)
    if slope.is_usable(stated) and slope.differs(stated):
        raise RecipeError(
            f"derivatives: {where}, g is {stated:g}, and the value rises by {slope.value:g} per unit of score. "
            f"{_ADVICE_OF_ARRAYS}"
        )
    second = _slope(gradient, 0.0, f, 1.0)
    if (
        second.is_usable(0.0)
        and second.value > 0.0
        and math.isfinite(curvature)
        and curvature < _SMALLEST * second.value
    ):
        raise RecipeError(
            f"derivatives: {where}, h is {curvature:g}, and g rises by {second.value:g} per unit of score. "
            f"{_ADVICE_OF_ARRAYS}"
        )


def _points(y: Array, start: float) -> Iterator[tuple[float, float, float]]:
    """(y, f, unit of f) at quantiles of the target and at scores near the start and near the target."""
    targets = np.unique(np.quantile(np.asarray(y, dtype=np.float64), np.linspace(0.0, 1.0, _ROWS), method="nearest"))
    spread = float(np.std(targets))
    units = [1.0] if spread in (0.0, 1.0) or not math.isfinite(spread) else [1.0, spread]
    for target in targets.tolist():
        for unit in units:
            for centre in (start, target):
                yield from ((target, centre + unit * offset, unit) for offset in _OFFSETS)


def _slope(function: Formula, y: float, f: float, unit: float) -> Slope:
    """Derivative with respect to f. The error is that of rounding, and the difference to one of twice the step."""
    slopes, rounding = [], 0.0
    for step in (_STEP * unit, 2.0 * _STEP * unit):
        low, high = f - step, f + step
        below, above = _number(function, y, low), _number(function, y, high)
        if not (high > low and math.isfinite(below) and math.isfinite(above)):
            return Slope(math.nan, math.inf)
        slopes.append((above - below) / (high - low))
        rounding = max(rounding, 2.0**-50 * max(abs(below), abs(above)) / step)
    return Slope(slopes[0], rounding + abs(slopes[0] - slopes[1]))


def _number(function: Formula, y: float, f: float) -> float:
    """The function's result; NaN if it has none there. The backends report what does not compile."""
    try:
        return float(function(y, f))
    except Exception:  # of a user's function, which may be compiled for more than Python can do
        return math.nan
