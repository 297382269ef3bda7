"""Newton leaf values from the sums of each leaf. Definition: ``numerics.leaf_values.newton_values``."""

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.splits.gain import smoothed_within, soft_threshold, value_within


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


@kernel
def along_paths(feature, left, right, sum_g, sum_h, ridge, alpha, most, smoothing, value):
    """The same with path smoothing: each node's value is drawn to that of the node above. Sums are of all nodes.

    left, right (v,) int32; smoothing: S of ``numerics.monotone``, 0 for none.
    """
    value[0] = value_within(soft_threshold(sum_g[0], alpha), sum_h[0], ridge, -most, most)
    for v in range(feature.shape[0]):  # children come after their parent
        for child in (left[v], right[v]):
            if feature[v] < 0:
                continue
            g, h = soft_threshold(sum_g[child], alpha), sum_h[child]
            if smoothing > 0.0:
                value[child] = smoothed_within(g, h, ridge, -most, most, smoothing, value[v])
            else:
                value[child] = value_within(g, h, ridge, -most, most)
    for v in range(feature.shape[0]):
        value[v] = value[v] + 0.0 if feature[v] < 0 else 0.0
