"""Stored entries of the rows drawn for a tree, column by column, so the search reads no others."""

import numpy as np

from gpuboost.kernels.common.jit import kernel


@kernel
def count_drawn(start, row, drawn, first, last, counts):
    """counts[f] = entries of drawn rows in each of columns [first, last).

    start (d + 1,) int64; row (nnz,) int32; drawn (n,) uint8, 1 for the rows that were; counts (d,) int64.
    """
    for f in range(first, last):
        count = 0
        for e in range(np.uint64(start[f]), np.uint64(start[f + 1])):
            count += np.int64(drawn[np.uint64(row[e])])
        counts[f] = count


@kernel
def take_drawn(start, row, bins, drawn, first, last, out_start, out_row, out_bins):
    """Copies them, in their order. out_start (d + 1,) int64: where each column begins."""
    for f in range(first, last):
        position = np.uint64(out_start[f])
        for e in range(np.uint64(start[f]), np.uint64(start[f + 1])):
            if drawn[np.uint64(row[e])]:
                out_row[position], out_bins[position] = row[e], bins[e]
                position += np.uint64(1)
