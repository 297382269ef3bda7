"""How far to go along a direction: the least of a convex function of one number, or of several at once.

Newton's method, kept between a point that is too short and one that is too far; until one is too far, a step at most
doubles the length. Friedman's unguarded steps overflow on losses that grow exponentially.

Sums over rows are of float64 numbers, since those of one leaf say nothing about those of another, and go in the order
of ``Reference.fixed_order_sum``, which a GPU can follow: over all rows, or over those of each group as they come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, frexp
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.kernels.gradients import pointwise
from gpuboost.kernels.leaves import group_sums
from gpuboost.losses.protocol import Loss
from gpuboost.types import Array, TrainingSet, Tree

if TYPE_CHECKING:
    from gpuboost.backends.protocol import Backend

MOST = 20  # evaluations
TOLERANCE = 1e-6  # relative change of the length at which it is good enough

Vector: TypeAlias = NDArray[np.float64]

Slopes: TypeAlias = Callable[[Vector], tuple[Vector, Vector]]
"""(m,) lengths -> (m,) first and (m,) second derivatives there, which need not be finite"""


def along_tree(
    backend: Backend, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool
) -> Tree:
    """``Backend.line_search``, by the verbs of a backend whose arrays are the host's."""
    if per_leaf and loss.leaf_quantile is not None:
        return backend.leaf_quantiles(tree, leaf_of_row, loss, scores, data)
    each = (leaf_of_row, len(tree.value)) if per_leaf else (None, 1)
    found = lengths(backend, loss, scores, tree.output, tree.value[leaf_of_row], data, *each)
    return replace(tree, value=found * tree.value + 0.0)  # + 0.0: no negative zero


def lengths(
    backend: Backend, loss: Loss, scores: Array, output: int, along: Vector, data: TrainingSet,
    group: Array | None = None, groups: int = 1,
) -> Vector:  # fmt: skip
    """(groups,) lengths >= 0 that lower the loss of all rows most: F <- F + length[group] * along, of one output.

    scores (k, n); along (n,), about as long as it should be; group (n,) int, None for one length of all rows, which is
    all that there is of the absolute and the quantile loss: of these the leaves have ``Backend.leaf_quantiles``.
    """
    if loss.leaf_quantile is not None:
        assert group is None
        return np.array([pinball(data.y - scores[output], along, data.row_weight(), loss.leaf_quantile)])
    return minimise(_slopes(backend, loss, scores, output, along, group, groups, data), np.ones(groups))


def _slopes(
    backend: Backend, loss: Loss, scores: Array, output: int, along: Vector, group: Array | None, groups: int,
    data: TrainingSet,
) -> Slopes:  # fmt: skip
    """Derivatives of the summed loss by the length, for the rows of each group."""
    add_up = _adder(group, groups)

    def slopes(rho: Vector) -> tuple[Vector, Vector]:
        trial = scores.copy()
        trial[output] += (rho[0] if group is None else rho[group]) * along
        gradients = backend.gradients(loss, trial, data, None)
        by = along if gradients.multiplicity is None else along * gradients.multiplicity
        with np.errstate(all="ignore"):  # too far may be where the loss is no number
            return add_up(gradients.g[output] * by), add_up(gradients.h[output] * (by * along))

    return slopes


def _adder(group: Array | None, groups: int) -> Callable[[Vector], Vector]:
    """What makes (groups,) sums of (n,) numbers: of each group's, in the order of its rows."""
    if group is None:
        return lambda x: np.array([pointwise.sum_in_order(x)])

    def add_up(x: Vector) -> Vector:
        out = np.empty(groups)
        group_sums.sums_in_order(x, group, out)
        return out

    return add_up


def minimise(slopes: Slopes, start: Vector) -> Vector:
    """(m,) lengths >= 0, to ``TOLERANCE``; 0 where the function does not fall at 0.

    start (m,): lengths to try first, positive. Where evaluations run out, the longest length from where the function
    still falls is returned, so that no result is worse than 0.
    """
    out, low, high, rho = np.zeros(len(start)), np.zeros(len(start)), np.full(len(start), np.inf), start.copy()
    active = slopes(out)[0] < 0.0
    for _ in range(MOST):
        if not active.any():
            break
        first, second = slopes(np.where(active, rho, out))
        short = first < 0.0  # and not where it is no number
        low, high = np.where(active & short, rho, low), np.where(active & ~short, rho, high)
        following = _next(rho, first, second, low, high)
        done = (np.abs(following - rho) <= TOLERANCE * rho) | (first == 0.0)
        following = np.where(first == 0.0, rho, following)
        out = np.where(active, np.where(done, following, low), out)
        active, rho = active & ~done, following
    return out


def _next(rho: Vector, first: Vector, second: Vector, low: Vector, high: Vector) -> Vector:
    """Newton's step if it stays inside, half the way if it does not, at most the double where there is no end yet."""
    with np.errstate(all="ignore"):
        newton = rho - first / second
        usable = (second > 0.0) & np.isfinite(newton)
        inside = usable & (newton > low) & (newton < high)
        between = np.where(inside, newton, 0.5 * (low + high))
        outward = np.where(usable & (newton > rho), np.minimum(newton, 2.0 * rho), 2.0 * rho)
    return np.where(np.isfinite(high), between, outward)


def pinball(residual: Vector, direction: Vector, weight: Vector, alpha: float) -> float:
    """The least rho >= 0 that minimises the alpha-quantile loss of residual - rho direction, summed with weights.

    Breakpoints are residual / direction, weighted by weight |direction|; for alpha = 1/2 it is their (lower) median.
    Weights become integers, so that a sum of them has no order: the largest has 31 bits, and none is 0.
    """
    some = direction != 0.0
    if not some.any():
        return 0.0
    along, size = direction[some], weight[some] * np.abs(direction[some])
    at, whole = residual[some] / along, np.maximum(np.rint(size * whole_scale(float(size.max()))), 1.0).astype(np.int64)
    order = np.argsort(at, kind="stable")
    reached = np.cumsum(whole[order])
    up, total = int(whole[along > 0.0].sum()), int(reached[-1])
    needed = alpha * float(up) + (1.0 - alpha) * float(total - up)
    return max(0.0, float(at[order[int(np.searchsorted(reached, min(max(ceil(needed), 1), total)))]]))


def whole_scale(largest: float) -> float:
    """The power of two that takes the largest weight to 2**30 .. 2**31."""
    return 2.0 ** min(31 - frexp(largest)[1], 1000)
