"""Harrell's concordance index of censored times. The same bits on every machine, and in any order of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.losses.averages import exact_sum
from gpuboost.losses.protocol import Loss
from gpuboost.scoring.curves import weight_units
from gpuboost.types import Array

Integers = NDArray[np.int64]


def concordance(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """The share of comparable pairs whose longer time has the higher score, equal scores counting half (Harrell 1982).

    y (n,): t > 0 for an event at t, -t for a row that is censored at t. Two rows are comparable if the earlier one is
    an event; of an event and a censored row of one time the event is the earlier one. A pair has the product of the
    weights of its rows. Takes O(n log n).

    Raises:
        InputError: if no two rows of positive weight are comparable.
    """
    y = np.asarray(y)
    is_event = y > 0.0
    key = np.unique(2.0 * _ranks(np.abs(y)) + np.logical_not(is_event), return_inverse=True)[1].reshape(-1)
    units = weight_units(weight, len(y))
    above, beside = _later(key, _ranks(scores[0]), units)
    total = np.zeros(len(y), np.int64)
    np.add.at(total, key, units)
    later = total.sum() - np.cumsum(total)[key]
    of_events = np.where(is_event, units, 0).astype(np.float64)
    comparable = exact_sum(of_events * (2 * later).astype(np.float64))
    if comparable == 0.0:
        raise of_no_pair()
    return exact_sum(of_events * (2 * above + beside).astype(np.float64)) / comparable


def of_no_pair() -> InputError:
    """Error of rows of which no two that have weight are comparable."""
    return InputError(
        "y: concordance needs an event before the time of another row; no two of these rows are comparable. Give rows "
        "that are, or judge them by the loss."
    )


def _ranks(values: Any) -> Integers:
    """(n,) the place of each value among the distinct ones."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _later(key: Integers, rank: Integers, units: Integers) -> tuple[Integers, Integers]:
    """(n,) units of the rows with a larger key and a larger rank, and of those with a larger key and an equal one.

    Two keys differ first in one bit. For each bit, from the highest, rows that are alike in all bits before stand
    together, by their ranks: those with the bit are later than those without.
    """
    above, beside, row = np.zeros_like(units), np.zeros_like(units), np.argsort(rank, kind="stable")
    for bit in reversed(range(int(key.max()).bit_length())):
        group, has = key[row] >> (bit + 1), (key[row] >> bit) & 1 == 1
        so_far = np.concatenate([[0], np.cumsum(np.where(has, units[row], 0))])
        first, last = _stretches(group[1:] != group[:-1])
        tie_first, tie_last = _stretches((group[1:] != group[:-1]) | (rank[row][1:] != rank[row][:-1]))
        above[row] += np.where(has, 0, so_far[last] - so_far[tie_last])
        beside[row] += np.where(has, 0, so_far[tie_last] - so_far[tie_first])
        with_bit = np.concatenate([[0], np.cumsum(has)])
        place, ones = np.arange(len(row)), with_bit[:-1] - with_bit[first]
        zeros = (last - first) - (with_bit[last] - with_bit[first])
        following = np.empty_like(row)
        following[np.where(has, first + zeros + ones, place - ones)] = row
        row = following
    return above, beside


def _stretches(begins: Any) -> tuple[Integers, Integers]:
    """(n,) where the stretch of each element begins, and ends before. begins (n - 1,): true where another follows."""
    bounds = np.concatenate([[0], np.flatnonzero(begins) + 1, [len(begins) + 1]])
    lengths = np.diff(bounds)
    return np.repeat(bounds[:-1], lengths), np.repeat(bounds[1:], lengths)
