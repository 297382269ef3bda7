"""walk_rows: the leaf of each of some binned rows, by the nodes of a tree as they are. Definition: Reference.route."""

import numpy as np

from gpuboost.kernels.common.jit import kernel


@kernel
def walk_rows(rows, feature, last, missing_left, left, right, left_set, n_bins, is_categorical, out):
    """out[r] = leaf of row r.

    rows (n, d) uint8 bins; feature to left_set: arrays of ``types.Nodes``, ``last`` being its ``bin``; n_bins,
    is_categorical (d,): of ``types.Cuts``; out (n,) int32.
    """
    for r in range(out.size):
        v = np.uint64(0)
        while feature[v] >= 0:
            f = np.uint64(feature[v])
            code = rows[r, f]
            if code == n_bins[f]:
                goes_left = missing_left[v]
            elif is_categorical[f]:
                goes_left = (left_set[v, np.uint64(code >> 5)] >> np.uint32(code & 31)) & np.uint32(1) != 0
            else:
                goes_left = code <= last[v]
            v = np.uint64(left[v]) if goes_left else np.uint64(right[v])
        out[r] = v
