"""Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011): random numbers as a function of their place.

Counter = (i // 4 low, i // 4 high, iteration, stream), key = (seed low, seed high), word = i % 4.
"""

import numpy as np

from gpuboost.kernels.jit import kernel

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
def drawn_rows(n_rows, limit, seed_low, seed_high, iteration, stream, out):
    """Row i is drawn iff its number is below ``limit`` (uint64, p * 2**32). Writes the rows, returns how many.

    out: (n_rows,) int32.
    """
    count = 0
    for block in range((n_rows + 3) // 4):
        at = np.uint64(block)
        words = philox(
            at & _LOW,
            at >> _SHIFT,
            np.uint64(iteration),
            np.uint64(stream),
            np.uint64(seed_low),
            np.uint64(seed_high),
        )
        row = 4 * block
        for word in words:
            if row < n_rows and word < limit:
                out[count] = row
                count += 1
            row += 1
    return count
