"""CSV and TSV read by the standard library, for installations without pandas."""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.tables import Column, Table
from gpuboost.errors import InputError

MISSING = frozenset(
    ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA")
) | {"NULL", "NaN", "None", "n/a", "nan", "null"}
"""Texts that stand for no value, as in pandas."""

_BOOLEANS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}


def read_columns(
    stream: IO[bytes], separator: str, name: str, text_columns: Sequence[str] = (), decimal: str = "."
) -> dict[str, NDArray[Any]]:
    """Column name -> (n,) float64, int64 or bool, or objects: texts, True and False, or integers beyond 64 bits, with
    None for a missing one. A column without a name has the one that pandas gives it, "Unnamed: 3".

    text_columns: names of those that are texts whatever they hold; decimal: the character of decimal points.

    Raises
    ------
    InputError
        If the text is empty, a line has another number of fields than the first, or two columns share a name.
    """
    try:
        with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
            header, rows = _fields(csv.reader(text, delimiter=separator), name)
    except (OSError, EOFError, lzma.LZMAError, UnicodeError, csv.Error) as error:
        raise unreadable(name, error) from None
    if not rows:
        raise InputError(f"{name}: the file has column names but no rows.")
    refuse_equal_names(header, name)
    names = [title or f"Unnamed: {i}" for i, title in enumerate(header)]
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return {
        title: _texts(list(fields)) if title in text_columns else _typed(list(fields), decimal)
        for title, fields in columns
    }


def unreadable(name: str, error: Exception) -> InputError:
    """The error of a text file that cannot be read. name: of the file."""
    if isinstance(error, UnicodeError):
        return InputError(f"{name}: cannot be read as text in UTF-8; {error}. Save it in UTF-8.")
    return InputError(f"{name}: cannot be read; {error}.")


def refuse_equal_names(header: list[str], name: str) -> None:
    """Raise InputError if two columns of the file share a name, of which pandas would change one."""
    if len(set(header)) < len(header):
        twice = next(title for title in header if header.count(title) > 1)
        raise InputError(f"{name}: every column needs a name of its own; {header.count(twice)} are called {twice!r}.")


def other_separator(header: Sequence[str]) -> str:
    """Advice for a file whose first line is one field, and holds a common separator; empty for any other."""
    marks = [mark for mark in ";\t|" if len(header) == 1 and mark in header[0]]
    if not marks:
        return ""
    return (
        f": fields seem to be separated by {marks[0]!r}, and are expected to be by commas, or tabs in .tsv; name the "
        "separator, as by --sep"
    )


def is_uneven(header: Sequence[str], fields: Sequence[str]) -> bool:
    """True for a line that has neither as many fields as the first nor one more, after a last separator, with nothing
    in it; an empty line has none."""
    n = len(header)
    return bool(fields) and len(fields) != n and not (len(fields) == n + 1 and not fields[-1])


def uneven(header: Sequence[str], line: int, fields: Sequence[str]) -> str:
    """Description of a line of more or fewer fields than the first."""
    return (
        f"every line must have as many fields as the first, {len(header)}; line {line} has {len(fields)}"
        f"{other_separator(header)}"
    )


def _fields(reader: Any, name: str) -> tuple[list[str], list[list[str]]]:
    """The names in the first line, and the fields of the others."""
    header: list[str] | None = next(reader, None)
    if header is None:
        raise InputError(f"{name}: the file is empty; its first line must hold the column names.")
    rows = []
    for fields in reader:
        if is_uneven(header, fields):
            raise InputError(f"{name}: cannot be read; {uneven(header, reader.line_num, fields)}.")
        if fields:
            rows.append(fields[: len(header)])
    return header, rows


def _typed(fields: list[str], decimal: str) -> NDArray[Any]:
    """The fields of a column as the first of bool, int64 and float64 that holds all of them, or as objects."""
    missing = [field in MISSING for field in fields]
    if not all(missing) and all(lacks or field in _BOOLEANS for field, lacks in zip(fields, missing, strict=True)):
        return np.array([_BOOLEANS.get(field) for field in fields], object if any(missing) else np.bool_)
    if not any(missing):
        with suppress(ValueError):
            return _integers([int(_without_underscore(field)) for field in fields])
    try:
        return np.array([np.nan if lacks else _float(f, decimal) for f, lacks in zip(fields, missing, strict=True)])
    except ValueError:
        return _texts(fields)


def _integers(values: list[int]) -> NDArray[Any]:
    """int64, uint64, or objects if one is beyond both: as floats, ids would become one."""
    for kind in (np.int64, np.uint64):
        with suppress(OverflowError):
            return np.array(values, kind)
    return np.array(values, object)


def _float(field: str, decimal: str) -> float:
    """The number in a field. ValueError if there is none; a point is none where decimal points are commas."""
    if decimal == ".":
        return float(_without_underscore(field))
    return float(_without_underscore(field).replace(".", "?").replace(decimal, "."))


def _without_underscore(field: str) -> str:
    """The field itself; ValueError if it holds an underscore, which Python takes for a mark of thousands."""
    if "_" in field:
        raise ValueError(field)
    return field


def _texts(fields: list[str]) -> NDArray[Any]:
    return np.array([None if field in MISSING else field for field in fields], dtype=object)


def table_of(columns: dict[str, NDArray[Any]], categorical: Sequence[str]) -> Table:
    """The table of these columns; what ``categorical`` names is categorical, and text stays text."""
    parts = [_column(values, name in categorical) for name, values in columns.items()]
    return Table((len(next(iter(columns.values()))), len(parts)), tuple(columns), columns=tuple(parts))


def _column(values: NDArray[Any], categorical: bool) -> Column:
    if not categorical:
        return Column(values)
    is_missing = np.isnan(values) if values.dtype.kind == "f" else np.array([value is None for value in values])
    listed = [None if lacks else value for value, lacks in zip(values.tolist(), is_missing, strict=True)]
    places: dict[Any, int] = {}
    codes = [-1 if value is None else places.setdefault(value, len(places)) for value in listed]
    return Column(np.array(codes, np.int64), tuple(places))
