"""Sampling scores of rows before their multiplicity, times a factor of each row, for a later draw.

A kernel of numba.cuda on GPUs, of numba on CPUs, from one Python text. Definition: reference.sampling.

A thread of a GPU has every ``step``-th row from its own number on; a thread of a CPU has a range of rows.
"""

import math

import numpy as np

from gpuboost.kernels.common.float32 import widened
from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.sampling.probability import magnitude, normal_score

BOTH, CURVATURE, LOSSES = 1, 2, 3  # what a score is made of, besides 0, gradients: as in importance.cu


@kernel
@inlined
def _sum_of_squares(values, i, n, k):
    total, index = 0.0, np.uint64(i)
    for _ in range(k):
        x = widened(values[index])
        total += x * x
        index += np.uint64(n)
    return total


@kernel
def row_factors(begin, stop, step, g, h, losses, made_of, kappa, factor, has_factor, n, k, out):
    """For i in range(begin, stop, step): out[i] = the score of row i, or its loss, times factor[i] if has_factor.

    g, h: bits of (k, n) float32, as k n uint32; losses (n,) float64, read if they are what a score is made of; factor,
    out (n,) float64.
    """
    for i in range(begin, stop, step):
        if made_of == LOSSES:
            s = losses[i]
        else:
            first = _sum_of_squares(h if made_of == CURVATURE else g, i, n, k)
            second = _sum_of_squares(h, i, n, k) if made_of == BOTH else 0.0
            s = magnitude(first, second, kappa, made_of == BOTH)
            if not math.isnan(s):  # what is no number stays so
                s = np.float64(normal_score(s))
        out[i] = s * factor[i] if has_factor else s
