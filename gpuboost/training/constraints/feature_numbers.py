"""``feature_weights=`` and ``feature_costs=``: a number for each column of X."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuboost.arguments import is_flat, is_real
from gpuboost.data.columns import column_number
from gpuboost.errors import InputError, RecipeError, shown
from gpuboost.learners import FeatureCosts
from gpuboost.types import ColumnCosts

WEIGHTS = (
    "None, or finite numbers, not negative and not all 0: one for each column, or a mapping from names of columns to "
    "these"
)


def feature_weights(value: Any, n_columns: int, names: tuple[str, ...] | None) -> tuple[float, ...] | None:
    """(columns,) not negative, not all 0; None without weights. Columns that a mapping leaves out have weight 1.

    Raises
    ------
    RecipeError
        If the length is wrong, a weight is negative or not finite, all are 0, or a name is not a column.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        weights = _of_mapping(value, 1.0, n_columns, names, "feature_weights")
    elif isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or not is_flat(value):
        raise RecipeError(f"feature_weights: must be {WEIGHTS}; got {shown(value)}.")
    elif len(value) != n_columns:
        raise RecipeError(
            f"feature_weights: must have one entry for each of the {n_columns} columns of X; got {len(value)}. Give 1 "
            "for those that are as likely as most, or a mapping of names."
        )
    else:
        weights = list(value)
    for f, weight in enumerate(weights):
        if not is_real(weight, 0.0):
            raise RecipeError(f"feature_weights: must be {WEIGHTS}; got {shown(weight)} for column {f}.")
    if not any(weight > 0.0 for weight in weights):
        raise RecipeError(f"feature_weights: must be {WEIGHTS}; got 0 for every column.")
    return tuple(float(weight) for weight in weights)


def column_costs(value: Any, n_columns: int, names: tuple[str, ...] | None) -> ColumnCosts | None:
    """The costs by numbers of columns, the trade-off multiplied in; None if nothing costs anything.

    Raises
    ------
    RecipeError
        If it is not a ``gb.FeatureCosts``, there is not one cost for each column, or a name is not a column.
    """
    if value is None:
        return None
    if not isinstance(value, FeatureCosts):
        raise RecipeError(f"feature_costs: must be None or a gb.FeatureCosts; got {shown(value)}.")
    feature_costs, tradeoff = value.feature, float(value.tradeoff)
    if isinstance(feature_costs, Mapping):
        costs = _of_mapping(feature_costs, 0.0, n_columns, names, "feature_costs: feature")
    else:
        costs = list(feature_costs) if isinstance(feature_costs, tuple) else [feature_costs] * n_columns
    if len(costs) != n_columns:
        raise RecipeError(
            f"feature_costs: feature must have one cost for each of the {n_columns} columns of X; got {len(costs)}. "
            "Give 0 for those that cost nothing, or a mapping of names."
        )
    made = ColumnCosts(tuple(tradeoff * float(cost) for cost in costs), tradeoff * float(value.split))
    if not np.isfinite([*made.columns, made.by_row]).all():
        raise RecipeError(f"feature_costs: costs times tradeoff must be finite; got {shown(value)}.")
    return made if any(made.columns) or made.by_row else None


def _of_mapping(
    value: Mapping[Any, Any], default: float, n_columns: int, names: tuple[str, ...] | None, argument: str
) -> list[Any]:
    numbers: list[Any] = [default] * n_columns
    for name, number in value.items():
        try:
            numbers[column_number(name, names, n_columns, argument)] = number
        except InputError as error:
            raise RecipeError(str(error)) from None
    return numbers
