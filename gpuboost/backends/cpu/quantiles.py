"""Leaf values that are quantiles of residuals, on the CPU."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.host.threads import SMALL, ThreadPool
from gpuboost.kernels.leaves import quantiles as kernels
from gpuboost.types import Array, Nodes


def leaf_quantiles(
    nodes: Nodes, leaf_of_row: Array, residual: Array, weight: Array, alpha: float, pool: ThreadPool
) -> Array:
    """(v,) float64: ``weighted_quantile`` of the residuals in each leaf, 0 elsewhere.

    leaf_of_row (n,) int32; residual (n,) float64 without negative zeros; weight (n,) int64, positive.
    """
    n, v = len(residual), len(nodes.feature)
    end, value, (ordered, weights) = np.empty(v, np.int64), np.empty(v), np.empty((2, n), np.int64)
    kernels.sort_by_leaf(leaf_of_row, residual.view(np.int64), weight, end, ordered, weights)
    parts = 1 if n < SMALL else pool.size
    bounds = [0, *np.searchsorted(end, [n * part // parts for part in range(1, parts)]).tolist(), v]
    of = nodes.feature, end, ordered, weights, alpha, value.view(np.int64)
    pool.run_parts(parts, lambda part: kernels.quantiles(bounds[part], bounds[part + 1], *of))
    return value
