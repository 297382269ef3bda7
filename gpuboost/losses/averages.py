"""Start values of losses: sums, means and quantiles that are the same on every machine, in any order of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BITS = 31  # per piece of a number: a sum of 2**32 pieces fits in int64
SAFE = 1e290  # below it Dekker's product cannot overflow
_BLOCK = 8192  # numbers per pass, so that scratch arrays stay in the cache
_EXACT = float(1 << 53)  # below it a sum of whole numbers is exact in any order
_FAR = float(1 << 14)  # spreads between a target and 0, beyond which float32 rounds a start by a part of the spread


def exact_sum(x: Any) -> float:
    """The sum of x, rounded once. (n,) float64.

    Each number is split into three integers of 31 bits, whose sums do not depend on the order; bits more than 93 bits
    below the largest number, or below 1e-318, are dropped.
    """
    x = np.asarray(x, dtype=np.float64)
    largest = float(max(np.max(x, initial=0.0), -np.min(x, initial=0.0)))
    if largest * len(x) < _EXACT and all(np.array_equal(part, np.rint(part)) for part in _blocks(x)):
        return float(np.add.reduce(x)) + 0.0  # for classes and counts; no negative zero
    return _sum(_blocks(x), largest)


def weighted_mean(y: Any, weight: Any) -> float:
    """sum w y / sum w, each sum exact: a row of weight 3 counts as three equal rows, to the last bit."""
    y, weight = np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    if np.all(weight == 1.0):
        return exact_sum(y) / len(y)
    y_top, weight_top = float(np.max(np.abs(y))), float(np.max(weight))
    largest = y_top * weight_top
    if not max(y_top, weight_top, largest) < SAFE:
        with np.errstate(over="ignore"):
            return exact_sum(y * weight) / exact_sum(weight)
    parts = (part for pair in zip(_blocks(y), _blocks(weight), strict=True) for part in _exact_products(*pair))
    return _sum(parts, largest) / exact_sum(weight)


def _blocks(x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    return (x[start : start + _BLOCK] for start in range(0, len(x), _BLOCK))


def bounded_sum(x: NDArray[np.float64], largest: float) -> float:
    """``exact_sum`` of (n,) numbers of absolute value at most ``largest``, below which bits are dropped."""
    return _sum(_blocks(x), largest)


def pieces_scale(largest: float) -> float:
    """Power of two that numbers of absolute value at most ``largest`` are multiplied by before they are split."""
    return float(2.0 ** min(_BITS - math.frexp(largest)[1], 1000))


def sum_of_pieces(sums: Iterable[int], largest: float) -> float:
    """The sum of numbers that were split into three integers, from the sums of these integers."""
    high, middle, low = (int(piece_sum) for piece_sum in sums)
    total = (((high << _BITS) + middle) << _BITS) + low
    return math.ldexp(total / (1 << (2 * _BITS)), 1 - math.frexp(pieces_scale(largest))[1])


def _sum(parts: Iterable[NDArray[np.float64]], largest: float) -> float:
    """The sum of numbers of absolute value at most ``largest``."""
    if largest == 0.0:
        return 0.0
    if not math.isfinite(largest):
        with np.errstate(invalid="ignore"):
            return float(sum(np.add.reduce(part) for part in parts))
    scale, sums = pieces_scale(largest), [0, 0, 0]
    for part in parts:
        rest = part * scale
        for place in range(3):
            whole = np.rint(rest)
            sums[place] += int(whole.astype(np.int64).sum())
            rest -= whole
            rest *= 2.0**_BITS
    return sum_of_pieces(sums, largest)


def _exact_products(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x y rounded, and the rounding error (Dekker 1971)."""
    x_high, x_low = _halves(x)
    y_high, y_low = _halves(y)
    product = x * y
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _halves(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x = high + low, 26 bits each (Veltkamp 1968)."""
    scaled = 134217729.0 * x  # 2**27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def lower_quantile(y: Any, weight: Any, alpha: float) -> float:
    """The smallest y whose weight, with that of all smaller ones, reaches alpha of the whole.

    Between two values it takes the lower one, so that weights and repeated rows agree; the median of an even
    number of rows is the lower of the middle two.
    """
    y, weight = np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    if np.all(weight == 1.0):
        rank = min(max(math.ceil(alpha * len(y)), 1), len(y))
        return float(np.partition(y, rank - 1)[rank - 1])
    order = np.argsort(y, kind="stable")
    reached = np.cumsum(weight[order])
    place = int(np.searchsorted(reached, alpha * reached[-1]))
    return float(y[order[min(place, len(y) - 1)]])


def rising_root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Zero of a non-decreasing function between low and high, by bisection down to neighbouring numbers."""
    while low < (middle := 0.5 * (low + high)) < high:
        if slope(middle) < 0.0:
            low = middle
        else:
            high = middle
    return middle


def constant(score: float) -> NDArray[np.float64]:
    """(1,) the start score of one output, rounded to float32 precision, which hides the last bits of a mean."""
    return np.array([float(np.float32(score)) + 0.0])  # + 0.0: no negative zero


def location(score: float, y: Any) -> NDArray[np.float64]:
    """(1,) the start score of a loss whose score is the prediction: between the smallest and the largest target.

    y: (n,). Rounded to float32 precision, unless the target lies so far from 0, relative to its spread, that rounding
    would matter. So a constant target is met exactly.
    """
    low, high = float(np.min(y)), float(np.max(y))
    return near(min(max(score, low), high), high - low)


def near(score: float, spread: float) -> NDArray[np.float64]:
    """(1,) the start score of one output; rounded to float32 precision if the scores of rows spread enough."""
    return np.array([score + 0.0]) if abs(score) > _FAR * spread else constant(score)
