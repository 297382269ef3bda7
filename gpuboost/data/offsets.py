"""Offsets of scores (``init_score``): checked, and brought to one shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import real_numbers
from gpuboost.errors import InputError
from gpuboost.types import MOST_SCORE

Offset = NDArray[np.float64]


def check_offset(offset: Any, n_rows: int, name: str = "init_score") -> Offset | None:
    """(k, n) float64, k being 1 or the number of scores of a row; None stays None.

    offset: (n,) or (n, k) numbers, or one number, which every row and every score gets.

    Raises
    ------
    InputError
        If it is of another shape, or a number is not finite.
    """
    if offset is None:
        return None
    values = real_numbers(name, offset)
    if values.ndim == 0 and not isinstance(offset, (str, bytes)):
        values = np.full(n_rows, float(values))
    if values.ndim not in (1, 2) or values.shape[0] != n_rows or (values.ndim == 2 and not values.shape[1]):
        raise InputError(
            f"{name}: needs one number, or one for each of {n_rows} rows, or a row of them for each, one per score; "
            f"got shape {values.shape}."
        )
    wrong = ~(np.abs(values) <= MOST_SCORE).reshape(n_rows, -1).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{name}: must be finite, between {-MOST_SCORE:g} and {MOST_SCORE:g}; row {row} holds {values[row]}."
        )
    return np.ascontiguousarray(values.reshape(n_rows, -1).T)


def of_scores(offset: Offset | None, n_scores: int, name: str = "init_score") -> Offset | None:
    """(n_scores, n) float64 from the result of ``check_offset``.

    Raises
    ------
    InputError
        If it has another number of scores, unless all its numbers are equal.
    """
    if offset is None or len(offset) == n_scores:
        return offset
    if len(offset) == 1 and (offset == offset[0, :1]).all():
        return np.repeat(offset, n_scores, axis=0)
    raise InputError(
        f"{name}: the loss has {n_scores} scores for each row, so (n, {n_scores}) numbers are needed; got "
        f"({offset.shape[1]}, {len(offset)})."
    )
