"""Gradients as integers on the CPU, and their sums by a pool of threads, at the scales of ``fixed_point_scale``."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

import numpy as np

from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.numerics.fixed_point import NOT_FINITE, fixed_point_scale
from gpuboost.backends.prediction.flat_forest import Pairs
from gpuboost.errors import InputError
from gpuboost.kernels.common import fixed_point
from gpuboost.types import Array, Gradients

NO_MULTIPLICITY = np.empty(0, np.int32)
LINE = 8  # numbers in a cache line, one line for each thread

Route = Callable[[Pairs, int, int, Array], None]
"""(pairs, begin, end, sums): find the leaves of these rows, and add their pairs to the sums (``route_and_sum``)"""

Share = Callable[[int, Callable[[int, int, int], object]], None]
"""(n, work): call work(part, begin, end) on stretches of n rows, in parallel if there are enough of them"""


def multiplicity_of(gradients: Gradients) -> Array:
    """Multiplicities: (n,) int32, or (0,) for all ones."""
    return NO_MULTIPLICITY if gradients.multiplicity is None else gradients.multiplicity


class Scales:
    """``scales`` of every round's gradients. The scale of a constant curvature is kept."""

    def __init__(self) -> None:
        self._last: tuple[Array, dict[int, float]] | None = None
        self._last_weight: tuple[Array, int, int] | None = None

    def of(self, gradients: Gradients, output: int, pool: ThreadPool) -> tuple[float, float]:
        m, weight, known = self.remembered(gradients)
        if output not in known:
            known[output] = _scale(gradients.h[output], m, float(weight), 32, pool)
        return _scale(gradients.g[output], m, float(weight), 31, pool), known[output]

    def remembered(self, gradients: Gradients) -> tuple[Array, int, dict[int, float]]:
        """Multiplicities ((0,) for all ones), their sum, and the known scales of h, which the caller adds to.

        The multiplicities are the training data's one array, which does not change, or None.
        """
        m, h, n = gradients.multiplicity, gradients.h, gradients.g.shape[1]
        rows, last = self._last_weight, self._last
        if rows is None or rows[0] is not m or rows[1] != n:
            rows = self._last_weight = m, n, n if m is None else int(m.sum())
            last = None
        if last is None or last[0] is not h:
            last = self._last = h, {}
        return multiplicity_of(gradients), rows[2], last[1]


def scales(gradients: Gradients, output: int, pool: ThreadPool) -> tuple[float, float]:
    """Scales of g and of h. Blocks are summed in order, so the result does not depend on the threads."""
    return Scales().of(gradients, output, pool)


def _scale(values: Array, m: Array, weight: float, bits: int, pool: ThreadPool) -> float:
    blocks = max(-(-len(values) // fixed_point.BLOCK), 1)
    if blocks == 1:
        scale = float(fixed_point.scale(values, m, weight, bits))
        if isnan(scale):
            raise InputError(NOT_FINITE)
        return scale
    out = np.zeros((blocks, 3))
    if pool.size == 1:
        fixed_point.extents(values, m, 0, blocks, out)
    else:
        pool.run(lambda part: fixed_point.extents(values, m, *share(blocks, part, pool.size), out))
    total, tops, multiplicities = 0.0, [], []
    for top, of_block, times in out.tolist():
        total += of_block
        tops.append(top)
        multiplicities.append(times)
    return fixed_point_scale(max(tops), total, max(multiplicities), weight, bits)


def pack(
    gradients: Gradients, output: int, pool: ThreadPool, in_parts: Share, packed: Array
) -> tuple[tuple[int, int], tuple[float, float]]:
    """Write (m,) packed integers; return their sums, and the value of one unit of g and of h."""
    g, h, m = gradients.g[output], gradients.h[output], multiplicity_of(gradients)
    if len(g) <= fixed_point.BLOCK:
        weight = float(len(g) if gradients.multiplicity is None else m.sum())
        scale_g, scale_h, sum_g, sum_h = fixed_point.scale_and_pack(g, h, m, weight, packed)
        if isnan(scale_g) or isnan(scale_h):
            raise InputError(NOT_FINITE)
        return (sum_g, sum_h), (1.0 / scale_g, 1.0 / scale_h)
    scale = scales(gradients, output, pool)
    totals = np.zeros((pool.size, LINE), np.int64)
    in_parts(len(g), lambda part, a, b: fixed_point.pack(g, h, m, *scale, a, b, packed, totals[part]))
    sums = totals.tolist()
    both = sum(part[0] for part in sums), sum(part[1] for part in sums)
    return both, (1.0 / scale[0], 1.0 / scale[1])


def leaf_sums(
    gradients: Gradients, output: int, leaf_of_row: Array, n_nodes: int, pool: ThreadPool, in_parts: Share,
    route: Route | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """(v,) exact G and H of each leaf, over all rows: ``leaf_integers`` times the value of their units."""
    total, units = leaf_integers(gradients, output, leaf_of_row, n_nodes, pool, in_parts, route)
    return total[:, 0] * units[0], total[:, 1] * units[1]


def leaf_integers(
    gradients: Gradients, output: int, leaf_of_row: Array, n_nodes: int, pool: ThreadPool, in_parts: Share,
    route: Route | None = None,
) -> tuple[Array, tuple[float, float]]:  # fmt: skip
    """(v, 2) int64 sums of g and h in each leaf, over all rows, and the value of one unit of each.

    ``route``, if given, writes ``leaf_of_row`` too.
    """
    g, h, m = gradients.g[output], gradients.h[output], multiplicity_of(gradients)
    scale = scales(gradients, output, pool)
    pairs, sums = (g, h, m, *scale), np.zeros((pool.size, n_nodes, 2), np.int64)

    def work(part: int, begin: int, end: int) -> None:
        if route is None:
            fixed_point.leaf_sums(*pairs, leaf_of_row, begin, end, sums[part])
        else:
            route(pairs, begin, end, sums[part])

    in_parts(len(g), work)
    return sums.sum(axis=0), (1.0 / scale[0], 1.0 / scale[1])


def leaf_counts(leaf_of_row: Array, n_nodes: int, pool: ThreadPool, in_parts: Share) -> Array:
    """(v,) int64 rows in each leaf."""
    counts = np.zeros((pool.size, n_nodes), np.int64)
    in_parts(len(leaf_of_row), lambda part, a, b: fixed_point.count_leaves(leaf_of_row, a, b, counts[part]))
    return counts.sum(axis=0)
