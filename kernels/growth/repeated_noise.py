"""Noise of repeated rounds: on the gradients that trees are grown from, and on their leaf values.

The kernels that add it are called by address, as those of ``repeated_rounds``. of_noise: addresses of these kernels,
and the fields of ``NoiseStreams``.
"""

import numpy as np
from numba import types

from gpuboost.kernels.common.by_address import called_at
from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.records import NoiseStreams

ON_GRADIENTS, ON_LEAVES = range(2)  # places of the kernels' addresses, and of the deviations

call = called_at(types.none)


@kernel
def _words(words, time):
    """The words of a stream in a round of this call."""
    return words[0], words[1], (words[2] + time) & np.int64(0x7FFF_FFFF), words[3]


@kernel
def disturb(of_noise, time, output, g, h, multiplicity, rows):
    """Return g of the rows that an output's tree is grown from, with noise. rows (m,) int32, (0,) for all of them."""
    addresses, noise = of_noise[0], NoiseStreams(*of_noise[1])
    if noise.of_gradients.shape[0] == 0:
        return g
    noisy, deviation = noise.room[: g.shape[0]], noise.deviations[ON_GRADIENTS]
    words, from_to = _words(noise.of_gradients[output], time), (np.int64(0), np.int64(g.shape[0]), noisy)
    of_rows = (g, h, multiplicity, rows, deviation, noise.table)
    call(addresses[ON_GRADIENTS], (*of_rows, *words, *from_to))
    return noisy


@kernel
def disturb_values(of_noise, time, output, feature, sum_h, ridge, value):
    """Add noise to the leaf values of an output's tree."""
    addresses, noise = of_noise[0], NoiseStreams(*of_noise[1])
    if noise.of_leaves.shape[0] > 0:
        words = _words(noise.of_leaves[output], time)
        of_values = (feature, sum_h, ridge, noise.deviations[ON_LEAVES], noise.table)
        call(addresses[ON_LEAVES], (*of_values, *words, value))
