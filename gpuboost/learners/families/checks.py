"""Checks of the parameters of families; each raises RecipeError."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from gpuboost.arguments import is_integer, is_real
from gpuboost.errors import RecipeError


def check_df(family: Any, null_space: int) -> None:
    """Refuse fewer degrees of freedom than the dimension of the null space, which the penalty does not shrink."""
    value = family.df
    if not is_real(value) or not null_space < float(value):
        name = type(family).__name__
        raise RecipeError(
            f"df: {name} needs a finite number above {null_space}, the dimension of what is not penalised; got "
            f"{value!r}."
        )


def check_int(family: Any, name: str, low: int, high: int) -> None:
    """Raise RecipeError unless that field is an integer of low .. high."""
    value = getattr(family, name)
    if not is_integer(value, low, high):
        raise RecipeError(f"{name}: {type(family).__name__} needs an integer from {low} to {high}; got {value!r}.")


def check_real(family: Any, name: str) -> None:
    """Raise RecipeError unless that field is a finite number of at least 0."""
    value = getattr(family, name)
    if not is_real(value, 0.0):
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
