"""The values of a categorical column, and the code of each.

A category is text, or a number (bool, int or float). Values are compared as Python compares them, so 1, 1.0 and True
are one category, whatever the column's dtype was when it was learned and is now.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from datetime import date, timedelta
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.tables import Column
from gpuboost.data.text_columns import reads_as_number
from gpuboost.errors import InputError, InputTypeError, shown

Category: TypeAlias = str | int | float | bool


def learn_categories(column: Column, label: str) -> tuple[Category, ...]:
    """The distinct values, sorted, whatever their order in the dtype: models do not depend on it.

    Raises
    ------
    InputError
        If they are neither all text nor all finite numbers.
    """
    if column.levels is not None:
        return tuple(sorted(_plain(column.levels, label)))
    if column.is_numeric:
        values = np.unique(column.values)
        return _plain(_shortest(values[~np.isnan(values)] if values.dtype.kind == "f" else values), label)
    return tuple(sorted(_plain(_distinct(column.values, label), label)))


def category_codes(column: Column, categories: tuple[Category, ...], label: str) -> NDArray[np.float64]:
    """(n,) the place of each value in ``categories``; NaN where it is missing or not among them.

    Raises
    ------
    InputError
        If the categories are text and the values numbers, or the other way round.
    """
    if column.levels is not None:
        codes = np.append(_codes_of_objects(column.levels, categories, label), np.nan)
        return np.take(codes, column.values)  # -1 is the last
    if column.is_numeric:
        present = column.values[column.values == column.values]
        if len(present) and categories and isinstance(categories[0], str):
            _refuse_kind(present[0].item(), categories, label)
        return _codes_of_numbers(column.values, categories)
    return _codes_of_objects(column.values, categories, label)


def numbers(column: Column, label: str) -> NDArray[Any]:
    """(n,) the column as numbers, of its own dtype if it has a numeric one.

    Raises
    ------
    InputError
        If it holds text or dates.
    InputTypeError
        If it holds something else that is no number.
    """
    if column.is_numeric:
        return column.values
    if column.levels is None:
        return _floats(column.values, label)
    return np.take(np.append(_floats(column.levels, label), np.nan), column.values)  # -1 is the last


def _floats(values: Iterable[Any], label: str) -> NDArray[np.float64]:
    """Objects as numbers, None and pandas.NA being missing. Text is refused even where float() could read it."""
    values = [np.nan if is_missing(value) else value for value in values]
    _refuse_others(values, label)
    try:
        return np.fromiter(values, dtype=np.float64, count=len(values))
    except (TypeError, ValueError, OverflowError) as error:
        said = str(error).rstrip(".")
        raise InputTypeError(f"X: {label} must hold numbers: {said}.") from None


def _refuse_others(values: list[Any], label: str) -> None:
    """Raise InputError if there are texts among the values, or dates."""
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        worst = next((text for text in texts if not reads_as_number(text)), texts[0])
        raise InputError(
            f"X: {label} must hold numbers, as it is not among the categorical features; it holds {shown(worst)}. "
            "Convert it, with pandas.to_numeric(..., errors='coerce') for instance; if its values are categories, fit "
            "with it in categorical_features."
        )
    dates = [value for value in values if isinstance(value, (date, timedelta, np.datetime64, np.timedelta64))]
    if dates:
        raise InputError(
            f"X: {label}: dates and time spans are not numbers; got {shown(dates[0])}. Give what matters about them, "
            "such as the year, the weekday, or the days since a fixed date."
        )


def is_missing(value: Any) -> bool:
    """True for None, NaN, pandas.NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def _distinct(values: NDArray[Any], label: str) -> list[Any]:
    try:
        return [value for value in set(values.tolist()) if not is_missing(value)]
    except TypeError as error:
        raise InputTypeError(f"X: {label} must hold text or numbers as categories: {error}.") from None


def _plain(values: Iterable[Any], label: str) -> tuple[Category, ...]:
    """The values as Python's own types, all text or all numbers."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    for value in plain:
        if not isinstance(value, (str, bool, int, float)):
            raise InputError(
                f"X: {label}: a category must be text or a number; got {value!r} ({type(value).__name__}). "
                "Convert the column with astype(str)."
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"X: {label}: a category must be finite; got {value!r}. Replace it, or make it missing.")
    text = [value for value in plain if isinstance(value, str)]
    if 0 < len(text) < len(plain):
        number = next(value for value in plain if not isinstance(value, str))
        raise InputError(
            f"X: {label}: categories must be all text or all numbers; got {text[0]!r} and {number!r}. "
            "Convert the column with astype(str)."
        )
    return tuple(plain)


def _shortest(values: NDArray[Any]) -> list[Any]:
    """Whole floats as ints: 3 reads better in a model file than 3.0."""
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in values.tolist()]


def _codes_of_numbers(values: NDArray[Any], categories: tuple[Category, ...]) -> NDArray[np.float64]:
    if not categories:
        return np.full(len(values), np.nan)
    listed = np.array(categories)
    if listed.dtype.kind == "O" or (listed.dtype.kind in "iu" and values.dtype.kind == "f"):
        listed = listed.astype(np.float64)
    order = np.argsort(listed, kind="stable")
    place = np.minimum(np.searchsorted(listed[order], values), len(listed) - 1)
    return np.where(listed[order[place]] == values, order[place], np.nan)


def _codes_of_objects(values: Collection[Any], categories: tuple[Category, ...], label: str) -> NDArray[np.float64]:
    code = {category: float(place) for place, category in enumerate(categories)}
    values = values.tolist() if isinstance(values, np.ndarray) else values
    try:
        numbers = np.fromiter(map(code.get, values, repeat(math.nan)), np.float64, len(values))
    except TypeError as error:
        raise InputTypeError(f"X: {label} must hold text or numbers as categories: {error}.") from None
    if categories and np.isnan(numbers).any():
        text = isinstance(categories[0], str)
        for value in set(values) - set(code):
            if not is_missing(value) and isinstance(value, str) != text:
                _refuse_kind(value, categories, label)
    return numbers


def _refuse_kind(value: Any, categories: tuple[Category, ...], label: str) -> None:
    learned, seen = ("text", "a number") if isinstance(categories[0], str) else ("numbers", "something else")
    raise InputError(
        f"X: {label}: its categories were learned as {learned}, such as {categories[0]!r}; got {seen}, {value!r}. "
        "Give the column the type it had in training."
    )
