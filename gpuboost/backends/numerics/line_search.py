"""Line search: the minimum of a convex function of one variable, or of several such functions at once.

Newton's method within a bracket of a length that is too short and one that is too long; until the upper end is known, a
step at most doubles the length. Where the function rises more steeply than it falls at 0, the bracket is bisected
instead: on losses that grow exponentially Newton's method comes back by a constant amount per step, and Friedman's
unguarded steps overflow.

Sums over rows are float64, since leaves have no common fixed-point scale. Their order is that of
``numerics.exact_sums.fixed_order_sum``, which a GPU can follow: over all rows, or over the rows of each group in order.
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
from gpuboost.types import Array, FittedTree, TrainingSet

if TYPE_CHECKING:
    from gpuboost.backends.protocol import Backend

MOST = 20  # evaluations
TOLERANCE = 1e-6  # relative change of the length at which the search ends

Vector: TypeAlias = NDArray[np.float64]

Slopes: TypeAlias = Callable[[Vector], tuple[Vector, Vector]]
"""(m,) lengths -> (m,) first and (m,) second derivatives there, maybe not finite"""


def along_tree(
    backend: Backend, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool
) -> FittedTree:
    """``Backend.line_search`` for a backend whose arrays are on the host."""
    if per_leaf and loss.leaf_quantile is not None:
        return backend.leaf_quantiles(tree, leaf_of_row, loss, scores, data)
    each = (leaf_of_row, len(tree.value)) if per_leaf else (None, 1)
    factors = lengths(backend, loss, scores, tree.output, tree.value[leaf_of_row], data, *each)
    return replace(tree, value=factors * tree.value + 0.0)  # + 0.0: no negative zero


def lengths(
    backend: Backend, loss: Loss, scores: Array, output: int, along: Vector, data: TrainingSet,
    group: Array | None = None, groups: int = 1,
) -> Vector:  # fmt: skip
    """(groups,) step lengths >= 0 that minimise the loss of all rows: F <- F + length[group] * along, of one output.

    scores (k, n); along (n,), of about the right length; group (n,) int, None for one length for all rows. The absolute
    and the quantile loss support only the latter: their leaves use ``Backend.leaf_quantiles``.
    """
    if loss.leaf_quantile is not None:
        assert group is None
        residual = data.target_of(output) - scores[output]
        return np.array([pinball(residual, along, data.row_weight(), loss.leaf_quantile)])
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
    """A function from (n,) numbers to their (groups,) sums, each in the order of the group's rows."""
    if group is None:
        return lambda x: np.array([pointwise.sum_in_order(x)])

    def add_up(x: Vector) -> Vector:
        out = np.empty(groups)
        group_sums.sums_in_order(x, group, out)
        return out

    return add_up


def minimise(slopes: Slopes, start: Vector) -> Vector:
    """(m,) lengths >= 0, to ``TOLERANCE``; 0 where the function does not fall at 0.

    start (m,): lengths to try first, positive; Newton's step from 0 replaces one that is more than twice as long. After
    ``MOST`` evaluations the result is the longest tried length at which the function still falls, so it is never worse
    than 0.
    """
    out, low, high = np.zeros(len(start)), np.zeros(len(start)), np.full(len(start), np.inf)
    at_0, curvature = slopes(out)
    active, rho = at_0 < 0.0, _first(at_0, curvature, start)
    for _ in range(MOST):
        if not active.any():
            break
        first, second = slopes(np.where(active, rho, out))
        short = first < 0.0  # and not where it is no number
        low, high = np.where(active & short, rho, low), np.where(active & ~short, rho, high)
        following = _next(rho, first, second, low, high, first > -at_0)
        done = (np.abs(following - rho) <= TOLERANCE * rho) | (first == 0.0)
        following = np.where(first == 0.0, rho, following)
        out = np.where(active, np.where(done, following, low), out)
        active, rho = active & ~done, following
    return out


def _first(first: Vector, second: Vector, start: Vector) -> Vector:
    """``start``, or Newton's step from 0 where that is positive and less than half as long."""
    with np.errstate(all="ignore"):
        newton = -first / second
    return np.where((newton > 0.0) & (newton < 0.5 * start), newton, start)


def _next(
    rho: Vector, first: Vector, second: Vector, low: Vector, high: Vector, is_steep: NDArray[np.bool_]
) -> Vector:  # fmt: skip
    """Newton's step if it stays within the bracket, else bisection; at most twice the length without an upper end.

    is_steep (m,): bisect in any case.
    """
    with np.errstate(all="ignore"):
        newton = rho - first / second
        usable = (second > 0.0) & np.isfinite(newton)
        inside = usable & (newton > low) & (newton < high) & ~is_steep
        between = np.where(inside, newton, 0.5 * (low + high))
        outward = np.where(usable & (newton > rho), np.minimum(newton, 2.0 * rho), 2.0 * rho)
    return np.where(np.isfinite(high), between, outward)


def pinball(residual: Vector, direction: Vector, weight: Vector, alpha: float) -> float:
    """The least rho >= 0 that minimises the weighted sum of the alpha-quantile loss of residual - rho direction.

    Breakpoints are residual / direction, weighted by weight |direction|; for alpha = 1/2 rho is their (lower) median.
    Weights become integers, so their sum does not depend on the order: the largest has 31 bits, and none is 0.
    """
    some = direction != 0.0
    if not some.any():
        return 0.0
    along, size = direction[some], weight[some] * np.abs(direction[some])
    kinks = residual[some] / along
    whole = np.maximum(np.rint(size * whole_scale(float(size.max()))), 1.0).astype(np.int64)
    order = np.argsort(kinks, kind="stable")
    reached = np.cumsum(whole[order])
    up, total = int(whole[along > 0.0].sum()), int(reached[-1])
    needed = alpha * float(up) + (1.0 - alpha) * float(total - up)
    return max(0.0, float(kinks[order[int(np.searchsorted(reached, min(max(ceil(needed), 1), total)))]]))


def whole_scale(largest: float) -> float:
    """The power of two that scales the largest weight to 2**30 .. 2**31."""
    return 2.0 ** min(31 - frexp(largest)[1], 1000)
