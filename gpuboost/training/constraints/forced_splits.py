"""``forced_splits=``: the first splits of every tree, as a nested mapping or a JSON file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.columns import column_number
from gpuboost.errors import InputError, RecipeError, shown
from gpuboost.types import ForcedSplit

RULE = (
    'None, a split such as {"feature": "age", "threshold": 30.5, "left": {...}, "right": {...}}, or the path of a JSON '
    "file with one"
)
KEYS = {"feature", "threshold", "left", "right"}
MOST_LEVELS = 10  # so at most 1,023 splits


def forced_splits(
    value: Any, n_columns: int, names: tuple[str, ...] | None, categorical: NDArray[np.bool_] | None
) -> ForcedSplit | None:
    """The splits by numbers of columns; None if there are none. categorical (columns,): None if no column is.

    Raises
    ------
    RecipeError
        If it is not such a mapping, a name or index is not a column, or a column is categorical.
    InputError
        If there is a path, and its file cannot be read.
    """
    if value is None:
        return None
    if isinstance(value, (str, os.PathLike)):
        value = _read(value)
    return _split(value, n_columns, names, categorical, 1)


def _read(path: str | os.PathLike[str]) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"forced_splits: must be {RULE}; {os.fspath(path)!r} cannot be read: {error}.") from None


def _split(
    value: Any, n_columns: int, names: tuple[str, ...] | None, categorical: NDArray[np.bool_] | None, level: int
) -> ForcedSplit:
    if level > MOST_LEVELS:
        raise RecipeError(f"forced_splits: at most {MOST_LEVELS} levels; got more. Leave out the lowest ones.")
    if not isinstance(value, Mapping) or not {"feature", "threshold"} <= set(value) <= KEYS:
        raise RecipeError(f"forced_splits: must be {RULE}; got {shown(value)}.")
    threshold = value["threshold"]
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not math.isfinite(_number(threshold)):
        raise RecipeError(f"forced_splits: a threshold must be a finite number; got {shown(threshold)}.")
    try:
        column = column_number(value["feature"], names, n_columns, "forced_splits")
    except InputError as error:
        raise RecipeError(str(error)) from None
    if categorical is not None and categorical[column]:
        label = f"column {column}" if names is None else f"column {names[column]!r}"
        raise RecipeError(f"forced_splits: categories have no order to split at a threshold; {label} is categorical.")
    rest = n_columns, names, categorical, level + 1
    left, right = (None if value.get(side) is None else _split(value[side], *rest) for side in ("left", "right"))
    return ForcedSplit(column, _number(threshold), left, right)


def _number(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def forced_to_json(value: Any) -> Any:
    """The parameter as it stands in a model file: a path, or nested objects. Raises TypeError for anything else."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {key: forced_to_json(field) for key, field in value.items()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    return os.fspath(value)


def forced_from_json(value: Any, level: int = 1) -> Any:
    """Inverse of ``forced_to_json``. Raises InputError if no parameter is written like this."""
    if level == 1 and (value is None or isinstance(value, str)):
        return value
    known = isinstance(value, dict) and level <= MOST_LEVELS and {"feature", "threshold"} <= set(value) <= KEYS
    if not known or not all(isinstance(value[key], (str, int, float)) for key in ("feature", "threshold")):
        raise InputError(f"model file: parameters.forced_splits: must be {RULE}; found {shown(value)}.")
    sides = {key: side for key, side in value.items() if key in ("left", "right") and side is not None}
    return {**value, **{key: forced_from_json(side, level + 1) for key, side in sides.items()}}
