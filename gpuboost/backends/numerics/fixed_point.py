"""Scale at which gradients become integers: one definition for every machine.

With q = rint(x * scale), a sum of q over any rows is exact in any order. Two bounds, either of which keeps every sum of
a histogram within ``bits`` bits, give two scales; the larger one is used:

    by row   |q| < 2**16 (or 2**15 and a sign), so that a tile of 65,535 rows fits            many rows
    by sum   sum |q| < 2**bits over all rows, rounding included                               few rows, heavy tails

Scales are powers of two: a sum of integers times the unit is then exact in float64 up to 53 bits.
"""

from __future__ import annotations

from math import frexp, isfinite

from gpuboost.errors import InputError

NOT_FINITE = (
    "loss: gradients must be finite numbers below 3.4e38, times their weights; a larger one, or NaN, was seen. "
    "Scale y or the weights down, lower learning_rate, or check a custom loss."
)
"""Message for gradients that are not finite."""


def fixed_point_scale(top: float, total: float, max_multiplicity: float, weight: float, bits: int) -> float:
    """A power of two.

    Args:
        top: largest |x| * multiplicity.
        total: sum of |x| * multiplicity; an estimate within a factor 1 + 2**-20 suffices.
        most: largest multiplicity.
        weight: sum of the multiplicities.
        bits: 31 for signed sums, 32 for sums of numbers that are not negative.

    Raises:
        InputError: if a gradient is not a finite float32.
    """
    if not isfinite(total):
        raise InputError(NOT_FINITE)
    if not top > 0.0:
        return 1.0
    row_room = 2.0 ** (bits - 16) - 1.0 - 0.5 * max_multiplicity
    sum_room = 2.0**bits - 1.0 - 0.5 * weight
    by_row = _power_below(row_room / top) if row_room > 0.0 else 0.0
    by_sum = _power_below(sum_room / (total * (1.0 + 2.0**-20))) if sum_room > 0.0 else 0.0
    return max(by_row, by_sum)


def _power_below(x: float) -> float:
    """The largest power of two that is not above x."""
    return 2.0 ** (frexp(x)[1] - 1)
