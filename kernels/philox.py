"""Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011): random numbers as a function of their place.

Counter = (i // 4 low, i // 4 high, iteration, stream), key = (seed low, seed high), word = i % 4.
"""

import numpy as np

from gpuboost.kernels.jit import kernel

NUMBERS = 256  # made in one go

_LOW = np.uint64(0xFFFF_FFFF)
_SHIFT = np.uint64(32)
_M0, _M1 = np.uint64(0xD251_1F53), np.uint64(0xCD9E_8D57)
_W0, _W1 = np.uint64(0x9E37_79B9), np.uint64(0xBB67_AE85)


@kernel
def philox(c0, c1, c2, c3, k0, k1):
    """Four 32-bit numbers, each in a uint64. All arguments uint64 below 2**32."""
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ k0, p1 & _LOW, (p0 >> _SHIFT) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@kernel
def numbers(first, seed_low, seed_high, iteration, stream, out):
    """out = numbers 4 first to 4 first + 255 of the stream. out (256,) uint64.

    A loop over counters, not over rounds, is one that LLVM turns into vector instructions.
    """
    for j in range(NUMBERS // 4):
        at = np.uint64(first) + np.uint64(j)
        c0, c1, c2, c3 = at & _LOW, at >> _SHIFT, np.uint64(iteration), np.uint64(stream)
        k0, k1 = np.uint64(seed_low), np.uint64(seed_high)
        for _ in range(10):
            p0, p1 = _M0 * c0, _M1 * c2
            c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ k0, p1 & _LOW, (p0 >> _SHIFT) ^ c3 ^ k1, p0 & _LOW
            k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
        out[4 * j], out[4 * j + 1], out[4 * j + 2], out[4 * j + 3] = c0, c1, c2, c3


@kernel
def drawn_rows(start, stop, limit, seed_low, seed_high, iteration, stream, out):
    """Row i is drawn iff its number is below ``limit`` (uint64, p * 2**32). Writes the rows, returns how many.

    Rows [start, stop), start a multiple of NUMBERS; out: (stop - start,) int32.
    """
    words, count = np.empty(NUMBERS, np.uint64), 0
    for begin in range(start, stop, NUMBERS):
        numbers(begin // 4, seed_low, seed_high, iteration, stream, words)
        for j in range(min(NUMBERS, stop - begin)):
            out[count] = begin + j  # kept only if the next line counts it: no branch to mispredict
            count += np.int64(words[j] < limit)
    return count
