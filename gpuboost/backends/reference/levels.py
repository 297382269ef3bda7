"""Growth of plain trees by NumPy, several nodes at once: the trees of ``growth``, bit for bit.

Plain: every cut of every numeric feature competes, and leaf values are -G / (H + lambda) alone. A tree of a thousand
rows takes some milliseconds, a hundredth of the time of the definition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.reference import growth
from gpuboost.backends.reference.splits import NOISE
from gpuboost.keys import Key
from gpuboost.types import Array, Candidates, Cuts, Limits, Nodes, Structure, Target, TrainingSet

OF_ROW, OF_VALUE, OF_CELL, OF_STEP = 1e-6, 35e-9, 25e-9, 2e-4
"""Seconds for each row of a tree, for each value that a level reads, for each bin of each feature of each leaf, and for
each leaf that is split by itself"""
MOST_CELLS = 1 << 21
"""Bins of the features of a level's nodes together, up to which their sums and gains take some 200 MB"""

_NODE = np.dtype(
    [(name, np.int64) for name in ("g", "h", "count", "depth", "feature", "bin", "missing_left", "left", "right")]
    + [("gain", np.float64)]
)


def are_plain(cuts: Cuts, limits: Limits) -> bool:
    """True if NumPy grows such trees, with ``Candidates`` that are features only."""
    free = limits.interactions is None and limits.forced is None and limits.costs is None and not limits.bounded
    drawn = limits.extra_trees or limits.random_strength > 0.0
    return not limits.signed and free and not drawn and not cuts.is_categorical.any()


def are_small(n: int, cuts: Cuts, limits: Limits) -> bool:
    """True if NumPy has memory for such trees of n rows."""
    at_once: int = 2 if limits.growth == "leafwise" else _leaves(n, limits)
    return at_once * cuts.n_features * (int(cuts.n_bins.max(initial=0)) + 1) <= MOST_CELLS


def seconds(n: int, d: int, limits: Limits) -> float:
    """About the time that a tree of n rows and d features takes."""
    leaves = _leaves(n, limits)
    steps = leaves * (OF_STEP + n * 1e-8) if limits.growth == "leafwise" else 0.0
    return steps + n * (OF_ROW + d * min(limits.max_depth, leaves) * OF_VALUE) + leaves * d * 256 * OF_CELL


def _leaves(n: int, limits: Limits) -> int:
    leaves: int = min(limits.max_leaves, n, 2 ** min(limits.max_depth, 30))
    return leaves


def grow(
    data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits, key: Key | None = None
) -> Structure:
    """See ``Backend.grow``: by NumPy if the tree is plain."""
    every = candidates.root is None and candidates.by_node is None and candidates.cuts is None
    if not (every and are_plain(data.cuts, limits)) or candidates.chooses_by_more or key:
        return growth.grow(data, target, output, candidates, limits, key)
    tree = _Tree(data, target, output, candidates.features, limits)
    new = np.zeros(1, np.int64)
    while len(new):
        tree.find_splits(new)
        new = tree.split(tree.chosen())
    return tree.structure(target, output)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of g, h and rows of q nodes, by bins of d features."""

    left: Array  # (3, q, d, b) int64: of values up to each bin
    missing: Array  # (3, q, d): of missing values
    total: Array  # (3, q, 1, 1)

    def lefts(self, missing_left: int) -> Array:
        """(3, q, d, b) of the left side of each cut."""
        return self.left + self.missing[..., None] if missing_left else self.left

    @property
    def of_level(self) -> _Sums:
        """Those of all nodes together, as one."""
        return _Sums(*(sums.sum(axis=1, keepdims=True) for sums in (self.left, self.missing, self.total)))


class _Tree:
    """A growing tree: its nodes, and the node of each row. A node has its best split before it is split by it."""

    def __init__(self, data: TrainingSet, target: Target, output: int, features: Array, limits: Limits) -> None:
        self._g, self._h, self._units = integers(target.gradients, output)
        self._features, self._limits = features, limits
        self._n_bins = data.cuts.n_bins[features].astype(np.int64)
        bins = dense_rows(data.bins)
        self._bins = (bins if target.rows is None else bins[target.rows])[:, features].astype(np.int64)
        self._node_of_row = np.zeros(len(self._g), np.int64)
        self._nodes = np.zeros(1, _NODE)
        self._nodes["feature"] = -1
        for name, total in (("g", self._g.sum()), ("h", self._h.sum()), ("count", len(self._g))):
            self._nodes[name] = total

    def find_splits(self, new: Array) -> None:
        """Find the best split of each of these nodes, or, of a symmetric tree, of all of them together."""
        level = new[self._may_split(self._nodes[new])]
        if not len(level):
            return
        sums = self._sums_of(level)
        feature, bin, missing_left, gain = self._shared(sums) if self._limits.symmetric else self._own(sums)
        self._nodes["feature"][level], self._nodes["bin"][level] = feature, bin
        self._nodes["missing_left"][level], self._nodes["gain"][level] = missing_left, gain

    def chosen(self) -> Array:
        """The nodes to split next, increasing: those of the largest gains, the older one of equals first."""
        nodes, limits = self._nodes, self._limits
        can_be = np.flatnonzero((nodes["feature"] >= 0) & (nodes["left"] == 0))
        room = limits.max_leaves - (len(nodes) + 1) // 2
        if limits.symmetric:
            return can_be if len(can_be) <= room else can_be[:0]
        order = np.lexsort((can_be, -nodes["gain"][can_be]))
        return np.sort(can_be[order[: min(room, 1) if limits.growth == "leafwise" else room]])

    def split(self, chosen: Array) -> Array:
        """Split these nodes by their splits; the new nodes, whose numbers increase with those of their parents."""
        first = len(self._nodes)
        size = first + 2 * len(chosen)
        nodes = self._nodes = np.concatenate([self._nodes, np.zeros(size - first, _NODE)])
        left = np.arange(first, size, 2)
        nodes["left"][chosen], nodes["right"][chosen] = left, left + 1
        nodes["feature"][first:] = -1
        nodes["depth"][first:] = np.repeat(nodes["depth"][chosen] + 1, 2)
        rows = np.flatnonzero(nodes["left"][self._node_of_row] > 0)
        parent = nodes[self._node_of_row[rows]]
        feature = parent["feature"]
        code = self._bins[rows, feature]
        is_left = np.where(code == self._n_bins[feature], parent["missing_left"] == 1, code <= parent["bin"])
        child = self._node_of_row[rows] = np.where(is_left, parent["left"], parent["right"])
        for name, values in (("g", self._g[rows]), ("h", self._h[rows]), ("count", np.ones(len(rows)))):
            nodes[name][first:] = np.bincount(child, values, size)[first:]  # float64 holds these sums exactly
        return np.arange(first, size)

    def structure(self, target: Target, output: int) -> Structure:
        """The tree as every machine returns it."""
        nodes, (unit_g, unit_h), is_leaf = self._nodes, self._units, self._nodes["left"] == 0
        finished = Nodes(
            feature=np.where(is_leaf, -1, self._features[nodes["feature"]]).astype(np.int32),
            bin=np.where(is_leaf, 0, nodes["bin"]).astype(np.int32),
            missing_left=np.where(is_leaf, 0, nodes["missing_left"]).astype(np.bool_),
            left=nodes["left"].astype(np.int32),
            right=nodes["right"].astype(np.int32),
            gain=np.where(is_leaf, 0.0, nodes["gain"]),
            cover=nodes["h"] * unit_h,
            count=nodes["count"].copy(),
            left_set=np.zeros((len(nodes), 8), np.uint32),
        )
        sums = (nodes["g"] * unit_g, nodes["h"] * unit_h) if target.gives_leaf_sums else None
        leaves = self._node_of_row.astype(np.int32) if target.rows is None else None
        return Structure(finished, output, target.version, leaves, sums, weight=target.gradients.weight)

    def _may_split(self, nodes: Array) -> Array:
        """As ``growth.GrowingTree.may_split``."""
        limits = self._limits
        many = nodes["count"] >= 2 * limits.min_samples_leaf
        if limits.symmetric and limits.min_samples_leaf == 1:
            many[:] = True
        heavy = (nodes["h"] > 0) & (nodes["h"] * self._units[1] >= 2.0 * limits.min_child_weight)
        may: Array = (nodes["depth"] < limits.max_depth) & many & heavy
        return may

    def _sums_of(self, level: Array) -> _Sums:
        place = np.full(len(self._nodes), -1)
        place[level] = np.arange(len(level))
        rows = np.flatnonzero(place[self._node_of_row] >= 0)
        q, d, b = len(level), len(self._features), int(self._n_bins.max()) + 1
        cells = (place[self._node_of_row[rows]][:, None] * d + np.arange(d)) * b + self._bins[rows]
        cells, size = cells.ravel(), q * d * b
        sums = np.zeros((3, q, d, b), np.int64)
        for column, values in enumerate((self._g, self._h)):  # float64 holds these sums exactly
            sums[column] = np.bincount(cells, np.repeat(values[rows], d), size).reshape(q, d, b)
        if self._limits.min_samples_leaf > 1:
            sums[2] = np.bincount(cells, minlength=size).reshape(q, d, b)
        features, nodes = np.arange(d), self._nodes[level]
        missing = sums[:, :, features, self._n_bins].copy()
        sums[:, :, features, self._n_bins] = 0
        total = np.stack([nodes["g"], nodes["h"], nodes["count"]])[:, :, None, None]
        return _Sums(np.cumsum(sums, axis=3), missing, total)

    def _own(self, sums: _Sums) -> tuple[Array, ...]:
        """Feature, bin, side of missing values and gain of the best split of each node; feature -1 without one."""
        gains = [self._gains(sums.lefts(way), sums.total, real, -np.inf) for way, real in enumerate(self._cuts(sums))]
        parent = self._score(*sums.total[:2, :, 0, 0])
        least = np.maximum(self._limits.min_split_gain, NOISE * np.abs(parent))
        return self._best(np.stack(gains, axis=-1), least, sums)

    def _shared(self, sums: _Sums) -> tuple[Array, ...]:
        """The same, of the split that all share: the largest sum of gains, 0 for a node that may not have it."""
        level = sums.of_level
        gains = [
            np.where(real[0], _in_order(self._gains(sums.lefts(way), sums.total, real, 0.0)), -np.inf)
            for way, real in enumerate(self._cuts(level))
        ]
        parents = _in_order(self._score(*sums.total[:2, :, 0, 0]))
        least = np.maximum(self._limits.min_split_gain, NOISE * parents)
        found = self._best(np.stack(gains, axis=-1)[None], np.array([least]), level)
        feature, bin, missing_left, _ = (column[0] for column in found)
        if feature < 0:
            return found
        left = sums.lefts(missing_left)[:, :, feature, bin, None, None]
        gain = self._gains(left, sums.total, np.True_, 0.0)[:, 0, 0]
        return (*(np.full(len(gain), same) for same in (feature, bin, missing_left)), gain)

    def _best(self, gains: Array, least: Array, sums: _Sums) -> tuple[Array, ...]:
        """Find the first of the largest of (q, d, b, ways) gains that is above ``least`` (q,)."""
        q, d, _, ways = gains.shape
        flat = gains.reshape(q, d, -1)
        place = flat.argmax(axis=2)  # the first of equals: lower cuts, and missing values right, first
        best = np.take_along_axis(flat, place[..., None], axis=2)[..., 0]
        best = np.where(best > least[:, None], best, 0.0)
        feature, nodes = best.argmax(axis=1), np.arange(q)
        bin, way = np.divmod(place[nodes, feature], ways)
        left_h = sums.left[1, nodes, feature, bin]
        heavier = left_h > sums.total[1, :, 0, 0] - left_h
        missing_left = np.where(self._some_missing(sums)[nodes, feature], way == 1, heavier)
        gain = best[nodes, feature]
        return np.where(gain > 0.0, feature, -1), bin, missing_left.astype(np.int64), gain

    def _cuts(self, sums: _Sums) -> list[Array]:
        """(q, d, b) bool, of the cuts with missing values right and, if there are any, with them left."""
        some = self._some_missing(sums)[..., None]
        cut, last = np.arange(sums.left.shape[3]), self._n_bins[None, :, None]
        ways = [np.where(some, cut < last, cut < last - 1)]
        return [*ways, some & (cut < last - 1)] if some.any() else ways

    def _some_missing(self, sums: _Sums) -> Array:
        """(q, d) bool: a node has rows with missing values. Rows of g = h = 0 are seen where rows are counted."""
        seen = (sums.missing[0] != 0) | (sums.missing[1] != 0)
        return seen | (sums.missing[2] != 0) if self._limits.min_samples_leaf > 1 else seen

    def _gains(self, left: Array, total: Array, real: Array | np.bool_, without: float) -> Array:
        """Gains of the cuts that are real, by the sums on their left; ``without`` where a side is not allowed."""
        right = total - left
        allowed = real & self._allowed(left) & self._allowed(right)
        both = self._score(left[0][allowed], left[1][allowed]) + self._score(right[0][allowed], right[1][allowed])
        gains = np.full(allowed.shape, without)
        gains[allowed] = both - np.broadcast_to(self._score(*total[:2]), allowed.shape)[allowed]
        return gains

    def _allowed(self, side: Array) -> Array:
        limits = self._limits
        allowed = (side[1] > 0) & (side[1] * self._units[1] >= limits.min_child_weight)
        return allowed if limits.min_samples_leaf <= 1 else allowed & (side[2] >= limits.min_samples_leaf)

    def _score(self, g: Array, h: Array) -> Array:
        """As ``splits._score``, of arrays."""
        g = g * self._units[0]
        score: Array = g * g / (h * self._units[1] + self._limits.reg_lambda)
        return score


def _in_order(terms: Array) -> Array:
    """The sum of the terms (q, ...), one after the other from 0."""
    total = np.zeros(terms.shape[1:])
    for term in terms:
        total = total + term
    return total
