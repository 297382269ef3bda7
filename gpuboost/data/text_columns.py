"""Columns of text, which are categories by default; numbers and dates written as text, and free text, are refused, and
names that nearly every row has for itself are warned of."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.tables import Column, Table
from gpuboost.errors import InputError, shown

LOOKED_AT = 1_000  # rows, at equal distances
FEWEST = 20  # rows from which a column is judged to be free text, and different values to be dates
MOST_DIFFERENT = 0.9  # share of different values from which they are names of rows, such as ids
MOST_WORDS = 4.0  # a category has fewer on average; titles and names do
WITH_COMMAS = re.compile(r"[+-]?(\d+|\d{1,3}([.' ]\d{3})+)?,\d+([eE][+-]?\d+)?", re.ASCII)
"""A number with a decimal comma, also with thousands apart."""
WITH_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII)
"""A number whose thousands are set apart by commas."""
SIGNS = "%$€£¥"
_TIME = r"([T ]\d{1,2}:\d{2}.*)?"
DATES = re.compile(rf"(\d{{4}}([-/.])\d{{1,2}}\2\d{{1,2}}|\d{{1,2}}([-/.])\d{{1,2}}\3\d{{4}}){_TIME}", re.ASCII)
"""A day, with the year first or last, and perhaps a time of day."""


def categories_by_dtype(table: Table) -> NDArray[np.bool_]:
    """(d,) True for columns of text, and for those whose dtype is of categories.

    A column of text whose values are nearly all different is warned of.

    Raises
    ------
    InputError
        If a column of text reads as numbers, as dates, or as free text.
    """
    categorical = np.zeros(table.shape[1], np.bool_)
    for f, column in enumerate(table.columns):
        text = column.levels is None and _is_text(column)
        if text:
            _refuse_no_categories(column, table.label(f))
            _warn_of_names(column, table.label(f))
        categorical[f] = text or column.levels is not None
    return categorical


def _is_text(column: Column) -> bool:
    return not column.is_numeric and any(isinstance(value, str) for value in column.values)


def _refuse_no_categories(column: Column, label: str) -> None:
    """Raise InputError if most values read as numbers, as dates, or as free text: long, and most of them different."""
    texts = [value for value in column.values[:: max(1, len(column.values) // LOOKED_AT)] if isinstance(value, str)]
    distinct = list(dict.fromkeys(texts))
    _refuse_numbers(distinct, label)
    _refuse_signs(distinct, label)
    _refuse_dates(distinct, label)
    words = np.mean([len(text.split()) for text in texts]) if texts else 0.0
    if len(texts) >= FEWEST and 2 * len(distinct) > len(texts) and words >= MOST_WORDS:
        raise InputError(
            f"X: {label} must hold numbers or categories; it looks like free text: {len(distinct)} of {len(texts)} "
            f"values differ, of {words:.0f} words on average. Make columns of its words "
            "(sklearn.feature_extraction.text.HashingVectorizer; docs/how_to/text.md), leave it out, or name it in "
            "categorical_features if its values are categories all the same."
        )


def _warn_of_names(column: Column, label: str) -> None:
    """Warn of a column of many texts, nearly all of them different: no other row says what one of them means."""
    for step in (max(1, len(column.values) // LOOKED_AT), 1):  # all of them only where those at a distance differ
        texts = [value for value in column.values[::step] if isinstance(value, str)]
        differ = len(set(texts))
        if len(texts) < FEWEST or differ <= MOST_DIFFERENT * len(texts):
            return
    warnings.warn(
        f"X: {label} is text, and {differ / len(texts):.0%} of its values differ, as names and ids do: new rows will "
        "have others, which count as missing. Leave it out, or name it in categorical_features if its values are "
        "categories all the same.",
        stacklevel=2,
    )


def _refuse_numbers(distinct: list[str], label: str) -> None:
    """Raise InputError if half of the texts or more read as numbers, with decimal points or commas."""
    plain = [text for text in distinct if reads_as_number(text)]
    with_commas = [text for text in distinct if WITH_COMMAS.fullmatch(text.strip()) or _has_thousands(text)]
    reading = {*plain, *with_commas}
    if 2 * len(reading) < len(distinct) or not reading:
        return
    others = [text for text in distinct if text not in reading]
    beside = f" beside {shown(others[0][:40])}" if others else ""
    written, convert = "", "Convert it, with pandas.to_numeric(..., errors='coerce') for instance"
    if with_commas:
        written, marks = _of_commas(with_commas)
        options = " ".join(f"--{name} {mark}" for name, mark in re.findall(r'(\w+)="(.)"', marks))
        command = "" if " or " in marks else f" ({options} of the command line)"
        convert = f"Read the file with pandas.read_csv(..., {marks}){command}, or convert the column"
    raise InputError(
        f"X: {label} must hold numbers or be declared categorical; it holds text that reads as numbers"
        f"{written}, such as {shown((with_commas or plain)[0])}{beside}. "
        f'{convert}, or name it in categorical_features, or make it X[name].astype("category").'
    )


def _refuse_signs(distinct: list[str], label: str) -> None:
    """Raise InputError if there are many texts, and most are numbers with a sign of percent or of a currency."""
    signed = [
        text for text in distinct if text.strip(SIGNS + " ") != text.strip() and _is_number(text.strip(SIGNS + " "))
    ]
    if not _are_most(signed, distinct):
        return
    raise InputError(
        f"X: {label} must hold numbers or be declared categorical; it holds text that reads as numbers with a sign, "
        f"such as {shown(signed[0])}. Take the sign away and convert it, as by X[name].str.strip({SIGNS + ' '!r}) and "
        "pandas.to_numeric, or name it in categorical_features if its values are categories all the same."
    )


def _is_number(text: str) -> bool:
    return reads_as_number(text) or _has_thousands(text) or WITH_COMMAS.fullmatch(text) is not None


def _are_most(texts: list[str], distinct: list[str]) -> bool:
    return len(texts) >= FEWEST and 2 * len(texts) >= len(distinct)


def _refuse_dates(distinct: list[str], label: str) -> None:
    """Raise InputError if there are many texts, and most read as dates."""
    dates = [text for text in distinct if DATES.fullmatch(text.strip())]
    if not _are_most(dates, distinct):
        return
    raise InputError(
        f"X: {label} must hold numbers or categories; it holds text that reads as dates, such as {shown(dates[0])}. "
        "As categories, dates of new rows would be unknown. Give what matters about them, such as the year, the "
        "weekday, or the days since a fixed date (pandas.to_datetime reads the text), or name it in "
        "categorical_features if its values are categories all the same."
    )


def _has_thousands(text: str) -> bool:
    return WITH_THOUSANDS.fullmatch(text.strip()) is not None


def _of_commas(texts: list[str]) -> tuple[str, str]:
    """Words for a message: what the commas in these numbers are, and the arguments of pandas.read_csv for them."""
    if all(map(_has_thousands, texts)):
        either = all(WITH_COMMAS.fullmatch(text.strip()) for text in texts)  # 1,234 may be one and a bit
        return " with commas", 'thousands="," or decimal=","' if either else 'thousands=","'
    return " with decimal commas", 'decimal=",", thousands="."' if any("." in text for text in texts) else 'decimal=","'


def reads_as_number(text: Any) -> bool:
    """True for text, or a number, of a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
