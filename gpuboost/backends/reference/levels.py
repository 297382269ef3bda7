"""Depth-wise growth of plain trees by NumPy, all nodes of a level at once: the trees of ``growth``, bit for bit.

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

OF_ROW, OF_VALUE, OF_CELL = 1e-6, 35e-9, 25e-9
"""Seconds for each row of a tree, for each value that a level reads, and for each bin of each feature of each leaf"""


def are_plain(cuts: Cuts, limits: Limits) -> bool:
    """True if a level at a time is the way to such trees, with ``Candidates`` that are features only."""
    free = limits.interactions is None and limits.forced is None and limits.costs is None and not limits.bounded
    drawn = limits.extra_trees or limits.random_strength > 0.0
    return limits.growth == "depthwise" and free and not drawn and not cuts.is_categorical.any()


def seconds(n: int, d: int, limits: Limits) -> float:
    """About the time that a tree of n rows and d features takes."""
    leaves: int = min(limits.max_leaves, n, 2 ** min(limits.max_depth, 30))
    return n * (OF_ROW + d * min(limits.max_depth, leaves) * OF_VALUE) + leaves * d * 256 * OF_CELL


def grow(
    data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits, key: Key | None = None
) -> Structure:
    """See ``Backend.grow``: a tree that is plain, fitted to every row."""
    every = candidates.root is None and candidates.by_node is None and candidates.cuts is None
    if not (every and are_plain(data.cuts, limits)) or candidates.chooses_by_more or key or target.rows is not None:
        return growth.grow(data, target, output, candidates, limits, key)
    tree = _Levels(data, target, output, candidates, limits)
    while tree.split_level():
        pass
    return tree.structure(target, output)


@dataclass(frozen=True, slots=True)
class _Splits:
    """The best split of each node of a level: (q,) arrays. A node without one has gain 0."""

    feature: Array
    bin: Array
    missing_left: Array
    gain: Array


class _Levels:
    """A growing tree, as one array per column of its node table."""

    def __init__(self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits) -> None:
        self._g, self._h, self._units = integers(target.gradients, output)
        self._features, self._limits, self._weight = candidates.features, limits, target.gradients.weight
        self._n_bins = data.cuts.n_bins[self._features].astype(np.int64)
        self._bins = dense_rows(data.bins)[:, self._features].astype(np.int64)
        self._node_of_row = np.zeros(data.n_rows, np.int64)
        self._first, self._depth, self._size = 0, 0, 1  # nodes of the last level are _first .. _size - 1
        max_nodes = 2 * limits.max_leaves - 1 if limits.max_leaves < data.n_rows else 2 * data.n_rows - 1
        self._sums = np.zeros((3, max_nodes + 2), np.int64)  # g, h and number of rows
        self._sums[:, 0] = self._g.sum(), self._h.sum(), data.n_rows
        names = ("feature", "bin", "missing_left", "left", "right")
        self._columns = {name: np.zeros(max_nodes + 2, np.int64) for name in names}
        self._columns["feature"][:] = -1
        self._gain = np.zeros(max_nodes + 2)

    def split_level(self) -> bool:
        """Split nodes of the last level, the largest gains first if there is no room for all. False if none is."""
        limits, level = self._limits, np.arange(self._first, self._size)
        _, h, count = self._sums[:, level]
        may = (h > 0) & (count >= 2 * limits.min_samples_leaf) & (h * self._units[1] >= 2.0 * limits.min_child_weight)
        level = level[may]
        if self._depth >= limits.max_depth or not len(level):
            return False
        splits = self._best_of(level)
        gaining = np.flatnonzero(splits.gain > 0.0)
        order = gaining[np.lexsort((level[gaining], -splits.gain[gaining]))]
        chosen = np.sort(order[: limits.max_leaves - (self._size + 1) // 2])
        if not len(chosen):
            return False
        self._make(level[chosen], splits, chosen)
        return True

    def _best_of(self, level: Array) -> _Splits:
        limits, (unit_g, unit_h), (q, d) = self._limits, self._units, (len(level), len(self._features))
        sums, missing = self._histograms(level)
        total = self._sums[:, level][:, :, None, None]  # (3, q, 1, 1)
        some_missing = (missing[0] != 0) | (missing[1] != 0)
        if limits.min_samples_leaf > 1:
            some_missing |= missing[2] != 0
        left = np.cumsum(sums, axis=3)  # (3, q, d, b)
        cut, last = np.arange(left.shape[3]), self._n_bins[None, :, None]
        exists = np.where(some_missing[:, :, None], cut < last, cut < last - 1)
        sides = [(left, exists)]
        if some_missing.any():
            sides.append((left + missing[..., None], some_missing[:, :, None] & (cut < last - 1)))
        parent = _score(total[0] * unit_g, total[1] * unit_h, limits.reg_lambda)
        gains = np.full((*exists.shape, len(sides)), -np.inf)
        for way, (lefts, real) in enumerate(sides):
            rights = total - lefts
            allowed = real & self._allowed(lefts) & self._allowed(rights)
            both = _score(lefts[0][allowed] * unit_g, lefts[1][allowed] * unit_h, limits.reg_lambda)
            both += _score(rights[0][allowed] * unit_g, rights[1][allowed] * unit_h, limits.reg_lambda)
            gains[..., way][allowed] = both - np.broadcast_to(parent, allowed.shape)[allowed]
        flat = gains.reshape(q, d, -1)
        place = flat.argmax(axis=2)  # the first of equals: lower cuts, and missing values right, first
        best = np.take_along_axis(flat, place[..., None], axis=2)[..., 0]
        least = np.maximum(limits.min_split_gain, NOISE * np.abs(parent[:, 0]))
        best = np.where(best > least, best, 0.0)
        feature, nodes = best.argmax(axis=1), np.arange(q)
        bin, way = np.divmod(place[nodes, feature], len(sides))
        left_h = left[1, nodes, feature, bin]
        heavier = left_h > self._sums[1, level] - left_h
        missing_left = np.where(some_missing[nodes, feature], way == 1, heavier)
        return _Splits(feature, bin, missing_left, best[nodes, feature])

    def _histograms(self, level: Array) -> tuple[Array, Array]:
        """(3, q, d, b) int64 sums of g, h and rows by bins of values, and (3, q, d) of missing ones."""
        place = np.full(self._size, -1)
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
        features = np.arange(d)
        missing = sums[:, :, features, self._n_bins].copy()
        sums[:, :, features, self._n_bins] = 0
        return sums, missing

    def _allowed(self, side: Array) -> Array:
        limits = self._limits
        allowed = (side[1] > 0) & (side[1] * self._units[1] >= limits.min_child_weight)
        return allowed if limits.min_samples_leaf <= 1 else allowed & (side[2] >= limits.min_samples_leaf)

    def _make(self, nodes: Array, splits: _Splits, chosen: Array) -> None:
        """Split these nodes, which have the splits ``chosen``: numbers of children increase with those of parents."""
        left = self._size + 2 * np.arange(len(nodes))
        columns = self._columns
        columns["feature"][nodes], columns["bin"][nodes] = splits.feature[chosen], splits.bin[chosen]
        columns["missing_left"][nodes] = splits.missing_left[chosen]
        columns["left"][nodes], columns["right"][nodes] = left, left + 1
        self._gain[nodes] = splits.gain[chosen]
        rows = np.flatnonzero(columns["left"][self._node_of_row] > 0)
        of = self._node_of_row[rows]
        feature = columns["feature"][of]
        code = self._bins[rows, feature]
        is_left = np.where(code == self._n_bins[feature], columns["missing_left"][of] == 1, code <= columns["bin"][of])
        child = np.where(is_left, columns["left"][of], columns["right"][of])
        self._node_of_row[rows] = child
        self._first, self._size = self._size, self._size + 2 * len(nodes)
        self._depth += 1
        for column, values in enumerate((self._g[rows], self._h[rows], np.ones(len(rows)))):
            sums = np.bincount(child, values, self._size)[self._first :]
            self._sums[column, self._first : self._size] = sums

    def structure(self, target: Target, output: int) -> Structure:
        v, columns, (unit_g, unit_h) = self._size, self._columns, self._units
        g, h, count = self._sums[:, :v]
        local = columns["feature"][:v]
        nodes = Nodes(
            feature=np.where(local < 0, -1, self._features[local]).astype(np.int32),
            bin=columns["bin"][:v].astype(np.int32),
            missing_left=columns["missing_left"][:v].astype(np.bool_),
            left=columns["left"][:v].astype(np.int32),
            right=columns["right"][:v].astype(np.int32),
            gain=self._gain[:v].copy(),
            cover=h * unit_h,
            count=count.copy(),
            left_set=np.zeros((v, 8), np.uint32),
        )
        sums = (g * unit_g, h * unit_h) if target.gives_leaf_sums else None
        leaves = self._node_of_row.astype(np.int32)
        return Structure(nodes, output, target.version, leaves, sums, weight=self._weight)


def _score(g: Array, h: Array, ridge: float) -> Array:
    """As ``splits._score``, of arrays."""
    score: Array = g * g / (h + ridge)
    return score
