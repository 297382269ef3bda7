"""Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011): random numbers as a function of their place.

Counter = (i // 4 low, i // 4 high, iteration, stream), key = (seed low, seed high), word = i % 4.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.vector import EIGHT, SIXTEEN, below, random_words, trailing_zeros

NUMBERS = 256  # made in one go

_SHIFT = np.uint64(32)
_M0, _M1 = np.uint64(0xD251_1F53), np.uint64(0xCD9E_8D57)
_W0, _W1 = np.uint64(0x9E37_79B9), np.uint64(0xBB67_AE85)
_ONE = np.uint64(1)


@kernel
def philox(c0, c1, c2, c3, k0, k1):
    """Four 32-bit numbers. All are uint32: products take 64 bits, and no register of a GPU holds more than 32."""
    for _ in range(10):
        p0, p1 = _M0 * np.uint64(c0), _M1 * np.uint64(c2)
        c0, c1 = np.uint32(p1 >> _SHIFT) ^ c1 ^ k0, np.uint32(p1)
        c2, c3 = np.uint32(p0 >> _SHIFT) ^ c3 ^ k1, np.uint32(p0)
        c0, c2 = np.uint32(c0), np.uint32(c2)  # numba widens what an operator gives
        k0, k1 = np.uint32(k0 + _W0), np.uint32(k1 + _W1)
    return c0, c1, c2, c3


@kernel
@inlined
def words_of(block, seed_low, seed_high, iteration, stream):
    """Words 4 block to 4 block + 3 of a stream, as uint32. block: an integer below 2**64."""
    at = np.uint64(block)
    return philox(
        np.uint32(at), np.uint32(at >> _SHIFT), np.uint32(iteration), np.uint32(stream), np.uint32(seed_low),
        np.uint32(seed_high),
    )  # fmt: skip


@kernel
def numbers(first, seed_low, seed_high, iteration, stream, out):
    """out = numbers 4 first to 4 first + 255 of the stream. out (256,) uint32."""
    base, at = out.ctypes.data, np.uint64(first)
    whose = np.uint64(iteration), np.uint64(stream), np.uint64(seed_low), np.uint64(seed_high)
    for j in range(0, NUMBERS // 4, EIGHT):
        random_words(at + np.uint64(j), *whose, base + 16 * j)


@kernel
def keep(words, p, begin, size, rows, count):
    """Adds begin + j to the ``count`` rows there are, if word j is below p[j] * 2**32. Returns how many there are now.

    words (256,) uint32 and p (256,) float64, of which the first ``size`` count; rows int32 with room enough.
    """
    first_word, first_p = words.ctypes.data, p.ctypes.data
    for stretch in range(0, size, 64):
        drawn = np.uint64(0)
        for j in range(0, 64, SIXTEEN):
            drawn |= below(first_word + 4 * (stretch + j), first_p + 8 * (stretch + j)) << np.uint64(j)
        if size - stretch < 64:
            drawn &= (_ONE << np.uint64(size - stretch)) - _ONE
        while drawn:
            rows[count] = begin + stretch + np.int64(trailing_zeros(drawn))
            drawn &= drawn - _ONE
            count += 1
    return count


@kernel
def drawn_rows(start, stop, p, seed_low, seed_high, iteration, stream, out):
    """Row i is drawn iff its number is below p * 2**32. Writes the rows, returns how many.

    Rows [start, stop), start a multiple of NUMBERS; out: (stop - start,) int32.
    """
    words, of_each, count = np.empty(NUMBERS, np.uint32), np.full(NUMBERS, p), 0
    for begin in range(start, stop, NUMBERS):
        numbers(begin // 4, seed_low, seed_high, iteration, stream, words)
        count = keep(words, of_each, begin, min(NUMBERS, stop - begin), out, count)
    return count
