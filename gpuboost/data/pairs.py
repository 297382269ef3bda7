"""Pairs of rows, of which one is better, and positions at which rows were shown, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import real_numbers
from gpuboost.errors import InputError
from gpuboost.losses.target import require
from gpuboost.types import Pairs


def check_pairs(pairs: Any, weight: Any, n_rows: int, group: NDArray[Any] | None) -> Pairs | None:
    """The pairs as a record; None if none are given.

    pairs: (m, 2) row numbers, the winner first; weight: (m,) numbers, not negative, or None; group: (n_rows,) queries.

    Raises
    ------
    InputError
        If a pair is not two different rows of one query, or a weight is negative or not finite; the message has
        the place and the value.
    """
    if pairs is None:
        if weight is not None:
            raise InputError("pairs_weight: weights of pairs are given, and no pairs; pass pairs= too.")
        return None
    values = real_numbers("pairs", pairs)
    if values.ndim != 2 or values.shape[1] != 2 or not len(values):
        raise InputError(
            f"pairs: needs a line (winner, loser) of row numbers for each pair, at least one; got shape {values.shape}."
        )
    _refuse(values != np.rint(values), values, "row numbers are whole")
    _refuse((values < 0) | (values >= n_rows), values, f"rows are numbered from 0 to {n_rows - 1}")
    winner, loser = np.ascontiguousarray(values.T.astype(np.int64))
    same = winner == loser
    _refuse(np.stack([same, same], axis=1), values, "winner and loser are two rows")
    if group is not None:
        apart = group[winner] != group[loser]
        _refuse(np.stack([apart, apart], axis=1), values, "winner and loser are of one query")
    return Pairs(winner, loser, None if weight is None else _weights(weight, len(winner)))


def check_position(position: Any, n_rows: int) -> NDArray[np.int64] | None:
    """(n_rows,) where each row was shown; None stays None.

    Raises
    ------
    InputError
        If they are not whole numbers from 0 to 2^31 - 1, one for each row.
    """
    if position is None:
        return None
    values = real_numbers("position", position)
    if values.shape != (n_rows,):
        raise InputError(f"position: needs one number for each of {n_rows} rows; got shape {values.shape}.")
    right = (values >= 0.0) & (values < 2.0**31) & (values == np.rint(values))
    require(right, values, "positions are whole numbers from 0, the top", "Number the places of a query.", "position")
    return values.astype(np.int64)


def _weights(pairs_weight: Any, m: int) -> NDArray[np.float64]:
    weight = real_numbers("pairs_weight", pairs_weight).astype(np.float64)
    if weight.shape != (m,):
        raise InputError(f"pairs_weight: needs one number for each of {m} pairs; got shape {weight.shape}.")
    wrong = ~((weight >= 0.0) & (weight <= 1e30))
    if wrong.any():
        pair = int(np.argmax(wrong))
        raise InputError(
            f"pairs_weight: weights are finite, 0 or more; pair {pair} has {weight[pair]}. Leave such pairs out."
        )
    if not weight.any():
        raise InputError("pairs_weight: every pair has weight 0. Give at least one of them weight.")
    return weight


def _refuse(wrong: NDArray[np.bool_], values: NDArray[Any], rule: str) -> None:
    lines = wrong.any(axis=1)
    if lines.any():
        pair = int(np.argmax(lines))
        winner, loser = (f"{value:g}" for value in values[pair])
        more = f" ({int(lines.sum())} such pairs)" if lines.sum() > 1 else ""
        raise InputError(f"pairs: {rule}; pair {pair} is ({winner}, {loser}){more}. Leave such pairs out.")
