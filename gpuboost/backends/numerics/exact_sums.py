"""Sums that are the same on every machine: integer sums, and float64 sums in a fixed order."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.numerics.fixed_point import fixed_point_scale
from gpuboost.types import Array, Gradients

LANES, STRETCH, BLOCK = 16, 1 << 12, 1 << 16


def integers(gradients: Gradients, output: int) -> tuple[Array, Array, tuple[float, float]]:
    """(m,) int64 g and h, whose sums are exact, and the value of one unit of each."""
    m = gradients.multiplicity
    times = np.ones(gradients.g.shape[1], np.int64) if m is None else m.astype(np.int64)
    parts, units = [], []
    for values, bits in ((gradients.g[output], 31), (gradients.h[output], 32)):
        top, total = extent(values, times)
        scale = fixed_point_scale(top, total, float(times.max(initial=1)), float(times.sum()), bits)
        parts.append(np.rint(values.astype(np.float64) * scale).astype(np.int64) * times)
        units.append(1.0 / scale)
    return parts[0], parts[1], (units[0], units[1])


def extent(values: Array, times: Array) -> tuple[float, float]:
    """Largest and summed |value| * multiplicity."""
    size = np.abs(values.astype(np.float64)) * times
    return float(size.max(initial=0.0)), fixed_order_sum(size)


def fixed_order_sum(x: Array) -> float:
    """The sum in one fixed order: 16 lanes of each stretch of 4,096, lanes in order; then the stretches of each block
    of 65,536 in order, and the blocks in order."""
    total = 0.0
    for begin in range(0, len(x), BLOCK):
        in_block = 0.0
        for first in range(begin, min(begin + BLOCK, len(x)), STRETCH):
            stretch = x[first : min(first + STRETCH, len(x))].astype(np.float64)
            lane_sums = np.zeros(LANES)
            for line in np.concatenate([stretch, np.zeros(-len(stretch) % LANES)]).reshape(-1, LANES):
                lane_sums = lane_sums + line
            in_stretch = 0.0
            for lane in lane_sums:
                in_stretch += float(lane)
            in_block += in_stretch
        total += in_block
    return total
