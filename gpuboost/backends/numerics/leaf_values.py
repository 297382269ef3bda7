"""Leaf values: from sums of gradients, with noise, or a quantile of residuals."""

from __future__ import annotations

from math import ceil

import numpy as np

from gpuboost.backends.numerics import line_search
from gpuboost.backends.numerics.monotone import NodeBounds
from gpuboost.types import Array, Limits, Nodes, TrainingSet


def newton_values(nodes: Nodes, sums: tuple[Array, Array], limits: Limits, weight: int = 0) -> Array:
    """(v,) float64: -G / (H + lambda) at leaves, 0 elsewhere and where the denominator is 0.

    ``reg_alpha`` brings G nearer to 0 first, and ``max_delta_step`` clips the quotient. The leaves of a sign stump
    (``limits.signed``) have -(G_L - G_R) / (H_L + H_R + lambda) and its negative. With ``path_smooth`` values are drawn
    to those of the nodes above; then sums are of inner nodes too, and weight is the sum of the rows' multiplicities.
    """
    ridge = float(limits.reg_lambda)
    if limits.signed and len(nodes.feature) == 3:
        g, h = float(sums[0][1]) - float(sums[0][2]), float(sums[1][1]) + float(sums[1][2]) + ridge
        left = -g / h if h > 0.0 else 0.0
        return np.array([0.0, left, -left]) + 0.0
    if limits.path_smooth > 0.0:
        return _along_paths(nodes, sums, limits, weight)
    if limits.regularised:
        within = NodeBounds(-limits.largest_value, limits.largest_value, np.empty(0, np.int64), limits.reg_alpha)
        pairs = zip(nodes.is_leaf.tolist(), sums[0].tolist(), sums[1].tolist(), strict=True)
        return np.array([within.value(g, h, ridge) if is_leaf else 0.0 for is_leaf, g, h in pairs]) + 0.0
    if len(nodes.feature) == 3:  # of few numbers, these are quicker than arrays
        (_, left_g, right_g), (_, left_h, right_h) = sums[0].tolist(), sums[1].tolist()
        left_h, right_h = left_h + ridge, right_h + ridge
        left = -left_g / left_h + 0.0 if left_h > 0.0 else 0.0
        return np.array([0.0, left, -right_g / right_h + 0.0 if right_h > 0.0 else 0.0])
    below = sums[1] + ridge
    return np.divide(-sums[0], below, out=np.zeros(len(below)), where=nodes.is_leaf & (below > 0.0)) + 0.0


def _along_paths(nodes: Nodes, sums: tuple[Array, Array], limits: Limits, weight: int) -> Array:
    """``newton_values`` with path smoothing: from the root down, each node's value from that of the node above."""
    largest_value, g, h = limits.largest_value, sums[0].tolist(), sums[1].tolist()
    held = -largest_value, largest_value, np.empty(0, np.int64), limits.reg_alpha
    value, smoothing = [0.0] * len(g), limits.smoothing(h[0], weight)
    value[0] = NodeBounds(*held).value(g[0], h[0], limits.reg_lambda)
    for v in np.flatnonzero(~nodes.is_leaf):
        within = NodeBounds(*held, smoothing, value[v])
        for child in (nodes.left[v], nodes.right[v]):
            value[child] = within.value(g[child], h[child], limits.reg_lambda)
    return np.where(nodes.is_leaf, value, 0.0) + 0.0


def climbed(nodes: Nodes, of_leaves: Array) -> Array:
    """(v,) int64 sums of all nodes. of_leaves: (v,) integers, 0 at inner nodes."""
    sums = of_leaves.astype(np.int64)
    for v in np.flatnonzero(~nodes.is_leaf)[::-1]:  # children come after their parent
        sums[v] = sums[nodes.left[v]] + sums[nodes.right[v]]
    return sums


def leaf_noise(nodes: Nodes, h: Array, limits: Limits, deviation: float, z: Array) -> Array:
    """(v,) float64: deviation / sqrt(H + lambda) z at leaves with H > 0, 0 elsewhere."""
    below = h + limits.reg_lambda
    spread = np.divide(deviation, np.sqrt(below), out=np.zeros(len(h)), where=nodes.is_leaf & (h > 0.0) & (below > 0.0))
    return spread * z


def weighted_quantile(x: Array, weight: Array, alpha: float) -> float:
    """The smallest x whose cumulative weight reaches alpha of the total; 0 for no rows.

    weight (n,) int64, positive: ``whole_weights``.
    """
    if len(x) == 0:
        return 0.0
    order = np.argsort(x, kind="stable")
    reached = np.cumsum(weight[order])
    total = int(reached[-1])
    needed = min(max(ceil(alpha * float(total)), 1), total)
    return float(x[order[np.searchsorted(reached, needed)]])


def whole_weights(data: TrainingSet) -> Array:
    """(n,) int64, at least 1: weights as integers, so their sum does not depend on the order."""
    if data.weight is None:
        return np.ones(data.n_rows, np.int64) if data.multiplicity is None else data.multiplicity.astype(np.int64)
    return np.maximum(np.rint(data.weight * weight_scale(data.weight)).astype(np.int64), 1)


def weight_scale(weight: Array) -> float:
    """The power of two that scales the largest weight to 2**30 .. 2**31: sums of 2**32 weights fit in 64 bits."""
    return line_search.whole_scale(float(weight.max(initial=0.0)))
