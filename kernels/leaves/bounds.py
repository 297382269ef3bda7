"""Leaf values held to their order. Definition: ``held`` and ``in_order`` in ``numerics.monotone``."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.splits.gain import soft_threshold, value_within


@kernel
def _in_order(feature, left, right, directions, value, least, largest):
    """True if at every split on a constrained feature all leaves obey it. least, largest (v,): scratch memory."""
    for v in range(feature.shape[0] - 1, -1, -1):  # children come after their parent
        least[v] = largest[v] = value[v]
        if feature[v] < 0:
            continue
        a, b, direction = left[v], right[v], directions[feature[v]]
        if (direction > 0 and largest[a] > least[b]) or (direction < 0 and least[a] < largest[b]):
            return False
        least[v], largest[v] = min(least[a], least[b]), max(largest[a], largest[b])
    return True


@kernel
def bound_leaves(feature, left, right, cover, directions, ridge, refined, value):
    """Clip the value of each leaf to the leaf's bounds. refined: not if all of them are in order.

    feature, left, right (v,) int32 and cover (v,) float64: of the nodes; directions (d,) int64: of all features; value
    (v,) float64.
    """
    nodes = feature.shape[0]
    minus_g, h, low, high = np.empty(nodes), np.empty(nodes), np.empty(nodes), np.empty(nodes)
    if refined and _in_order(feature, left, right, directions, value, low, high):
        return
    for v in range(nodes - 1, -1, -1):
        minus_g[v], h[v] = value[v] * (cover[v] + ridge), cover[v]
        if feature[v] >= 0:
            minus_g[v], h[v] = minus_g[left[v]] + minus_g[right[v]], h[left[v]] + h[right[v]]
    low[0], high[0] = -np.inf, np.inf
    for v in range(nodes):
        if feature[v] < 0:
            value[v] = low[v] if value[v] < low[v] else high[v] if value[v] > high[v] else value[v]
        else:
            a, b, direction = left[v], right[v], directions[feature[v]]
            low[a] = low[b] = low[v]
            high[a] = high[b] = high[v]
            if direction != 0:
                of_left = value_within(soft_threshold(-minus_g[a], 0.0), h[a], ridge, low[v], high[v])
                of_right = value_within(soft_threshold(-minus_g[b], 0.0), h[b], ridge, low[v], high[v])
                below, above = (a, b) if direction > 0 else (b, a)
                high[below] = low[above] = (of_left + of_right) / 2.0
        value[v] += 0.0
