"""Areas under the curves of a score's thresholds, from integer weights: the same bits in any order of rows.

Weights become integers, so the weight above a threshold is exact. The terms of the distinct scores are rounded, and
their sum is exact (``losses.averages.bounded_sum``) below a bound that is known before the scores are.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.losses.averages import bounded_sum, exact_sum, sum_of_pieces
from gpuboost.types import Array

Curve: TypeAlias = Literal["roc", "precision_recall"]
Integers: TypeAlias = NDArray[np.int64]

UNIT_BITS = 61  # of the sum of weights as integers, so that twice as much is an int64


def weight_units(weight: Array | None, n: int) -> Integers:
    """(n,) weights as multiples of one power of two, which divides their sum into 2^60 to 2^61; 1 if there are none.

    weight: (n,) finite and not negative.
    """
    top = 0.0 if weight is None else float(np.max(weight, initial=0.0))
    if weight is None or top == 0.0:
        return np.full(n, top == 0.0 and weight is None, np.int64)
    shares = np.ldexp(np.asarray(weight, np.float64), -math.frexp(top)[1])  # at most 1: their sum is finite
    shift = UNIT_BITS - math.frexp(exact_sum(shares))[1]
    return np.rint(np.ldexp(shares, shift)).astype(np.int64)


def threshold_steps(ones: Array, score: Array, units: Integers) -> tuple[Integers, Integers]:
    """(m,) weight of the ones, and of the others, whose score is at most each of the m distinct scores, rising."""
    order = np.argsort(score, kind="stable")
    ordered, is_one, units = score[order], ones[order], units[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)  # the last row of each equal score
    return np.cumsum(np.where(is_one, units, 0))[ends], np.cumsum(np.where(is_one, 0, units))[ends]


def bound(curve: Curve, ones: int, others: int) -> float:
    """The most that the terms of a curve sum to, and the divisor of their sum. ones, others: weight of all of them."""
    return float(2 * ones * others) if curve == "roc" else float(ones)


def area(curve: Curve, positive: Integers, negative: Integers) -> float:
    """Area under a curve; nan if it has no height. positive, negative (m,): of ``threshold_steps``."""
    largest = bound(curve, int(positive[-1]), int(negative[-1]))
    return bounded_sum(_terms(curve, positive, negative), largest) / largest if largest > 0.0 else math.nan


def area_of_pieces(curve: Curve, sums: Integers, ones: int, others: int) -> float:
    """``area`` from the sums of the terms' three pieces."""
    largest = bound(curve, ones, others)
    return sum_of_pieces(sums.tolist(), largest) / largest if largest > 0.0 else math.nan


def _terms(curve: Curve, positive: Integers, negative: Integers) -> NDArray[np.float64]:
    """(m,) terms whose sum, over ``bound``, is the area.

    "roc": the ones at each score times the others below, twice, and at it. "precision_recall": the ones at each score
    times the share of ones at it and above.
    """
    before, others_before = positive - np.diff(positive, prepend=0), negative - np.diff(negative, prepend=0)
    gained: NDArray[np.float64] = (positive - before).astype(np.float64)
    if curve == "roc":
        gained *= (others_before + negative).astype(np.float64)
        return gained
    higher = positive[-1] - before
    every = (higher + (negative[-1] - others_before)).astype(np.float64)
    gained *= np.divide(higher.astype(np.float64), every, out=np.zeros(len(every)), where=every > 0.0)
    return gained
