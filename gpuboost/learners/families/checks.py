"""Checks of the parameters of families; each raises RecipeError."""

from __future__ import annotations

from math import inf
from numbers import Integral, Real
from typing import Any

from gpuboost.errors import RecipeError


def check_df(family: Any, null_space: int) -> None:
    """Refuse fewer degrees of freedom than the dimension of the null space, which the penalty does not shrink."""
    value = family.df
    if isinstance(value, bool) or not isinstance(value, Real) or not null_space < float(value) < inf:
        name = type(family).__name__
        raise RecipeError(
            f"df: {name} needs a finite number above {null_space}, the dimension of what is not penalised; got "
            f"{value!r}."
        )


def check_int(family: Any, name: str, low: int, high: int) -> None:
    """Raise RecipeError unless that field is an integer of low .. high."""
    value = getattr(family, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise RecipeError(f"{name}: {type(family).__name__} needs an integer from {low} to {high}; got {value!r}.")


def check_real(family: Any, name: str) -> None:
    """Raise RecipeError unless that field is a finite number of at least 0."""
    value = getattr(family, name)
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) < inf:
        raise RecipeError(f"{name}: {type(family).__name__} needs a finite number of at least 0; got {value!r}.")


def check_columns(family: Any) -> None:
    """Raise RecipeError unless ``columns`` is None or a list of column numbers or names."""
    value = family.columns
    if value is None:
        return
    if not isinstance(value, (list, tuple)) or not value or any(isinstance(column, bool) for column in value):
        raise RecipeError(
            f"columns: {type(family).__name__} needs None, or numbers or names of features; got {value!r}."
        )
    if not all(isinstance(column, (Integral, str)) for column in value):
        raise RecipeError(f"columns: {type(family).__name__} needs numbers or names of features; got {value!r}.")
    object.__setattr__(
        family, "columns", tuple(int(column) if isinstance(column, Integral) else column for column in value)
    )
