"""Gaussian numbers with the same bits on every machine: the quantile of a Philox word, by table and polynomial.

The top bit of a 32-bit word is the sign and the other 31 are m; |z| is the upper quantile of (m + 1/2) / 2**32. No
logarithm, no cosine: the exponent and the first three mantissa bits of u = 2 m + 1 select a table row, and Horner's
rule takes separate multiplications and additions (never contracted). |error| < 1e-10, |z| <= 6.34.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.kernels.common.philox import words_of

__all__ = ["TABLE", "add_noise", "noisy", "normal"]


@kernel
def normal(word, table):
    """The number that a word (uint32) stands for. table: the coefficients, row by row, (1536,) float64."""
    bits = np.float64((np.int64(word) & 0x7FFF_FFFF) * 2 + 1).view(np.int64)
    row = np.uint64(6 * ((bits >> 49) - 8 * 1023))
    t = np.int64((bits << 3) & 0x000F_FFFF_FFFF_FFFF | 0x3FF0_0000_0000_0000).view(np.float64) - 1.0
    z = table[row + np.uint64(5)]
    z = z * t + table[row + np.uint64(4)]
    z = z * t + table[row + np.uint64(3)]
    z = z * t + table[row + np.uint64(2)]
    z = z * t + table[row + np.uint64(1)]
    z = z * t + table[row]
    return -z if word >> 31 else z


@kernel
@inlined
def noisy(g, spread, deviation, z):
    """A gradient with noise of variance deviation**2 times ``spread``; z: a Gaussian number."""
    return g + (deviation * np.sqrt(spread)) * z


@kernel
def add_noise(g, h, multiplicity, rows, deviation, table, seed_low, seed_high, iteration, stream, start, stop, out):
    """out[k] = g[k] + deviation sqrt(h[k] / multiplicity[k]) z[row of k], for k in [start, stop).

    g, h, out (m,) float32; multiplicity (m,) int32 or (0,) for all ones; rows (m,) int32, increasing, or (0,) where
    row k is k. Summed over rows and repetitions, the noise has variance deviation**2 times the sum of h.
    """
    table = table.reshape(table.size)
    last, words = np.int64(-1), (np.uint32(0), np.uint32(0), np.uint32(0), np.uint32(0))
    for k in range(start, stop):
        row = np.int64(k) if rows.shape[0] == 0 else np.int64(rows[k])
        if row >> 2 != last:
            last = row >> 2
            words = words_of(last, seed_low, seed_high, iteration, stream)
        spread = np.float64(h[k])
        if multiplicity.shape[0] > 0:
            spread = spread / np.float64(multiplicity[k])
        word = words[row & 3]
        out[k] = np.float32(noisy(np.float64(g[k]), spread, deviation, normal(word, table)))
