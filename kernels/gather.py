"""Bins of the rows drawn for a tree, side by side, so that growing it costs what they are and not what all rows are."""

import numpy as np

from gpuboost.kernels.jit import kernel


@kernel
def gather(rows, columns, drawn, start, stop, out_rows, out_columns):
    """Lines [start, stop) of the sample. rows (n, d), columns (d, n) uint8; out_rows (m, d), out_columns (d, m)."""
    for k in range(start, stop):
        out_rows[k] = rows[drawn[k]]
    for f in range(columns.shape[0]):
        column, out = columns[f], out_columns[f]
        for k in range(start, stop):
            out[k] = column[np.uint64(drawn[k])]
