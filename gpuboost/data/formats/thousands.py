"""Numbers of a text file whose thousands are set apart, such as 1.234,5."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray


def numbers_of(values: NDArray[Any], mark: str, decimal: str) -> NDArray[Any] | None:
    """(n,) int64 or float64 of the numbers that texts are; None if one of them is no number.

    Each group after a mark has three digits: 1.5 is no number where thousands are set apart by points, and a date such
    as 1.2.2024 is none. pandas' ``thousands`` would read 15 and 122024.

    values: (n,) texts, and None or NaN for missing ones; mark: the character between thousands; decimal: decimal point
    """
    apart = rf"\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+|\d+"
    point = re.escape(decimal)
    number = re.compile(rf"\s*[+-]?(?:(?:{apart})(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
    found = np.empty(len(values))
    for row, value in enumerate(values.tolist()):
        if isinstance(value, str):
            if number.fullmatch(value) is None:
                return None
            found[row] = float(value.replace(mark, "").replace(decimal, "."))
        else:
            found[row] = np.nan
    if np.isnan(found).all():
        return None
    whole = found.astype(np.int64) if (np.abs(found) < 2**53).all() else found  # False for NaN
    return whole if np.array_equal(whole, found) and not _has_point(values, decimal) else found


def _has_point(values: NDArray[Any], decimal: str) -> bool:
    return any(decimal in value or "e" in value.lower() for value in values.tolist())
