"""A number that stands for missing values: NaN takes its place wherever rows are read."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_real
from gpuboost.data.tables import Column, Table, as_floats
from gpuboost.errors import InputError, RecipeError, shown


def checked_missing(value: Any) -> float | None:
    """The number as a float; None for NaN. Raises RecipeError if it is neither NaN nor a finite number."""
    if isinstance(value, (float, np.floating)) and isnan(value):
        return None
    if not is_real(value):
        raise RecipeError(f"missing: must be NaN or the finite number that stands for it; got {shown(value)}.")
    return float(value)


def refuse_another_missing(known: float | None, seen: float | None) -> None:
    """Refuse a Dataset whose rows were read with another ``missing``: the model's number is a value there.

    Raises
    ------
    InputError
        If the model has a number for missing values, and the Dataset has another one or none.
    """
    if known is not None and known != seen:
        raise InputError(
            f"missing: the model was fitted with {known:g}, the Dataset was made with {missing_text(seen)}; make it "
            f"with missing={known:g}, or pass the data itself."
        )


def missing_text(missing: float | None) -> str:
    """The number, or NaN, as messages have it."""
    return "NaN" if missing is None else f"{missing:g}"


def marked(table: Table, missing: float | None) -> Table:
    """The table with NaN, or None among objects, where it holds the number; itself for None.

    Raises
    ------
    InputError
        If X is on a GPU, or 0 is to be missing in a sparse matrix.
    """
    if missing is None:
        return table
    if table.matrix is None:
        return replace(table, columns=tuple(_marked_column(column, missing) for column in table.columns))
    if table.on_device:
        raise InputError(
            f"missing: rows on a GPU have NaN for missing values, and {missing:g} is to be one. Replace it there, as "
            "by X[X == value] = nan, or give the rows in the host's memory."
        )
    if not table.is_sparse:
        return replace(table, matrix=_marked(table.matrix, missing))
    if missing == 0.0:
        raise InputError("missing: entries that a sparse matrix does not store are 0, so 0 cannot be missing there.")
    matrix: Any = table.matrix
    values = _marked(matrix.data, missing)
    if values is matrix.data:
        return table
    return replace(table, matrix=type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape))


def _marked(values: NDArray[Any], missing: float) -> NDArray[Any]:
    is_missing = values == missing  # in the precision of the values, so that a float32 -0.1 is found
    if not is_missing.any():
        return values
    floats = as_floats(values).copy()
    floats[is_missing] = nan
    return floats


def _marked_column(column: Column, missing: float) -> Column:
    if column.levels is not None:
        kept = [place for place, level in enumerate(column.levels) if not _is(level, missing)]
        if len(kept) == len(column.levels):
            return column
        moved = np.full(len(column.levels) + 1, -1)  # the last one is of the place -1
        moved[kept] = np.arange(len(kept))
        return Column(moved[column.values], tuple(column.levels[place] for place in kept))
    if column.is_numeric:
        return Column(_marked(column.values, missing))
    values = np.empty(len(column.values), object)
    values[:] = [None if _is(value, missing) else value for value in column.values.tolist()]
    return Column(values)


def _is(value: Any, missing: float) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and bool(value == missing)
