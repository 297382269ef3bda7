"""Random numbers by definition: Philox4x32-10 in NumPy. The fast one is ``kernels/common/philox.py``."""

from __future__ import annotations

import numpy as np

from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.keys import Key
from gpuboost.types import Array


def philox(blocks: Array, key: Key) -> Array:
    """(b, 4) uint64 below 2**32: Philox4x32-10 at counter (block, iteration, stream). blocks (b,) uint64."""
    low, shift = np.uint64(0xFFFF_FFFF), np.uint64(32)
    seed_low, seed_high, iteration, stream = (np.uint64(word) for word in key.words)
    c = [blocks & low, blocks >> shift, np.full_like(blocks, iteration), np.full_like(blocks, stream)]
    for _ in range(10):
        p0, p1 = np.uint64(0xD251_1F53) * c[0], np.uint64(0xCD9E_8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ seed_low, p1 & low, (p0 >> shift) ^ c[3] ^ seed_high, p0 & low]
        seed_low = (seed_low + np.uint64(0x9E37_79B9)) & low
        seed_high = (seed_high + np.uint64(0xBB67_AE85)) & low
    return np.stack(c, axis=1)


def uniform_bits(n: int, key: Key) -> Array:
    """(n,) uint64 below 2**32: number i is word i % 4 of block i // 4."""
    return philox(np.arange((n + 3) // 4, dtype=np.uint64), key).reshape(-1)[:n]


def gaussian_of(words: Array) -> Array:
    """(n,) float64: the Gaussian numbers of these words, see ``kernels.common.normal``."""
    words = words.astype(np.int64)
    bits = ((words & 0x7FFF_FFFF) * 2 + 1).astype(np.float64).view(np.int64)
    row = TABLE[(bits >> 49) - 8 * 1023]
    t = (bits << 3 & 0x000F_FFFF_FFFF_FFFF | 0x3FF0_0000_0000_0000).view(np.float64) - 1.0
    z = row[:, 5]
    for degree in (4, 3, 2, 1, 0):
        z = z * t + row[:, degree]
    return np.where(words >> 31, -z, z)
