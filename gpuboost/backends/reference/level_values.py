"""Leaf values and scores by NumPy, of several nodes at once: those of ``numerics.monotone.NodeBounds``.

G and H are arrays; the operations and their order are those of ``NodeBounds``, so the numbers have the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from gpuboost.backends.numerics.monotone import of_features
from gpuboost.types import Array, Cuts, Limits

GH: TypeAlias = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class FreeValues:
    """Values -G / (H + lambda)."""

    def at(self, where: Array) -> FreeValues:
        """The rules for the candidates at these places."""
        return self

    def score(self, g: Array, h: Array, ridge: Array) -> Array:
        """Twice the loss reduction of leaves."""
        score: Array = g * g / (h + ridge)
        return score

    def both(self, left: GH, right: GH, ridge: Array) -> Array:
        """Twice the loss reduction of both sides of splits."""
        return self.score(*left, ridge) + self.score(*right, ridge)


@dataclass(frozen=True, slots=True)
class BoundedValues:
    """Values within bounds, and directions of features. Arrays are of shapes that broadcast to that of the sums."""

    low: Array
    high: Array
    above: Array
    directions: Array  # int64
    alpha: float
    smoothing: float

    def at(self, where: Array) -> BoundedValues:
        """The rules for the candidates at these places."""
        low, high, above, directions = (
            np.broadcast_to(values, where.shape)[where] for values in (self.low, self.high, self.above, self.directions)
        )
        return replace(self, low=low, high=high, above=above, directions=directions)

    def score(self, g: Array, h: Array, ridge: Array) -> Array:
        """As ``NodeBounds.score``."""
        own, soft, below = self._own(g, h, ridge), self._soft(g), h + ridge
        if self.smoothing > 0.0:
            return _score_of(self._drawn(self._held(own), h), soft, below)
        inside = (self.low <= own) & (own <= self.high)
        return np.where(inside, soft * soft / below, _score_of(self._held(own), soft, below))

    def both(self, left: GH, right: GH, ridge: Array) -> Array:
        """As ``NodeBounds.both``, with the direction of each candidate's feature."""
        both = self.score(*left, ridge) + self.score(*right, ridge)
        if not self.directions.any():
            return both
        apart = self.value(*left, ridge) - self.value(*right, ridge)
        return np.where((self.directions != 0) & (self.directions * apart > 0.0), -np.inf, both)

    def value(self, g: Array, h: Array, ridge: Array) -> Array:
        """As ``NodeBounds.value``."""
        value = self._held(self._own(g, h, ridge))
        return self._drawn(value, h) if self.smoothing > 0.0 else value

    def children(self, left: Array, right: Array) -> tuple[GH, GH]:
        """Lower and upper bounds of the left and of the right children, given the values of both."""
        rises, falls, middle = self.directions > 0, self.directions < 0, (left + right) / 2.0
        of_left = np.where(falls, middle, self.low), np.where(rises, middle, self.high)
        return of_left, (np.where(rises, middle, self.low), np.where(falls, middle, self.high))

    def _own(self, g: Array, h: Array, ridge: Array) -> Array:
        """-G / (H + lambda) before all bounds; 0 without rows."""
        below = h + ridge
        return np.divide(-self._soft(g), below, out=np.zeros(np.broadcast(g, below).shape), where=below > 0.0)

    def _soft(self, g: Array) -> Array:
        return np.where(g > self.alpha, g - self.alpha, np.where(g < -self.alpha, g + self.alpha, 0.0))

    def _held(self, value: Array) -> Array:
        return np.where(value < self.low, self.low, np.where(value > self.high, self.high, value))

    def _drawn(self, value: Array, h: Array) -> Array:
        """Values drawn to those of the nodes above."""
        return self._held((h * value + self.smoothing * self.above) / (h + self.smoothing))


LeafValues: TypeAlias = FreeValues | BoundedValues
FREE = FreeValues()


def _score_of(value: Array, g: Array, below: Array) -> Array:
    score: Array = -(value * (g + g + below * value))
    return score


class TreeValues:
    """Bounds and values of the nodes of a growing tree, records with the fields ``low``, ``high`` and ``value``."""

    def __init__(
        self, limits: Limits, cuts: Cuts, features: Array, units: tuple[float, float], root: Array, weight: int
    ) -> None:
        """root: (1,) the record of the root, which gets its bounds. weight: sum of the multiplicities of the rows."""
        self._limits, self._units = limits, units
        self._directions = of_features(limits.directions, cuts)[features]
        if not limits.bounded:
            return
        root["low"], root["high"] = -limits.largest_value, limits.largest_value
        self._smoothing = 0.0
        if limits.path_smooth > 0.0:
            root["value"] = self._of(root, self._directions[:1]).value(
                *self._measured(root), np.float64(limits.reg_lambda)
            )
            self._smoothing = limits.smoothing(float(root["h"][0] * units[1]), weight)

    def of_level(self, nodes: Array, part: slice) -> FreeValues | BoundedValues:
        """The rules for the sides of splits (q, d, .) of these nodes and features."""
        if not self._limits.bounded:
            return FREE
        # nodes that share a split have the bounds of the splits above, but any of their splits may be shared
        directions = np.zeros(1, np.int64) if self._limits.symmetric else self._directions[part]
        return self._of(nodes[:, None, None], directions[None, :, None])

    def can_differ(self, nodes: Array) -> Array:
        """True for nodes below which leaves may have several values."""
        if self._limits.symmetric or not self._limits.bounded:
            return np.ones(len(nodes), np.bool_)
        differ: Array = nodes["low"] < nodes["high"]
        return differ

    def pass_on(self, nodes: Array, chosen: Array) -> None:
        """Give the children of these nodes their values and bounds."""
        if not self._limits.bounded:
            return
        parents = nodes[chosen]
        rules, sides = self._of(parents, self._directions[parents["feature"]]), (parents["left"], parents["right"])
        ridge = np.float64(self._limits.reg_lambda)
        values = [rules.value(*self._measured(nodes[side]), ridge) for side in sides]
        for side, value, (low, high) in zip(sides, values, rules.children(*values), strict=True):
            nodes["value"][side], nodes["low"][side], nodes["high"][side] = value, low, high

    def _measured(self, nodes: Array) -> GH:
        return nodes["g"] * self._units[0], nodes["h"] * self._units[1]

    def _of(self, nodes: Array, directions: Array) -> BoundedValues:
        low, high, above = nodes["low"], nodes["high"], nodes["value"]
        return BoundedValues(low, high, above, directions, self._limits.reg_alpha, self._smoothing)
