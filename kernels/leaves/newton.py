"""Newton leaf values from the sums of each leaf. Definition: ``numerics.leaf_values.newton_values``."""

from gpuboost.kernels.common.jit import kernel


@kernel
def newton(feature, sum_g, sum_h, ridge, value):
    """-G / (H + lambda) at leaves, 0 elsewhere and where the denominator is 0.

    feature (v,) int32: -1 at leaves; sum_g, sum_h, value (v,) float64.
    """
    for v in range(feature.shape[0]):
        below = sum_h[v] + ridge
        value[v] = -sum_g[v] / below + 0.0 if feature[v] < 0 and below > 0.0 else 0.0
