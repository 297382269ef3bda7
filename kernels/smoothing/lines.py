"""Trees with a linear function in each leaf: the sums for a leaf's regression, and the update of scores."""

import numpy as np

from gpuboost.kernels.common.jit import kernel

BLOCK = 1 << 16  # rows summed by one call; blocks are then summed in order


@kernel
def moments(g, h, multiplicity, codes, leaf_of_row, features, centres, start, stop, out):
    """out[leaf, i, j] += h z_i z_j and out[leaf, s + 1, j] += g z_j, z being 1 and centres of its features.

    g, h (n,) float32; multiplicity (n,) int32 or (0,); codes (n, d) uint8; leaf_of_row (n,) int32; features (v, s)
    int32, -1 where there are fewer; centres (d, 256), out (v, s + 2, s + 1) float64.
    """
    s = features.shape[1]
    z = np.empty(s + 1, np.float64)
    z[0] = 1.0
    for i in range(start, stop):
        leaf = leaf_of_row[i]
        for j in range(s):
            f = features[leaf, j]
            z[j + 1] = centres[f, codes[i, f]] if f >= 0 else 0.0
        times = 1.0 if multiplicity.shape[0] == 0 else np.float64(multiplicity[i])
        own_g, own_h = np.float64(g[i]) * times, np.float64(h[i]) * times
        for j in range(s + 1):
            by = own_h * z[j]
            for k in range(s + 1):
                out[leaf, j, k] += by * z[k]
            out[leaf, s + 1, j] += own_g * z[j]


@kernel
def add(scores, factor, codes, leaf_of_row, value, features, slopes, centres, start, stop):
    """scores[i] += factor * (value of its leaf + slopes times centres), over rows [start, stop)."""
    for i in range(start, stop):
        leaf = leaf_of_row[i]
        prediction = value[leaf]
        for j in range(features.shape[1]):
            f = features[leaf, j]
            if f >= 0:
                prediction += slopes[leaf, j] * centres[f, codes[i, f]]
        scores[i] += factor * prediction
