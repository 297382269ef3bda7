"""Columns of text, which are categories by default; numbers written as text, and free text, are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.tables import Column, Table
from gpuboost.errors import InputError, shown

LOOKED_AT = 1_000  # rows, at equal distances
FEWEST = 20  # rows from which a column is judged to be free text
MOST_WORDS = 4.0  # a category has fewer on average; titles and names do


def categories_by_dtype(table: Table) -> NDArray[np.bool_]:
    """(d,) True for columns of text, and for those whose dtype is of categories.

    Raises
    ------
    InputError
        If a column of text reads as numbers, or as free text.
    """
    categorical = np.zeros(table.shape[1], np.bool_)
    for f, column in enumerate(table.columns):
        text = column.levels is None and _is_text(column)
        if text:
            _refuse_no_categories(column, table.label(f))
        categorical[f] = text or column.levels is not None
    return categorical


def _is_text(column: Column) -> bool:
    return not column.is_numeric and any(isinstance(value, str) for value in column.values)


def _refuse_no_categories(column: Column, label: str) -> None:
    """Raise InputError if most values read as numbers, or as free text: long, and most of them different."""
    texts = [value for value in column.values[:: max(1, len(column.values) // LOOKED_AT)] if isinstance(value, str)]
    distinct = list(dict.fromkeys(texts))
    reading = [text for text in distinct if reads_as_number(text)]
    if 2 * len(reading) >= len(distinct) > 0:
        others = [text for text in distinct if text not in set(reading)]
        beside = f" beside {shown(others[0][:40])}" if others else ""
        raise InputError(
            f"X: {label} must hold numbers or be declared categorical; it holds text that reads as numbers, such as "
            f"{shown(reading[0])}{beside}. Convert it, with pandas.to_numeric(..., errors='coerce') for instance, or "
            'name it in categorical_features, or make it X[name].astype("category").'
        )
    words = np.mean([len(text.split()) for text in texts]) if texts else 0.0
    if len(texts) >= FEWEST and 2 * len(distinct) > len(texts) and words >= MOST_WORDS:
        raise InputError(
            f"X: {label} must hold numbers or categories; it looks like free text: {len(distinct)} of {len(texts)} "
            f"values differ, of {words:.0f} words on average. Make columns of its words "
            "(sklearn.feature_extraction.text.HashingVectorizer; docs/how_to/text.md), leave it out, or name it in "
            "categorical_features if its values are categories all the same."
        )


def reads_as_number(text: Any) -> bool:
    """True for text, or a number, of a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
