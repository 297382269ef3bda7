"""Arithmetic of importance sampling on one row: its score, its probability and its draw.

numba compiles these for CPUs, and numba.cuda links them into ``importance.cu`` and ``control_variates.cu``.
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
