"""Class labels: whole numbers of a short range as codes, without sorting; and classes in model files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError

_MOST = 1 << 10  # from the smallest to the largest, so that counts stay in the cache
_EXACT = float(1 << 53)  # below it every whole number is a float64
_BLOCK = 1 << 15  # labels per pass, for the same reason


def whole_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]] | None:
    """The result of ``numpy.unique(y, return_inverse=True)`` without sorting, for whole numbers of a short range.

    y (n,): labels without NaN. Returns the classes, (K,) sorted, of y's dtype, and (n,) intp, the place of each label
    among them; None if a label is not a whole number, or the largest is 1,024 or more above the smallest.
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


def classes_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    """Values and dtype: "str", "object" (of strings), or numpy's name of a number type."""
    values = classes.tolist()
    if classes.dtype.kind in "OU" and all(isinstance(label, str) for label in values):
        return {"dtype": "object" if classes.dtype.kind == "O" else "str", "values": values}
    if classes.dtype.kind in "biuf":
        return {"dtype": classes.dtype.name, "values": values}
    raise InputError(
        f"classes: a model file holds labels that are text or numbers; got {classes.dtype}. Fit to text of them."
    )


def classes_from_json(value: Any) -> NDArray[Any]:
    """Inverse of ``classes_to_json``."""
    wrong = InputError(f"model file: classes: two or more labels of one type, sorted, were expected; found {value!r}.")
    if not isinstance(value, dict) or set(value) != {"dtype", "values"} or not isinstance(value["values"], list):
        raise wrong
    name, values = value["dtype"], value["values"]
    if name in ("str", "object"):
        right = all(isinstance(label, str) for label in values)
        dtype: Any = np.str_ if name == "str" else object
    else:
        right = isinstance(name, str) and name in np.sctypeDict
        right = right and np.dtype(name).kind in "biuf" and np.dtype(name).name == name
        right = right and all(isinstance(label, (bool, int, float)) for label in values)
        dtype = name
    if not right or len(values) < 2 or sorted(set(values)) != values:
        raise wrong
    try:
        with np.errstate(over="ignore"):
            classes: NDArray[Any] = np.array(values, dtype=dtype)
    except OverflowError:
        raise wrong from None
    read = classes.tolist()
    if read != values or list(map(type, read)) != list(map(type, values)):  # truncated, rounded or of another type
        raise wrong
    return classes
