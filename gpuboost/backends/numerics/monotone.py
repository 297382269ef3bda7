"""Values of nodes: monotonic constraints, the bounds between which leaf values must lie, and path smoothing.

A split on a constrained feature bounds the values of its two sides by the midpoint between them, and every later leaf
keeps to the bound of its side. So each tree is monotone, and so is their sum, to the last bit (LightGBM's "basic"
method; scikit-learn and XGBoost do the same).

Path smoothing draws the value of a node to that of the node above: w own + (1 - w) above, where w = n / (n + s) for n
rows. Rows are estimated by their share of the curvature, so w = H / (H + S), and S is the curvature of s average rows
(``Limits.smoothing``). LightGBM's search estimates rows so, too. The root has its own value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from gpuboost.records import dataclass
from gpuboost.types import Cuts, FittedTree, Limits

FREE = -inf, inf  # the bounds of a root


@dataclass(frozen=True, slots=True)
class NodeBounds:
    """A node's bounds, and the direction of every feature: see ``of_features``.

    ``alpha``: G is brought nearer to 0 by so much before all else (``soft_threshold``), which minimises the loss with
    alpha |value| added (XGBoost and LightGBM; there as here). smoothing: S, 0 without path smoothing; above: the value
    of the node itself, to which those of its sides are drawn.
    """

    low: float
    high: float
    directions: NDArray[np.int64]
    alpha: float = 0.0
    smoothing: float = 0.0
    above: float = 0.0

    def value(self, g: float, h: float, ridge: float) -> float:
        """-G / (H + lambda), clipped to the bounds and smoothed; 0 without rows."""
        value = clipped(-soft_threshold(g, self.alpha) / (h + ridge) if h + ridge > 0.0 else 0.0, self.low, self.high)
        if not self.smoothing > 0.0:
            return value
        return clipped(smoothed(value, h, self.smoothing, self.above), self.low, self.high)

    def score(self, g: float, h: float, ridge: float) -> float:
        """Twice the loss reduction of a side with that value: G^2 / (H + lambda) if it is neither clipped nor smoothed.

        Of the node itself it is that of a side that has all of its rows: to send all to one side gains nothing.
        """
        if self.smoothing > 0.0:
            return score_of(self.value(g, h, ridge), soft_threshold(g, self.alpha), h + ridge)
        g, below = soft_threshold(g, self.alpha), h + ridge
        free = -g / below
        if self.low <= free <= self.high:
            return g * g / below
        return score_of(clipped(free, self.low, self.high), g, below)

    def both(self, feature: int, left: tuple[float, float], right: tuple[float, float], ridge: float) -> float:
        """Twice the loss reduction of two leaves with these (G, H); -inf if they violate the feature's constraint."""
        direction = int(self.directions[feature])
        if direction != 0 and direction * (self.value(*left, ridge) - self.value(*right, ridge)) > 0.0:
            return -inf
        return self.score(*left, ridge) + self.score(*right, ridge)

    def children(self, feature: int, left: float, right: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Bounds of both children, given their values."""
        return parted(int(self.directions[feature]), self.low, self.high, left, right)


def of_features(directions: Sequence[int] | None, cuts: Cuts) -> NDArray[np.int64]:
    """(d,) the direction of each feature, from that of its column; 0 for all if there are none."""
    return np.zeros(cuts.n_features, np.int64) if directions is None else np.array(directions, np.int64)[cuts.columns]


def soft_threshold(g: float, alpha: float) -> float:
    """G brought nearer to 0 by alpha, and 0 if it is not further from it."""
    return g - alpha if g > alpha else g + alpha if g < -alpha else 0.0


def smoothed(own: float, h: float, smoothing: float, above: float) -> float:
    """A node's own value drawn to that of the node above. h: curvature of its rows; smoothing: S, above 0."""
    return (h * own + smoothing * above) / (h + smoothing)


def score_of(value: float, g: float, below: float) -> float:
    """Twice the loss reduction of a leaf with this value. below: H + lambda."""
    return -(value * (g + g + below * value))


def clipped(value: float, low: float, high: float) -> float:
    """The value, clipped to the bounds."""
    return low if value < low else high if value > high else value


def parted(
    direction: int, low: float, high: float, left: float, right: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bounds of the children of a node, given the values of both."""
    if direction == 0:
        return (low, high), (low, high)
    middle = (left + right) / 2.0
    return ((low, middle), (middle, high)) if direction > 0 else ((middle, high), (low, middle))


def bound_leaves(tree: FittedTree, cuts: Cuts, limits: Limits, *, refined: bool) -> FittedTree:
    """See ``Backend.bound_leaves``. Lambda does not apply to leaf values that took a step of their own."""
    assert limits.directions is not None
    directions = of_features(limits.directions, cuts)
    if refined and in_order(tree, directions):
        return tree
    return held(tree, directions, 0.0 if refined else limits.reg_lambda)


def held(tree: FittedTree, directions: NDArray[np.int64], ridge: float) -> FittedTree:
    """The tree with each leaf value clipped to the leaf's bounds, after a change of values.

    Bounds are computed from the current values: a node's value is the sum of its leaves' values, each times H + ridge,
    over H + ridge of the node. If leaf values are -G / (H + lambda), so is the node's, and the bounds are those of the
    growth of the tree.
    """
    nodes, value = tree.nodes, tree.value.tolist()
    feature, left, right = nodes.feature.tolist(), nodes.left.tolist(), nodes.right.tolist()
    h = nodes.cover.tolist()
    minus_g = [node_value * (cover + ridge) for node_value, cover in zip(value, h, strict=True)]
    for v in range(len(value) - 1, -1, -1):  # children come after their parent
        if feature[v] >= 0:
            minus_g[v], h[v] = minus_g[left[v]] + minus_g[right[v]], h[left[v]] + h[right[v]]
    bounds = [FREE] * len(value)
    for v, f in enumerate(feature):
        if f < 0:
            value[v] = clipped(value[v], *bounds[v])
            continue
        within = NodeBounds(*bounds[v], directions)
        of_children = (within.value(-minus_g[child], h[child], ridge) for child in (left[v], right[v]))
        bounds[left[v]], bounds[right[v]] = within.children(f, *of_children)
    return replace(tree, value=np.array(value) + 0.0)


def in_order(tree: FittedTree, directions: NDArray[np.int64]) -> bool:
    """True if at every split on a constrained feature all leaves of the two sides obey the constraint."""
    nodes, least, largest = tree.nodes, tree.value.tolist(), tree.value.tolist()
    for v in range(len(least) - 1, -1, -1):
        f = int(nodes.feature[v])
        if f < 0:
            continue
        left, right, direction = int(nodes.left[v]), int(nodes.right[v]), int(directions[f])
        if (direction > 0 and largest[left] > least[right]) or (direction < 0 and least[left] < largest[right]):
            return False
        least[v], largest[v] = min(least[left], least[right]), max(largest[left], largest[right])
    return True
