"""Newton leaf values from the sums of each leaf. Definition: ``numerics.leaf_values.newton_values``."""

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.splits.gain import soft_threshold, value_within


@kernel
def newton(feature, sum_g, sum_h, ridge, alpha, most, value):
    """-G / (H + lambda) at leaves, 0 elsewhere and where the denominator is 0.

    feature (v,) int32: -1 at leaves; sum_g, sum_h, value (v,) float64. alpha: G is brought nearer to 0 by so much;
    most: values are clipped to so much on either side of 0.
    """
    for v in range(feature.shape[0]):
        below = sum_h[v] + ridge
        value[v] = 0.0
        if feature[v] < 0 and below > 0.0:
            value[v] = value_within(soft_threshold(sum_g[v], alpha), sum_h[v], ridge, -most, most) + 0.0
