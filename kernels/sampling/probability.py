"""Arithmetic of row sampling on one row: its score, its probability, its draw and its weight.

numba compiles these for CPUs, and numba.cuda links them into the ``.cu`` files of this folder.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel

SMALLEST, LARGEST = 2.0**-126, float(np.finfo(np.float32).max)  # no denormal, no infinity


@kernel
@inlined
def magnitude(first, second, kappa, both):
    """The score sqrt(first + kappa second), or the root of ``first`` alone. first, second: sums of squares."""
    return np.sqrt(first + kappa * second if both else first)


@kernel
@inlined
def normal_score(s):
    """The score as a float32 that is a normal number, or 0."""
    s = min(s, LARGEST)
    return np.float32(s if s >= SMALLEST else 0.0)


@kernel
@inlined
def by_threshold(score, rho, floor):
    """p = min(1, max(floor, rho score)): ``ThresholdRule.probability`` of backends/numerics/probabilities.py."""
    return min(1.0, max(floor, rho * score))


@kernel
@inlined
def by_border(score, border, at_border, below):
    """p of a score above, at or below the border, as ``GossRule``. score, border: numbers, or the bits of both."""
    return 1.0 if score > border else (at_border if score == border else below)


@kernel
@inlined
def is_drawn(word, p):
    """True where a row is drawn: its number word / 2**32, of 32 random bits, is below p."""
    return np.float64(word) < p * 4294967296.0


@kernel
@inlined
def is_below(word, limit):
    """``is_drawn`` where all rows have one p: limit is the integer part of p 2**32."""
    return word < limit


@kernel
@inlined
def inverse(p):
    """1 / p of a drawn row."""
    return 1.0 / p


@kernel
@inlined
def weighted(x, by):
    """A derivative times 1 / p. Two float32, or both as float64, whose product is exact: rounded, they are equal."""
    return x * by
