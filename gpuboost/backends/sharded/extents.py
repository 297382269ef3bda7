"""Extents of gradients (largest, summed) on shards: one shard's part, and the scales for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.numerics.fixed_point import fixed_point_scale
from gpuboost.backends.sharded.ordered import Part, joined, part_of
from gpuboost.kernels.common import fixed_point
from gpuboost.types import Array, Gradients

Scales: TypeAlias = tuple[float, float]
"""Scales of g and of h."""


@dataclass(frozen=True, slots=True)
class Extent:
    """One shard's extents of g and of h, output by output: see ``fixed_point``."""

    totals: list[tuple[Part, Part]]
    tops: list[tuple[float, float]]
    most: float  # largest multiplicity
    weight: int  # how many rows the gradients stand for


def extent_of(gradients: Gradients, first: int) -> Extent:
    """Extents of a shard's gradients. first: number of its first row among the gradients of all shards."""
    m = cpu_sums.multiplicity_of(gradients)
    totals, tops = [], []
    for g, h in zip(gradients.g, gradients.h, strict=True):
        (g_part, g_top), (h_part, h_top) = _of_one(g, m, first), _of_one(h, m, first)
        totals.append((g_part, h_part))
        tops.append((g_top, h_top))
    n = gradients.g.shape[1]
    return Extent(totals, tops, float(m.max(initial=1)), int(m.sum()) if len(m) else n)


def scales_of(extents: Sequence[Extent], output: int) -> tuple[Scales, int]:
    """The scales at which one output's gradients become integers, and the sum of the rows' multiplicities."""
    largest, weight = max(extent.most for extent in extents), sum(extent.weight for extent in extents)

    def scale(which: int, bits: int) -> float:
        total = joined(extent.totals[output][which] for extent in extents)
        top = max(extent.tops[output][which] for extent in extents)
        return fixed_point_scale(top, total, largest, float(weight), bits)

    return (scale(0, 31), scale(1, 32)), weight


def _of_one(values: Array, multiplicity: Array, first: int) -> tuple[Part, float]:
    """Parts of the ordered sum of |value| times multiplicity of one output, and its maximum. values (m,) float32."""
    n, out = len(values), np.zeros(3)
    top = 0.0

    def numbers(a: int, b: int) -> Array:
        nonlocal top
        size = np.abs(values[a:b].astype(np.float64))
        size = size * multiplicity[a:b] if len(multiplicity) else size
        top = max(top, float(size.max(initial=0.0)))
        return size

    def total(a: int, b: int) -> float:
        nonlocal top
        fixed_point.extent(values, multiplicity, a, b, out)
        top = max(top, float(out[0]))
        return float(out[1])

    return part_of(first, n, numbers, total), top
