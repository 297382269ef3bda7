"""Rows drawn by coin flips, all with one probability."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.philox import NUMBERS, numbers
from gpuboost.kernels.common.vector import trailing_zeros, wide_vectors
from gpuboost.kernels.sampling.probability import is_below

AT_ONCE = 64  # rows whose draws are the bits of one number

_ONE = np.uint64(1)


@kernel
def keep(drawn, first, stop, rows, count):
    """Adds first + j to the ``count`` rows there are for each bit j of ``drawn`` (uint64); returns how many there are.

    first, stop: of the rows below ``stop``; rows: int32 with room enough.
    """
    if stop - first < AT_ONCE:
        drawn &= (_ONE << np.uint64(stop - first)) - _ONE
    while drawn:
        rows[count] = first + np.int64(trailing_zeros(drawn))
        drawn &= drawn - _ONE
        count += 1
    return count


@kernel
def drawn_rows(start, stop, limit, seed_low, seed_high, iteration, stream, out):
    """Row i is drawn iff its number is below ``limit`` (uint64). Writes the rows, returns how many.

    Rows [start, stop), start a multiple of NUMBERS; out: (stop - start,) int32.
    """
    wide_vectors()
    words, count = np.empty(NUMBERS, np.uint32), 0
    for begin in range(start, stop, NUMBERS):
        numbers(begin // 4, seed_low, seed_high, iteration, stream, words)
        for first in range(begin, min(begin + NUMBERS, stop), AT_ONCE):
            some, drawn = words[first - begin : first - begin + AT_ONCE], np.uint64(0)
            for j in range(np.uint64(AT_ONCE)):
                drawn |= np.uint64(is_below(some[j], limit)) << j
            count = keep(drawn, first, stop, out, count)
    return count
