"""Checks of a parameter's value: an integer, a number, a flag, a word, or an object with certain methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from gpuboost.arguments import as_float
from gpuboost.errors import RecipeError, shown

_MOST = 2**63 - 1


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """The value as an int from low to high; raises RecipeError otherwise."""
    rule = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise RecipeError(f"{name}: must be {rule}; got {shown(value)}.")
    number = int(value)
    if high is None and number > _MOST:
        rule = f"{rule}, and below 2**63"
    if not low <= number <= (_MOST if high is None else high):
        raise RecipeError(f"{name}: must be {rule}; got {shown(value)}.")
    return number


def real(name: str, value: Any, *, positive: bool = False) -> float:
    """The value as a finite float >= 0 (or > 0); raises RecipeError otherwise."""
    rule = "a finite number above 0" if positive else "a finite number, 0 or more"
    if not isinstance(value, Real) or isinstance(value, bool):
        raise RecipeError(f"{name}: must be {rule}; got {shown(value)}.")
    number = as_float(value)
    if not math.isfinite(number) or number < 0.0 or (positive and number == 0.0):
        raise RecipeError(f"{name}: must be {rule}; got {shown(value)}.")
    return number


def flag(name: str, value: Any) -> bool:
    """The value as a bool; raises RecipeError unless it is one."""
    if not isinstance(value, bool):
        raise RecipeError(f"{name}: must be True or False; got {shown(value)}.")
    return value


def choice(name: str, value: Any, options: Mapping[str, Any]) -> Any:
    """Value of the option; raises RecipeError if the option is unknown."""
    if not isinstance(value, str) or value not in options:
        raise RecipeError(f"{name}: must be one of {', '.join(map(repr, options))}; got {value!r}.")
    return options[value]


def with_methods(name: str, value: Any, methods: tuple[str, ...], rule: str) -> Any:
    """The object; raises RecipeError, with the rule, if it is a class or lacks one of the methods."""
    if isinstance(value, type) or not all(callable(getattr(value, method, None)) for method in methods):
        raise RecipeError(f"{name}: must be {rule}; got {shown(value)}.")
    return value
