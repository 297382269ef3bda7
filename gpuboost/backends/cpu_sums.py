"""Gradients as integers on the CPU, and their sums: by the team, with the bits of ``fixed_point_scale``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuboost.backends.fixed_point import fixed_point_scale
from gpuboost.backends.team import Team, share
from gpuboost.backends.workspace import Workspace
from gpuboost.kernels import fixed_point
from gpuboost.types import Array, Gradients

NO_MULTIPLICITY = np.empty(0, np.int32)
LINE = 8  # numbers in a cache line, one line for each thread

Stretch = Callable[[int, int], None]
"""(begin, end): what to do with these rows"""

Share = Callable[[int, Callable[[int, int, int], object]], None]
"""(n, work): call work(part, begin, end) on stretches of n rows, at once if there are enough of them"""


def multiplicity_of(gradients: Gradients) -> Array:
    """(n,) int32, or (0,) for all ones."""
    return NO_MULTIPLICITY if gradients.multiplicity is None else gradients.multiplicity


def scales(gradients: Gradients, output: int, team: Team) -> tuple[float, float]:
    """Of g and of h. Blocks are summed in order, whoever measured them."""
    g, h, m = gradients.g[output], gradients.h[output], multiplicity_of(gradients)
    n = len(g)
    starts = range(0, max(n, 1), fixed_point.BLOCK)
    extents = np.zeros((len(starts), 2, 3))

    def measure(begin: int, end: int) -> None:
        for block in range(begin, end):
            a, b = starts[block], min(starts[block] + fixed_point.BLOCK, n)
            fixed_point.extent(g, m, a, b, extents[block, 0])
            fixed_point.extent(h, m, a, b, extents[block, 1])

    if len(starts) == 1 or team.size == 1:
        measure(0, len(starts))
    else:
        team.run(lambda part: measure(*share(len(starts), part, team.size)))
    weight = float(m.sum()) if len(m) else float(n)
    blocks = extents.tolist()
    return _scale([block[0] for block in blocks], weight, 31), _scale([block[1] for block in blocks], weight, 32)


def _scale(extents: list[list[float]], weight: float, bits: int) -> float:
    total = 0.0
    for _, block_total, _ in extents:
        total += block_total
    return fixed_point_scale(max(one[0] for one in extents), total, max(one[2] for one in extents), weight, bits)


def pack(
    gradients: Gradients, output: int, team: Team, in_parts: Share, workspace: Workspace
) -> tuple[Array, tuple[int, int], tuple[float, float]]:
    """(m,) packed integers, their sums, and the value of one unit of g and of h."""
    g, h, m = gradients.g[output], gradients.h[output], multiplicity_of(gradients)
    found = scales(gradients, output, team)
    packed = workspace.array("packed", g.shape, np.int64)
    totals = np.zeros((team.size, LINE), np.int64)
    in_parts(len(g), lambda part, a, b: fixed_point.pack(g, h, m, *found, a, b, packed, totals[part]))
    sums = totals.tolist()
    both = sum(part[0] for part in sums), sum(part[1] for part in sums)
    return packed, both, (1.0 / found[0], 1.0 / found[1])


def leaf_sums(
    gradients: Gradients, output: int, leaf_of_row: Array, n_nodes: int, team: Team, in_parts: Share,
    route: Callable[[int, int, Stretch], None] | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """(v,) exact G and H of each leaf, over all rows: ``leaf_integers`` times the value of their units."""
    total, units = leaf_integers(gradients, output, leaf_of_row, n_nodes, team, in_parts, route)
    return total[:, 0] * units[0], total[:, 1] * units[1]


def leaf_integers(
    gradients: Gradients, output: int, leaf_of_row: Array, n_nodes: int, team: Team, in_parts: Share,
    route: Callable[[int, int, Stretch], None] | None = None,
) -> tuple[Array, tuple[float, float]]:  # fmt: skip
    """(v, 2) int64 sums of g and h in each leaf, over all rows, and the value of one unit of each.

    ``route``, if given, is to write ``leaf_of_row`` first: it calls its last argument for each stretch that is done,
    whose rows are then added up while their leaves are still in the cache.
    """
    g, h, m = gradients.g[output], gradients.h[output], multiplicity_of(gradients)
    found = scales(gradients, output, team)
    sums = np.zeros((team.size, n_nodes, 2), np.int64)

    def work(part: int, begin: int, end: int) -> None:
        def add(a: int, b: int) -> None:
            fixed_point.leaf_sums(g, h, m, *found, leaf_of_row, a, b, sums[part])

        if route is None:
            add(begin, end)
        else:
            route(begin, end, add)

    in_parts(len(g), work)
    return sums.sum(axis=0), (1.0 / found[0], 1.0 / found[1])


def leaf_counts(leaf_of_row: Array, n_nodes: int, team: Team, in_parts: Share) -> Array:
    """(v,) int64 rows in each leaf."""
    counts = np.zeros((team.size, n_nodes), np.int64)
    in_parts(len(leaf_of_row), lambda part, a, b: fixed_point.count_leaves(leaf_of_row, a, b, counts[part]))
    return counts.sum(axis=0)
