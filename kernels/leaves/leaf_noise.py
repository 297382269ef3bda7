"""Noise on leaf values. Definition: ``numerics.leaf_values.leaf_noise``."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.normal import normal
from gpuboost.kernels.common.philox import words_of


@kernel
def add_leaf_noise(feature, sum_h, ridge, deviation, table, seed_low, seed_high, iteration, stream, value):
    """value[v] += deviation / sqrt(H + lambda) z[v] at leaves with H > 0; z: the numbers of a stream.

    feature (v,) int32: -1 at leaves; sum_h, value (v,) float64; table: of ``normal``; deviation: float.
    """
    table, last = table.reshape(table.size), np.int64(feature.shape[0])
    for block in range((last + 3) // 4):
        v = 4 * block
        for word in words_of(block, seed_low, seed_high, iteration, stream):
            if v < last:
                below, spread = sum_h[v] + ridge, 0.0
                if feature[v] < 0 and sum_h[v] > 0.0 and below > 0.0:
                    spread = deviation / np.sqrt(below)
                value[v] += spread * normal(word, table)
            v += 1
