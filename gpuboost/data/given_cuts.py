"""Bin edges given by the user: of another library, of a paper's protocol, or the usual ones of a field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.columns import Columns, column_number
from gpuboost.data.cuts import by_column, divided
from gpuboost.errors import InputError
from gpuboost.types import Cuts

Thresholds = NDArray[np.float64]


def check_cuts(given: Any, columns: Columns, max_bins: int) -> dict[int, Thresholds]:
    """Thresholds by column number; columns that are not listed are binned as usual.

    given: None, a mapping of column (name or number) to thresholds, a sequence of d entries (thresholds, or None to
    have them chosen), or the ``cuts`` of another Dataset.

    Raises
    ------
    InputError
        If there is no such column or it is categorical, or thresholds are not increasing finite numbers, or too many.
    """
    d = columns.n_features
    if given is None:
        return {}
    if isinstance(given, Cuts):
        if given.is_categorical.any():
            raise InputError(
                "cuts: those of a categorical column belong to the categories of their own data; give thresholds of "
                "the numeric columns as {column: thresholds}."
            )
        given = by_column(given)[0]
    if isinstance(given, Mapping):
        pairs = [(column_number(key, columns.names, d, "cuts"), value) for key, value in given.items()]
        twice = sorted(f for f in {f for f, _ in pairs} if sum(f == other for other, _ in pairs) > 1)
        if twice:
            raise InputError(
                f"cuts: a column is given once; {_label(twice[0], columns)} is there by name and by number."
            )
    else:
        pairs = list(enumerate(_entries(given, d)))
    return {f: _thresholds(value, f, columns, max_bins) for f, value in pairs if value is not None}


def replaced(cuts: Cuts, given: Mapping[int, Thresholds]) -> Cuts:
    """``cuts`` with those of some numeric columns exchanged."""
    if not given:
        return cuts
    thresholds, shared = by_column(cuts)
    return divided([given.get(column, chosen) for column, chosen in enumerate(thresholds)], shared)


def _entries(cuts: Any, d: int) -> list[Any]:
    rule = f"must be {{column: thresholds}}, or a sequence with an entry for each of {d} columns"
    if (
        isinstance(cuts, (str, bytes))
        or not hasattr(cuts, "__iter__")
        or (isinstance(cuts, np.ndarray) and cuts.ndim == 0)
    ):
        raise InputError(f"cuts: {rule}; got {cuts!r}.")
    entries = list(cuts)
    if len(entries) != d:
        raise InputError(f"cuts: {rule}; got {len(entries)} entries. An entry of None is chosen from the data.")
    return entries


def _thresholds(value: Any, f: int, columns: Columns, max_bins: int) -> Thresholds:
    where = f"cuts: {_label(f, columns)}"
    if columns.categories[f] is not None:
        raise InputError(f"{where} is categorical, and categories have no order to cut; leave it out.")
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.dtype.kind not in "iuf" and array.size):
        raise InputError(f"{where} needs a flat list of numbers; got {value!r}.")
    numbers = array.astype(np.float64) + 0.0  # no negative zero, which would be written to a file as another text
    bad = ~np.isfinite(numbers)
    if bad.any():
        raise InputError(
            f"{where} needs finite thresholds; number {int(np.argmax(bad))} is {numbers[bad][0]}. Missing values have "
            "a bin of their own, and what is above the last threshold has one, too."
        )
    flat = np.diff(numbers) <= 0.0
    if flat.any():
        i = int(np.argmax(flat))
        raise InputError(
            f"{where} needs increasing thresholds; number {i} is {numbers[i]:g} and number {i + 1} is "
            f"{numbers[i + 1]:g}. np.unique sorts them."
        )
    if len(numbers) >= max_bins:
        raise InputError(
            f"{where} has {len(numbers)} thresholds, which make {len(numbers) + 1} bins; max_bins={max_bins} allows "
            f"{max_bins - 1} at most."
        )
    return numbers


def _label(f: int, columns: Columns) -> str:
    return f"column {f}" if columns.names is None else f"column {columns.names[f]!r}"
