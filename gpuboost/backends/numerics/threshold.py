"""Sampling thresholds from counts of scores, without sorting, and with the same bits on every machine.

A machine computes integers only: the number of scores in each of 2,048 buckets and the sum of their significands
(``gpuboost.kernels.sampling.importance``), the same for the parts of one bucket, and for a given mu the numbers of
scores above it and below its floor, and a fixed-point sum of the others. The float64 arithmetic on them has one order.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, ldexp
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.records import dataclass

BUCKETS, OF_ZERO, GROUP = 2048, 8, 64  # buckets; the first of them, those of 0; buckets summed before the next group
LEVELS = ((20, 9), (9, 0))  # (lowest fixed bit of a bucket, number of bits below the new buckets)
STEPS = 4  # of Newton's method, each about doubling the digits: two or three are enough where few scores tie
SURELY_ALL = 2.0**126  # a rho that takes every positive score to 1 or more

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a round's scores by their upper 11 bits."""

    rows: Ints  # (2048,)
    significands: Ints  # (2048,) their sum; 0 has none

    @property
    def n(self) -> int:
        return int(self.rows.sum())

    @property
    def zeros(self) -> int:
        return int(self.rows[:OF_ZERO].sum())

    def sums(self) -> NDArray[np.float64]:
        """(2048,) sum of the scores in each bucket: exact up to 2**29 rows."""
        exponent = (np.arange(BUCKETS) >> 3) - 150
        return np.asarray(np.ldexp(self.significands.astype(np.float64), exponent))


ThreeSums: TypeAlias = Callable[[float, float, float], tuple[int, int, int]]
"""(mu, low, scale) -> rows with s >= mu, rows with s < low, sum of rint(s * scale) over the rest"""

Within: TypeAlias = Callable[[int, int, int], tuple[Ints, Ints]]
"""(shift, prefix, low_bits) -> rows and significands, by the next bits, of scores whose bits from ``shift`` up are
``prefix``"""


class RowSums(Protocol):
    """Sums over all rows of one draw: integers, so the order of summation does not matter."""

    def three_sums(self, mu: float, low: float, scale: float) -> tuple[int, int, int]:
        """See ``ThreeSums``."""
        ...

    def within(self, shift: int, prefix: int, low_bits: int) -> tuple[Ints, Ints]:
        """See ``Within``."""
        ...


class ThresholdSearch(Protocol):
    """Search for a threshold among the scores of one draw."""

    @property
    def n(self) -> int:
        """Number of rows."""
        ...

    def rho_for_rate(self, rate: float, floor: float) -> float:
        """See the function."""
        ...

    def score_of_rank(self, k: float) -> tuple[float, int, int]:
        """See the function."""
        ...

    def score_of_mass(self, mass: float) -> float:
        """See the function."""
        ...


@dataclass(frozen=True, slots=True)
class SearchBySums:
    """The search, from the counts of all scores and from sums over the rows."""

    counts: Counts
    sums: RowSums

    @property
    def n(self) -> int:
        return self.counts.n

    def rho_for_rate(self, rate: float, floor: float) -> float:
        return rho_for_rate(self.counts, rate, floor, self.sums.three_sums)

    def score_of_rank(self, k: float) -> tuple[float, int, int]:
        return score_of_rank(self.counts, k, self.sums.within)

    def score_of_mass(self, mass: float) -> float:
        return score_of_mass(self.counts, mass, self.sums.within)


def check(not_numbers: int) -> None:
    """Raise InputError if some rows have no finite score."""
    if not_numbers:
        raise InputError(
            f"loss: gradients must be finite numbers below 3.4e38, times their weights; {not_numbers} rows are not. "
            "Scale y or the weights down, lower learning_rate, or check a custom loss."
        )


def rho_for_rate(counts: Counts, rate: float, floor: float, three_sums: ThreeSums) -> float:
    """rho such that min(1, max(floor, rho s)) sums to rate * n; the largest useful rho if that cannot be reached.

    The first guess takes every score of a bucket as the bucket's mean; Newton's method does the rest. Its sums over
    rows are exact, so it ends at the exact solution as soon as no score changes sides.
    """
    n, need = counts.n, rate * counts.n
    if need >= (n - counts.zeros) + floor * counts.zeros:
        return SURELY_ALL
    if need <= floor * n:
        return 0.0
    rho, sides = first_guess(counts, need, floor), (-1, -1)
    for _ in range(STEPS):
        mu = 1.0 / rho
        shift = 62 - n.bit_length() - frexp(mu)[1]  # the sum stays below 2**62
        above, below, between = three_sums(mu, floor * mu, ldexp(1.0, shift))
        rest = need - above - floor * below
        if (above, below) == sides or not (rest > 0.0 and between > 0):
            break
        rho, sides = rest / ldexp(float(between), -shift), (above, below)
    return rho


def first_guess(counts: Counts, need: float, floor: float) -> float:
    """The solution for rows that all have the mean score of their bucket."""
    of = np.flatnonzero(counts.rows[OF_ZERO:]) + OF_ZERO
    rows, sums = counts.rows, counts.sums()
    up_to, sum_up_to = np.cumsum(rows)[of], running(sums)[of]
    means = sums[of] / rows[of]
    first = np.searchsorted(means, floor * means, side="left")  # of those not below the floor, were mu this mean
    below = np.where(first > 0, up_to[first - 1], counts.zeros)
    between = sum_up_to - np.where(first > 0, sum_up_to[first - 1], 0.0)
    above = counts.n - up_to
    expected = above + between / means + floor * below
    place = int(np.flatnonzero(expected >= need).max(initial=0))
    return float((need - above[place] - floor * below[place]) / between[place])


def score_of_rank(counts: Counts, k: float, within: Within) -> tuple[float, int, int]:
    """The score of rank k from the top, the number of rows above it, and of rows equal to it. 0 < k <= n."""
    place, above = _rank(counts.rows, k, 0)
    prefix = place
    for shift, low_bits in LEVELS:
        rows, _ = within(shift, prefix, low_bits)
        place, above = _rank(rows, k, above)
        prefix = prefix << (shift - low_bits) | place
    return _score(prefix), above, int(rows[place])


def probability_of_ties(k: float, above: int, ties: int, p: float) -> float:
    """Probability of a row that ties at rank k: the share s of ties among the top k, plus (1 - s) p."""
    among_top = min(1.0, (k - above) / ties)
    return among_top + (1.0 - among_top) * p


def _rank(rows: Ints, k: float, above: int) -> tuple[int, int]:
    """The highest place with at least k rows at or above it, and the number of rows above it."""
    from_top = above + np.cumsum(rows[::-1])[::-1]
    place = int(np.flatnonzero(from_top >= k).max(initial=0))
    return place, int(from_top[place] - rows[place])


def score_of_mass(counts: Counts, mass: float, within: Within) -> float:
    """The largest score such that it and all larger ones make up that share of the sum of scores; 0 if the sum is 0."""
    sums = counts.sums()
    from_top = running(sums[::-1])[::-1]
    total = float(from_top[0])
    if total == 0.0:
        return 0.0
    place = _reaching(from_top, counts.rows, mass * total)
    missing, prefix = mass * total - float(from_top[place] - sums[place]), place
    unit = ldexp(1.0, (place >> 3) - 150)
    for shift, low_bits in LEVELS:
        rows, significands = within(shift, prefix, low_bits)
        weight = np.asarray(np.cumsum(significands[::-1])[::-1] * unit, np.float64)  # whole, times a power of two
        place = _reaching(weight, rows, missing)
        missing -= float(weight[place] - significands[place] * unit)
        prefix = prefix << (shift - low_bits) | place
    return _score(prefix)


def _reaching(from_top: NDArray[np.float64], rows: Ints, target: float) -> int:
    """The highest place with rows at which the sum reaches the target; the lowest with rows if rounding left none."""
    there = np.flatnonzero(rows > 0)
    return int(there[from_top[there] >= target].max(initial=int(there[0])))


def _score(bits: int) -> float:
    return float(np.uint32(bits).view(np.float32))


def running(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative sums: groups of 64 in order, then the groups in order."""
    within = np.cumsum(x.reshape(-1, GROUP), axis=1)
    before = np.concatenate([[0.0], np.cumsum(within[:, -1])[:-1]])
    return np.asarray((before[:, None] + within).ravel())
