"""Sample weights: checked, and classified as multiplicities (whole numbers) or weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import real_numbers
from gpuboost.errors import InputError

MOST_REPEATS = 4096


def check_weight(weight: Any, n_rows: int, name: str = "sample_weight") -> NDArray[np.float64] | None:
    """(n,) float64; None stays None. ``name`` is how a message calls it.

    Raises
    ------
    InputError
        If there is not one finite weight, 0 or more, for each row, or if all are zero.
    """
    if weight is None:
        return None
    checked = real_numbers(name, weight)
    if checked.shape != (n_rows,):
        raise InputError(f"{name}: needs one weight for each of {n_rows} rows; got shape {checked.shape}.")
    wrong = ~(np.isfinite(checked) & (checked >= 0.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"{name}: must be finite and not negative; row {row} holds {checked[row]}.")
    if not checked.any():
        raise InputError(f"{name}: at least one weight must be above zero; all {n_rows} are zero.")
    with np.errstate(over="ignore"):
        total = float(checked.sum())
    if not np.isfinite(total):
        raise InputError(
            f"{name}: the weights must have a finite sum; the largest is {checked.max()}. Scale them down."
        )
    return checked


def kept_rows(weight: NDArray[np.float64] | None) -> NDArray[np.int64] | None:
    """Numbers of the rows whose weight is above zero, increasing; None if that is every row."""
    if weight is None or bool((weight > 0.0).all()):
        return None
    return np.flatnonzero(weight)


def split_weights(
    weight: NDArray[np.float64] | None,
) -> tuple[NDArray[np.float64] | None, NDArray[np.int32] | None]:
    """(weight, multiplicity), of which at most one is given, as ``types.TrainingSet`` holds them.

    weight: (n,) positive. Whole numbers up to 4096 are multiplicities: such a row is that many equal rows, to the
    last bit. Weights that are all 1 are none.
    """
    if weight is None or bool((weight == 1.0).all()):
        return None, None
    if weight.max() <= MOST_REPEATS and bool((weight == np.rint(weight)).all()):
        return None, weight.astype(np.int32)
    return weight, None
