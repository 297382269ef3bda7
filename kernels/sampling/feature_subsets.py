"""Subsets drawn uniformly, without replacement, in time that goes with what is drawn (Floyd 1987)."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.philox import words_of

_1, _6, _63 = np.uint64(1), np.uint64(6), np.uint64(63)


@kernel
def fractions(seed_low, seed_high, iteration, stream, out):
    """out[i] = fraction i of the stream, in [0, 1): words 2 i and 2 i + 1, of which 53 bits are used."""
    for block in range((out.shape[0] + 1) // 2):
        a, b, c, d = words_of(block, seed_low, seed_high, iteration, stream)
        out[2 * block] = np.float64((a << np.uint64(21)) | (b >> np.uint64(11))) * 2.0**-53
        if 2 * block + 1 < out.shape[0]:
            out[2 * block + 1] = np.float64((c << np.uint64(21)) | (d >> np.uint64(11))) * 2.0**-53


@kernel
def draw(of, seed_low, seed_high, iteration, stream, out):
    """out = ``count`` of the numbers 0 .. of - 1, in no useful order. out (count,) int32, 1 <= count <= of.

    Item ``of - count + i`` stands for itself, or for one before it that fraction i of the stream names, if that one
    was not taken yet.
    """
    count = out.shape[0]
    taken, u = np.zeros((of + 63) // 64, np.uint64), np.empty(count, np.float64)
    fractions(seed_low, seed_high, iteration, stream, u)
    for i in range(count):
        last = of - count + i
        item = np.uint64(u[i] * (last + 1))
        if (taken[item >> _6] >> (item & _63)) & _1:
            item = np.uint64(last)
        taken[item >> _6] |= _1 << (item & _63)
        out[i] = item
