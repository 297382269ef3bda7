"""``monotonic_cst=``: for each column, increasing, decreasing or unconstrained predictions."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_flat
from gpuboost.data.columns import column_number
from gpuboost.errors import InputError, RecipeError

RULE = "None, one of -1 (falls), 0 (free) and 1 (rises) for each column, or a mapping from names of columns to these"


def constrains(value: Any) -> bool:
    """False for None and zeros, True otherwise. Invalid values count as True; they are refused later."""
    if value is None:
        return False
    listed = value.values() if isinstance(value, Mapping) else value
    try:
        return any(direction != 0 for direction in listed)
    except (TypeError, ValueError):
        return True


def monotone_constraints(
    value: Any, n_columns: int, names: tuple[str, ...] | None, categorical: NDArray[np.bool_] | None
) -> tuple[int, ...] | None:
    """(columns,) 1, -1 or 0; None if no column is constrained. categorical (columns,): None if no column is.

    Raises
    ------
    RecipeError
        If the length is wrong, a value is not -1, 0 or 1, a name is not a column, or a column is categorical.
    """
    if value is None:
        return None
    directions = _named(value, names, n_columns) if isinstance(value, Mapping) else _listed(value, n_columns)
    for f in () if categorical is None else np.flatnonzero(categorical[:n_columns]):
        if directions[f]:
            label = f"column {f}" if names is None else f"column {names[f]!r}"
            raise RecipeError(
                "monotonic_cst: categories have no order for predictions to rise or fall with; got "
                f"{directions[f]} for the categorical {label}. Give it 0, or leave it out of categorical_features."
            )
    return directions if any(directions) else None


def _listed(value: Any, n_columns: int) -> tuple[int, ...]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or not is_flat(value):
        raise RecipeError(f"monotonic_cst: must be {RULE}; got {value!r}.")
    if len(value) != n_columns:
        raise RecipeError(
            f"monotonic_cst: must have one entry for each of the {n_columns} columns of X; got {len(value)}. Give 0 "
            "for those that are free, or a mapping of names."
        )
    return tuple(_constraint(direction, f"column {f}") for f, direction in enumerate(value))


def _named(value: Mapping[Any, Any], names: tuple[str, ...] | None, n_columns: int) -> tuple[int, ...]:
    directions = [0] * n_columns
    for name, direction in value.items():
        try:
            number = column_number(name, names, n_columns, "monotonic_cst")
        except InputError as error:
            raise RecipeError(str(error)) from None
        directions[number] = _constraint(direction, f"column {name!r}")
    return tuple(directions)


def _constraint(direction: Any, of: str) -> int:
    if isinstance(direction, (bool, np.bool_)) or not isinstance(direction, Real) or direction not in (-1, 0, 1):
        raise RecipeError(f"monotonic_cst: must be {RULE}; got {direction!r} for {of}.")
    return int(float(direction))
