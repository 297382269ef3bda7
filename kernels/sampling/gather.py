"""Bins of the rows drawn for a tree, side by side, so the cost of growth is that of these rows and not of all.

Only the rows are copied, for histograms. ``partition`` reads the columns of the splits in place: of many columns
most are never asked for.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gpuboost.kernels.common.jit import kernel, prefetch

PREFETCH_DISTANCE = 16  # rows


@intrinsic
def copy(typing_context, to, source, size):
    """``size`` bytes from one address to another; they do not overlap."""

    def codegen(context, builder, signature, args):
        byte = ir.IntType(8).as_pointer()
        to, source = (builder.inttoptr(address, byte) for address in args[:2])
        cgutils.raw_memcpy(builder, to, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), codegen


@kernel
def gather(rows, drawn, start, stop, out):
    """out[k] = rows[drawn[k]] for k in [start, stop). rows (n, d), out (m, d) uint8."""
    width, last = np.intp(rows.shape[1]), np.uint64(max(stop - 1, 0))
    source, to = rows.ctypes.data, out.ctypes.data
    for k in range(np.uint64(start), np.uint64(stop)):
        later = source + np.intp(drawn[min(k + np.uint64(PREFETCH_DISTANCE), last)]) * width
        for line in range(0, width, 64):
            prefetch(later + line)
        prefetch(later + width - 1)
        copy(to + np.intp(k) * width, source + np.intp(drawn[k]) * width, width)
