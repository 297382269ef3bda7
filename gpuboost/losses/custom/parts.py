"""Parts that losses of a user's functions share: start values, links and checks of arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy as np

from gpuboost.errors import RecipeError
from gpuboost.losses.averages import constant, location
from gpuboost.types import Array

Start: TypeAlias = float | Sequence[float] | Literal["minimise"] | Callable[[Array, Array], Any]


def check_outputs(n_outputs: Any) -> None:
    """Raise RecipeError unless it is a whole number of at least 1."""
    if isinstance(n_outputs, bool) or not isinstance(n_outputs, (int, np.integer)) or n_outputs < 1:
        raise RecipeError(f"n_outputs: must be a whole number, 1 or more; got {n_outputs!r}.")


def check_name(name: Any) -> None:
    """Raise RecipeError unless it is None, or text that is not empty."""
    if name is not None and (not isinstance(name, str) or not name):
        raise RecipeError(f"name: must be text that is not empty; got {name!r}.")


def check_start(start: Any, n_outputs: int) -> None:
    """Raise RecipeError unless it is None, a number, a function, "minimise" for one output, or a number for each."""
    if start is None or callable(start) or is_number(start):
        return
    if n_outputs == 1:
        if not (isinstance(start, str) and start == "minimise"):
            raise RecipeError(f"start: must be a number, 'minimise' or a function of (y, weight); got {start!r}.")
    else:
        scores_of(start, n_outputs)


def scores_of(start: Any, n_outputs: int) -> list[float]:
    """The start of each output. Raises RecipeError if it is neither a number nor one for each output."""
    if is_number(start):
        return [float(start)] * n_outputs
    scores = [] if isinstance(start, (str, bytes)) or np.ndim(start) != 1 else list(start)
    if len(scores) != n_outputs or not all(is_number(score) for score in scores):
        raise RecipeError(
            f"start: must be a number, {n_outputs} numbers, or a function of (y, weight) that returns either; got "
            f"{start!r}."
        )
    return [float(score) for score in scores]


def first_scores(first: Start, y: Array, weight: Array, n_outputs: int) -> Array:
    """(k,) F_0 of a number, a number for each output, or a function (y, weight) that returns either.

    Raises:
        RecipeError: if the function returns something else.
    """
    start = first(y, weight) if callable(first) else first
    if n_outputs > 1:
        return np.concatenate([constant(score) for score in scores_of(start, n_outputs)])
    score = _computed_start(start)
    return location(score, y) if callable(first) and _is_among(score, y) else constant(score)


def predictions(link: Callable[[Array], Array] | None, scores: Array) -> Array:
    """(k, n) scores to predictions: (n,) of one output, (n,) or (n, m) of several. None: the scores themselves.

    Raises:
        RecipeError: if the user's function gives other shapes.
    """
    if len(scores) > 1:
        return _of_rows(link, scores)
    if link is None:
        return scores[0]
    predicted = link(scores[0])
    if np.shape(predicted) != np.shape(scores[0]):
        raise RecipeError(
            f"inverse_link: must return one prediction for each of {len(scores[0])} scores; it returns "
            f"{_described(predicted)}."
        )
    return predicted


def _of_rows(link: Callable[[Array], Array] | None, scores: Array) -> Array:
    n = scores.shape[1]
    predicted = np.ascontiguousarray(scores.T) if link is None else link(scores)
    shape = np.shape(predicted)
    if len(shape) not in (1, 2) or shape[0] != n:
        raise RecipeError(
            f"inverse_link: must return one prediction, or one line of them, for each of {n} rows; it returns "
            f"{_described(predicted)}."
        )
    return predicted


def is_number(value: Any) -> TypeGuard[float]:
    """True for a finite real number that float64 can hold."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False


def _computed_start(result: Any) -> float:
    try:
        score = math.nan if isinstance(result, str) else float(result)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise RecipeError(f"start: must return a finite number; it returns {result!r}.")
    return score


def _is_among(score: float, y: Array) -> bool:
    return bool(np.min(y) <= score <= np.max(y))


def _described(result: Any) -> str:
    return f"an array of shape {result.shape}" if hasattr(result, "shape") else repr(result)
