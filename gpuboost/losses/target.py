"""Checks of a loss's target, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError, RecipeError

LARGEST = 1e30  # gradients are float32
LARGEST_POSITIVE = 1e17  # below e**40, up to where the losses with a logarithmic link are computed as they stand


def require(ok: Any, values: Any, rule: str, advice: str, argument: str = "y") -> None:
    """Raise InputError for the first row with ``ok`` False."""
    if np.all(ok):
        return
    rows = np.flatnonzero(np.logical_not(ok))
    more = f" ({len(rows)} such rows)" if len(rows) > 1 else ""
    raise InputError(f"{argument}: {rule}; row {rows[0]} holds {float(values[rows[0]])!r}{more}. {advice}")


def finite(y: Any, loss: str, largest: float = LARGEST) -> NDArray[np.float64]:
    """y as (n,) float64.

    Raises:
        InputError: if it has another shape, no rows, or values that are nan, infinite or beyond ``largest``.
    """
    target: NDArray[np.float64] = np.asarray(y, dtype=np.float64)
    if target.ndim != 1 or len(target) == 0:
        raise InputError(f"y: must hold one number per row, at least one; its shape is {target.shape}. Pass a vector.")
    require(np.isfinite(target), target, f"{loss} needs finite numbers", "Drop or fill those rows.")
    require(np.abs(target) <= largest, target, f"{loss} needs numbers of size at most {largest:g}", "Rescale y.")
    return target


def zero_or_one(y: Any, loss: str) -> None:
    """Raise InputError unless every label is 0 or 1."""
    ok = (y == 0.0) | (y == 1.0)
    if np.all(ok) and np.size(y) > 0:
        return
    y = finite(y, loss)
    distinct = len(np.unique(y))
    rule = f"{loss} needs labels 0 and 1"
    if distinct > 2:
        rule += f" ({distinct} distinct values were given)"
    many = distinct > 2 and bool(np.all((y >= 0.0) & (y == np.rint(y))))
    require(ok, y, rule, f"Use Softmax(n_classes={int(y.max()) + 1})." if many else "Code the classes as 0 and 1.")


def number(loss: str, argument: str, value: Any) -> float:
    """A loss's parameter as a float.

    Raises:
        RecipeError: if it is not a finite number.
    """
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = np.nan
    if not np.isfinite(result) or isinstance(value, (bool, str, bytes)):
        raise RecipeError(f"{argument}: {loss} needs a finite number; got {value!r}.")
    return result
