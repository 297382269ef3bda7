"""Sums of float64 numbers by group, each in the order of ``numerics.exact_sums.fixed_order_sum`` over its numbers."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.gradients.pointwise import BLOCK, LANES, STRETCH


@kernel
def sums_in_order(x, group, out):
    """out[j] = the sum of those of group j, as ``pointwise.sum_in_order`` has it of them side by side.

    x (n,) float64, group (n,) int32, out (groups,) float64.
    """
    lanes, in_block = np.zeros((out.shape[0], LANES), np.float64), np.zeros(out.shape[0], np.float64)
    seen = np.zeros(out.shape[0], np.int64)
    out[:] = 0.0
    for i in range(x.shape[0]):
        j = group[i]
        lanes[j, seen[j] % LANES] += x[i]
        seen[j] += 1
        if seen[j] % STRETCH == 0:
            _end_stretch(lanes, in_block, j)
            if seen[j] % BLOCK == 0:
                out[j] += in_block[j]
                in_block[j] = 0.0
    for j in range(out.shape[0]):
        if seen[j] % STRETCH != 0:
            _end_stretch(lanes, in_block, j)
        if seen[j] % BLOCK != 0:
            out[j] += in_block[j]


@kernel
def _end_stretch(lanes, in_block, j):
    total = 0.0
    for lane in range(LANES):
        total += lanes[j, lane]
        lanes[j, lane] = 0.0
    in_block[j] += total
