"""Random numbers by definition: Philox4x32-10 in NumPy. The fast one is ``kernels/common/philox.py``."""

from __future__ import annotations

import numpy as np

from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.keys import Key
from gpuboost.types import Array

_LOW, _SHIFT = np.uint64(0xFFFF_FFFF), np.uint64(32)
_FACTORS = np.array([[0xD251_1F53], [0xCD9E_8D57]], np.uint64)
_ADDED = np.arange(10, dtype=np.uint64)[:, None, None] * np.array([[0x9E37_79B9], [0xBB67_AE85]], np.uint64)
"""(10, 2, 1): what the words of the seed have gained by each of the ten rounds"""


def philox(blocks: Array, key: Key) -> Array:
    """(b, 4) uint64 below 2**32: Philox4x32-10 at counter (block, iteration, stream). blocks (b,) uint64."""
    seed_low, seed_high, iteration, stream = key.words
    even = np.stack((blocks & _LOW, np.full_like(blocks, iteration)))  # words 0 and 2 of the counter
    odd = np.stack((blocks >> _SHIFT, np.full_like(blocks, stream)))
    for words in (np.array([[seed_low], [seed_high]], np.uint64) + _ADDED) & _LOW:
        products = _FACTORS * even
        even, odd = (products >> _SHIFT)[::-1] ^ odd ^ words, (products & _LOW)[::-1]
    return np.stack((even[0], odd[0], even[1], odd[1]), axis=1)


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
