"""float32 <-> float64 by their bits, as kernels/common/common.cuh: a GPU may take a denormal float32 for 0.

Compiled where they are called: by numba for CPUs, by numba.cuda for GPUs.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel

_SIGN, _SMALLEST_NORMAL = 0x8000_0000, 0x0080_0000


@kernel
@inlined
def widened(bits):
    """The float64 of a float32's bits (uint32)."""
    word = np.int64(bits)
    size = word & (_SIGN - 1)
    if size < _SMALLEST_NORMAL:
        value = np.float64(size) * 2.0**-149
        return -value if word & _SIGN else value
    return np.float64(np.uint32(bits).view(np.float32))


@kernel
@inlined
def narrowed(x):
    """The bits (uint32) of the float32 nearest to a float64."""
    size = -x if x < 0.0 else x
    if size < 2.0**-126:
        units = np.int64(np.rint(size * 2.0**149))  # 2**23 of them are the smallest normal number
        return np.uint32(units | _SIGN if np.float64(x).view(np.int64) < 0 else units)
    return np.float32(x).view(np.uint32)
