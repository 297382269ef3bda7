"""Estimates of the bias of positions from the cost of pairs (Hu et al. 2019, equations 30 and 31; XGBoost)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.elementary import exp_array, log_array
from gpuboost.types import Array, PositionBias, TrainingSet

Floats = NDArray[np.float64]

TRACKED = 100  # positions; the last one stands for all further ones
SWEEPS = 10
LARGEST = 2.0**7  # of an estimate, and 1 / the smallest


def tracked_positions(data: TrainingSet) -> NDArray[np.int64]:
    """(n,) the position of each row, or its place in its query if none are given; at most ``TRACKED`` - 1."""
    start, position = data.lists(), data.position
    places = np.arange(data.n_rows) - np.repeat(start[:-1], np.diff(start)) if position is None else position
    return np.minimum(places, TRACKED - 1).astype(np.int64)


def estimated(cost: Floats, bias_norm: float) -> PositionBias:
    """t+ and t-, (p,) each, of costs (p, p) by the position of the better and of the worse document."""
    plus, minus = np.ones(len(cost)), np.ones(len(cost))
    for _ in range(SWEEPS):
        above, below = _sums(cost / minus), _sums(cost.T / plus)
        plus, minus = _ratios(above, bias_norm), _ratios(below, bias_norm)
    return PositionBias(plus, minus)


def _sums(rows: Array) -> Floats:
    """Sums of rows, from the first number to the last on every machine."""
    return np.ascontiguousarray(np.cumsum(rows, axis=1)[:, -1])


def _ratios(sums: Floats, bias_norm: float) -> Floats:
    if not (sums[0] > 0.0 and np.isfinite(sums).all()):  # nothing to compare with
        return np.ones(len(sums))
    ratio = np.clip(sums / sums[0], 1e-30, 1e30)
    return np.clip(exp_array(log_array(ratio) * (1.0 / (1.0 + bias_norm))), 1.0 / LARGEST, LARGEST)
