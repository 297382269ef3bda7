"""Labels as codes, in a pass or two where they are whole numbers of a short range, as those of most classifiers are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 1 << 10  # from the smallest to the largest, so that counts stay in the cache
_EXACT = float(1 << 53)  # below it every whole number is a float64
_BLOCK = 1 << 15  # labels per pass, for the same reason


def whole_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]] | None:
    """``numpy.unique(y, return_inverse=True)``, without sorting; None where that is the way.

    y (n,): labels without NaN. Returns the classes, (K,) sorted, and (n,) the place of each label among them, if all
    labels are whole numbers between two that are less than 1,024 apart.
    """
    if y.dtype.kind not in "buif" or y.dtype.itemsize > 8 or not len(y):
        return None
    low, high = float(y.min()), float(y.max())
    if not (max(-low, high) < _EXACT and low.is_integer() and high - low < _MOST):
        return None
    codes = np.empty(len(y), np.intp)
    counts = np.zeros(int(high - low) + 1, np.int64)
    for start in range(0, len(y), _BLOCK):
        block = slice(start, start + _BLOCK)
        above = y[block].astype(np.float64) - low
        codes[block] = above
        if not np.array_equal(codes[block], above):
            return None
        counts += np.bincount(codes[block], minlength=len(counts))
    present = np.flatnonzero(counts)
    if len(present) < len(counts):
        codes = (np.cumsum(counts > 0) - 1)[codes]
    return (low + present).astype(y.dtype), codes
