"""Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011): random numbers as a function of their place.

Counter = (i // 4 low, i // 4 high, iteration, stream), key = (seed low, seed high), word = i % 4.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.vector import EIGHT, random_words

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
    counter = np.uint64(block)
    return philox(
        np.uint32(counter), np.uint32(counter >> _SHIFT), np.uint32(iteration), np.uint32(stream), np.uint32(seed_low),
        np.uint32(seed_high),
    )  # fmt: skip


@kernel
def numbers(first, seed_low, seed_high, iteration, stream, out):
    """out = numbers 4 first to 4 first + 255 of the stream. out (256,) uint32."""
    base, counter = out.ctypes.data, np.uint64(first)
    whose = np.uint64(iteration), np.uint64(stream), np.uint64(seed_low), np.uint64(seed_high)
    for j in range(0, NUMBERS // 4, EIGHT):
        random_words(counter + np.uint64(j), *whose, base + 16 * j)
