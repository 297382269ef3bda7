"""Growth of trees by NumPy, several nodes at once: the trees of ``growth``, bit for bit.

A tree of a thousand rows takes some milliseconds, a hundredth of the time of the definition.
"""

from __future__ import annotations

import numpy as np

from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.reference import growth
from gpuboost.backends.reference.level_candidates import CutCandidates, GainRules, SetCandidates
from gpuboost.backends.reference.level_choice import FeatureChoice, NodeFeatures, Searched
from gpuboost.backends.reference.level_values import FREE, TreeValues
from gpuboost.backends.reference.splits import NOISE
from gpuboost.keys import Key
from gpuboost.types import Array, Candidates, Cuts, Limits, Nodes, Structure, Target, TrainingSet

OF_ROW, OF_VALUE, OF_CELL, OF_STEP = 1e-6, 35e-9, 25e-9, 2e-4
"""Seconds for each row of a tree, for each value that a level reads, for each bin of each feature of each leaf, and for
each leaf that is split by itself"""
OF_BOUNDS = 3  # times a cell's seconds where leaf values have bounds
MOST_CELLS = 1 << 21
"""Bins of the features of a level's nodes together, up to which their sums and gains take some 200 MB"""

_NODE = np.dtype(
    [(name, np.int64) for name in ("g", "h", "count", "depth", "feature", "bin", "missing_left", "left", "right")]
    + [(name, np.float64) for name in ("gain", "low", "high", "value")]
    + [("left_set", np.uint32, 8)]
)


def are_plain(limits: Limits) -> bool:
    """True if NumPy grows such trees, with ``Candidates`` that have no cuts of the root."""
    return not limits.signed and limits.forced is None


def are_small(n: int, cuts: Cuts, limits: Limits) -> bool:
    """True if NumPy has memory for such trees of n rows."""
    at_once: int = 2 if limits.growth == "leafwise" else _leaves(n, limits)
    return at_once * cuts.n_features * (int(cuts.n_bins.max(initial=0)) + 1) <= MOST_CELLS


def seconds(n: int, d: int, limits: Limits) -> float:
    """About the time that a tree of n rows and d features takes."""
    leaves = _leaves(n, limits)
    steps = leaves * (OF_STEP + n * 1e-8) if limits.growth == "leafwise" else 0.0
    of_cell = OF_CELL * (OF_BOUNDS if limits.bounded else 1)
    return steps + n * (OF_ROW + d * min(limits.max_depth, leaves) * OF_VALUE) + leaves * d * 256 * of_cell


def _leaves(n: int, limits: Limits) -> int:
    leaves: int = min(limits.max_leaves, n, 2 ** min(limits.max_depth, 30))
    return leaves


def grow(
    data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits, key: Key | None = None
) -> Structure:
    """See ``Backend.grow``: several nodes at once but for sign stumps, forced splits and drawn cuts of the root."""
    if candidates.root is not None or not are_plain(limits) or key:
        return growth.grow(data, target, output, candidates, limits, key)
    tree = _Tree(data, target, output, candidates, limits)
    new = np.zeros(1, np.int64)
    while len(new):
        tree.find_splits(new)
        new = tree.split(tree.chosen())
    return tree.structure(target, output)


class _Tree:
    """A growing tree: its nodes, and the node of each row. A node has its best split before it is split by it."""

    def __init__(self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits) -> None:
        features = candidates.features
        self._g, self._h, self._units = integers(target.gradients, output)
        categorical, d = data.cuts.is_categorical[features], len(features)
        numeric_first = np.argsort(categorical, kind="stable")
        self._places = np.argsort(numeric_first)  # of the features, increasing
        self._features, self._limits = features[numeric_first], limits
        self._n_numeric = int(np.count_nonzero(~categorical))
        kinds = (CutCandidates, slice(0, self._n_numeric)), (SetCandidates, slice(self._n_numeric, d))
        self._kinds = [(kind, part) for kind, part in kinds if part.start < part.stop]
        self._n_bins = data.cuts.n_bins[self._features].astype(np.int64)
        bins = dense_rows(data.bins)
        self._bins = (bins if target.rows is None else bins[target.rows])[:, self._features].astype(np.int64)
        self._node_of_row = np.zeros(len(self._g), np.int64)
        self._nodes = np.zeros(1, _NODE)
        self._nodes["feature"] = -1
        for name, total in (("g", self._g.sum()), ("h", self._h.sum()), ("count", len(self._g))):
            self._nodes[name] = total
        rows_per_h, weight = target.gradients.weight / max(int(self._nodes["h"][0]), 1), target.gradients.weight
        self._rules, self._choice = (
            GainRules(self._units, limits, rows_per_h),
            FeatureChoice(candidates, limits, output, rows_per_h),
        )
        self._node_features = NodeFeatures(candidates, limits, data.cuts)
        self._values = TreeValues(limits, data.cuts, self._features, self._units, self._nodes, weight)

    def find_splits(self, new: Array) -> None:
        """Find the best split of each of these nodes, or, of a symmetric tree, of all of them together."""
        level = new[self._may_split(self._nodes[new])]
        if not len(level):
            return
        found = self._shared(level) if self._limits.symmetric else self._own(level)
        for name, values in zip(("feature", "bin", "missing_left", "left_set", "gain"), found, strict=True):
            self._nodes[name][level] = values

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
        if self._n_numeric < len(self._features):
            in_set = np.flatnonzero((feature >= self._n_numeric) & (code < self._n_bins[feature]))
            is_left[in_set] = _in_set(parent["left_set"][in_set], code[in_set])
        child = self._node_of_row[rows] = np.where(is_left, parent["left"], parent["right"])
        for name, values in (("g", self._g[rows]), ("h", self._h[rows]), ("count", np.ones(len(rows)))):
            nodes[name][first:] = np.bincount(child, values, size)[first:]  # float64 holds these sums exactly
        self._values.pass_on(nodes, chosen)
        self._node_features.pass_on(chosen, self._features[nodes["feature"][chosen]])
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
            left_set=np.where(is_leaf[:, None], np.uint32(0), nodes["left_set"]),
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
        may: Array = (nodes["depth"] < limits.max_depth) & many & heavy & self._values.can_differ(nodes)
        return may

    def _sums_of(self, level: Array) -> tuple[Array, Array]:
        """Sums of these nodes by bins (s, q, d, b), and of all their rows (s, q, 1, 1)."""
        place = np.full(len(self._nodes), -1)
        place[level] = np.arange(len(level))
        rows = np.flatnonzero(place[self._node_of_row] >= 0)
        q, d, b = len(level), len(self._features), int(self._n_bins.max()) + 1
        cells = (place[self._node_of_row[rows]][:, None] * d + np.arange(d)) * b + self._bins[rows]
        cells, size = cells.ravel(), q * d * b
        names = ("g", "h", "count") if self._rules.counts else ("g", "h")
        sums = np.empty((len(names), size), np.int64)
        for column, values in enumerate((self._g, self._h)):  # float64 holds these sums exactly
            sums[column] = np.bincount(cells, np.repeat(values[rows], d), size)
        if self._rules.counts:
            sums[2] = np.bincount(cells, minlength=size)
        total = np.stack([self._nodes[name][level] for name in names])
        return sums.reshape(-1, q, d, b), total[:, :, None, None]

    def _own(self, level: Array) -> tuple[Array, ...]:
        """Feature, bin, side of missing values, left set and gain of each node's best split; feature -1 without one."""
        (sums, total), nodes = self._sums_of(level), self._nodes[level]
        searched = Searched(level, nodes["depth"], (nodes["g"], nodes["h"]), total)
        kinds, gains, least = self._candidates(sums, searched), list[Array](), list[Array]()
        for kind, (_, part) in zip(kinds, self._kinds, strict=True):
            values, measured = self._values.of_level(nodes, part), self._rules.measured(total)
            gains.append(self._rules.gains(kind.own, total, kind.real, kind.ridge, values, -np.inf))
            parents = [np.abs(rules.score(*measured, kind.ridge))[..., 0] for rules in (values, FREE)]
            least.append(np.maximum(self._limits.min_split_gain, NOISE * np.maximum(*parents)))
        return self._best(kinds, gains, least, searched)

    def _shared(self, level: Array) -> tuple[Array, ...]:
        """The same, of the split that all share: the largest sum of gains, 0 for a node that may not have it."""
        (sums, total), nodes = self._sums_of(level), self._nodes[level]
        one, depth = level[:1], nodes["depth"][:1]  # what holds for one node holds for all
        searched = Searched(one, depth, (depth, np.zeros_like(depth)), total.sum(axis=1, keepdims=True))
        kinds = self._candidates(sums.sum(axis=1, keepdims=True), searched)
        gains, least = list[Array](), list[Array]()
        values = self._values.of_level(nodes, slice(0, 0))
        for kind, (_, part) in zip(kinds, self._kinds, strict=True):
            of_nodes = self._rules.gains(kind.lefts(sums[:, :, part]), total, kind.real, kind.ridge, values, 0.0)
            gains.append(np.where(kind.real, _in_order(of_nodes), -np.inf))
            parents = _in_order(values.score(*self._rules.measured(total), kind.ridge)[..., 0])
            least.append(np.maximum(self._limits.min_split_gain, NOISE * parents)[None])
        found = self._best(kinds, gains, least, searched)
        feature, bin, missing_left, left_set = (column[0] for column in found[:4])
        if feature < 0:
            return found
        codes, is_set = np.arange(sums.shape[3]), feature >= self._n_numeric
        is_left = _in_set(left_set, codes) if is_set else codes <= bin
        is_left[self._n_bins[feature]] = missing_left
        left = sums[:, :, feature, is_left].sum(axis=2)[..., None, None]
        ridge = kinds[-1].ridge[:, feature - self._n_numeric, None] if is_set else kinds[0].ridge
        gain = self._rules.gains(left, total, np.True_, ridge, values, 0.0)[:, 0, 0]
        return (*(np.repeat(column, len(gain), axis=0) for column in found[:4]), gain)

    def _candidates(self, sums: Array, searched: Searched) -> list[CutCandidates | SetCandidates]:
        """The candidates of numeric features, and those of categorical ones."""
        return [
            kind(sums[:, :, part], self._n_bins[part], self._rules, self._choice.words(searched, self._features[part]))
            for kind, part in self._kinds
        ]

    def _best(
        self, kinds: list[CutCandidates | SetCandidates], gains: list[Array], least: list[Array], searched: Searched
    ) -> tuple[Array, ...]:
        """For each node, find the first of the largest gains that is above the least one for its feature."""
        places = [of_kind.argmax(axis=2) for of_kind in gains]  # the first of equals
        best = [
            np.take_along_axis(of_kind, place[..., None], axis=2)[..., 0]
            for of_kind, place in zip(gains, places, strict=True)
        ]
        above = [np.where(gain > needed, gain, 0.0) for gain, needed in zip(best, least, strict=True)]
        of_features = np.concatenate(above, axis=1)[:, self._places]
        of_features[~self._node_features.allowed(searched)] = 0.0
        won, gain = self._choice.winners(of_features, searched)
        q, feature = len(gain), self._places[won]
        bin, missing_left, left_set = np.zeros(q, np.int64), np.zeros(q, np.bool_), np.zeros((q, 8), np.uint32)
        for kind, place, (_, part) in zip(kinds, places, self._kinds, strict=True):
            nodes = np.flatnonzero((feature >= part.start) & (feature < part.stop) & (gain > 0.0))
            own = feature[nodes] - part.start
            of_nodes = nodes, own, place[nodes, own]
            bin[nodes], is_left, left_set[nodes] = kind.chosen(*of_nodes)
            left_h = kind.own[1][of_nodes]
            heavier = left_h > searched.total[1, nodes, 0, 0] - left_h
            missing_left[nodes] = np.where(kind.some_missing[nodes, own], is_left, heavier)
        return np.where(gain > 0.0, feature, -1), bin, missing_left, left_set, gain


def _in_set(words: Array, codes: Array) -> Array:
    """True for codes (n,) in a set of 8 words, or in the sets (n, 8)."""
    word = np.take_along_axis(np.broadcast_to(words, (len(codes), 8)), codes[:, None] >> 5, axis=1)[:, 0]
    is_in: Array = (word >> (codes & 31).astype(np.uint32)) & 1 == 1
    return is_in


def _in_order(terms: Array) -> Array:
    """The sum of the terms (q, ...), one after the other from 0."""
    total = np.zeros(terms.shape[1:])
    for term in terms:
        total = total + term
    return total
