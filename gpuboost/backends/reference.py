"""The living definition of every verb, in plain numpy and Python. Written to be read, not to be fast."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np

from gpuboost.backends import additive, line_search, reference_lists, reference_sampling
from gpuboost.backends.fixed_point import fixed_point_scale
from gpuboost.backends.odds import Odds
from gpuboost.backends.paths import Paths, contributions_by_definition
from gpuboost.backends.random_numbers import gaussian_of, uniform_bits
from gpuboost.backends.random_shape import counted, random_nodes
from gpuboost.backends.reference_smoothing import ReferenceSmoothing
from gpuboost.backends.reference_splits import Split, best_split, shared_splits
from gpuboost.backends.smoothing import Smoothing
from gpuboost.backends.subsets import subset
from gpuboost.keys import Key
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    DenseBins,
    Ensemble,
    Gradients,
    Limits,
    Nodes,
    Noise,
    Sample,
    SparseBins,
    Structure,
    Target,
    TrainingSet,
    Tree,
)

LANES, STRETCH, BLOCK = 16, 1 << 12, 1 << 16


@dataclass
class _Node:
    rows: Array  # (.,) int64, positions in the target's rows
    g: int  # exact sums
    h: int
    depth: int
    split: Split | None = None
    sought: bool = False
    histogram: dict[int, Array] = field(default_factory=dict)  # feature: (b + 1, 3) int64 of g, h, count
    left: int = 0
    right: int = 0


@dataclass
class _Frontier:
    bins: Array  # (m, d) uint8
    n_bins: Array
    categorical: Array
    g: Array  # (m,) int64
    h: Array
    units: tuple[float, float]
    candidates: Candidates
    limits: Limits
    output: int
    nodes: list[_Node]
    rows_per_h: float
    n_leaves: int = 1

    def can_split(self, node: _Node) -> bool:
        limits = self.limits
        # Several nodes share a split, and so one with a single row may have to: a row of weight 2 is two rows.
        uncounted = limits.symmetric and limits.min_samples_leaf == 1
        return (
            node.depth < limits.max_depth
            and node.h > 0
            and (uncounted or len(node.rows) >= 2 * limits.min_samples_leaf)
            and node.h * self.units[1] >= 2.0 * limits.min_child_weight
        )


class Reference:
    """The backend that defines the others."""

    name = "reference"

    # the data, once

    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        codes = [_codes(x, f, cuts) for f in range(cuts.n_features)]
        columns = np.stack(codes).astype(np.uint8) if codes else np.empty((0, x.shape[0]), np.uint8)
        return DenseBins(np.ascontiguousarray(columns.T), columns)

    # the round

    def recorded(self, step: int) -> AbstractContextManager[None]:
        return nullcontext()

    def collect(self, ensemble: Ensemble) -> Ensemble:
        return ensemble

    def to_host(self, found: Array) -> Array:
        return found

    # the target, once a round

    def start(self, data: TrainingSet, bias: Array) -> Array:
        return np.repeat(np.asarray(bias, np.float64)[:, None], data.n_rows, axis=1)

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        if is_list_loss(loss):
            return reference_lists.gradients(loss, scores, data, curvature)
        g, h = np.empty(scores.shape), np.empty(scores.shape)
        for i, y in enumerate(data.y):
            if loss.n_outputs == 1:
                g[0, i], h[0, i] = loss.derivatives(float(y), float(scores[0, i]), loss.parameter)
            else:
                loss.row_derivatives(float(y), scores[:, i], g[:, i], h[:, i], loss.parameter)
        if curvature is not None:
            h[:] = curvature
        if data.weight is not None:
            g, h = g * data.weight, h * data.weight
        return Gradients(g.astype(np.float32), h.astype(np.float32), data.multiplicity)

    def sample(self, probability: float, n_rows: int, key: Key) -> Sample:
        drawn = uniform_bits(n_rows, key) < np.uint64(int(probability * 2.0**32))
        rows = np.flatnonzero(drawn).astype(np.int32)
        return Sample(rows, np.full(len(rows), 1.0 / probability, dtype=np.float32))

    def draw(self, gradients: Gradients, kappa: float, odds: Odds, key: Key, losses: Array | None = None) -> Sample:
        return reference_sampling.draw(gradients, kappa, odds, uniform_bits(gradients.g.shape[1], key), losses)

    def losses(self, loss: Loss, scores: Array, data: TrainingSet) -> Array:
        each = np.array(_values(loss, scores, data.y), np.float64)
        return each if data.weight is None else each * data.weight

    def keep(self, gradients: Gradients, rounds: int) -> Gradients:
        return gradients

    def node_control(self, gradients: Gradients, sample: Sample, before: Gradients, eta: float) -> Gradients:
        return reference_sampling.node_control(gradients, sample, before, eta)

    def leaf_control(
        self, gradients: Gradients, sample: Sample, before: Gradients, eta: float, leaves: tuple[Array, ...],
        sizes: tuple[int, ...],
    ) -> Gradients:  # fmt: skip
        means = np.empty(before.g.shape)
        for output, (leaf_of_row, size) in enumerate(zip(leaves, sizes, strict=True)):
            g, _, units = integers(before, output)
            sums, rows = np.zeros(size, np.int64), np.zeros(size, np.int64)
            np.add.at(sums, leaf_of_row, g)
            np.add.at(rows, leaf_of_row, 1 if before.multiplicity is None else before.multiplicity)
            means[output] = (sums * units[0] / np.maximum(rows, 1))[leaf_of_row]
        return reference_sampling.leaf_control(gradients, sample, before, eta, means)

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        if sample.rows is None:
            return gradients
        rows, by = sample.rows, sample.inverse_probability
        m = None if gradients.multiplicity is None else gradients.multiplicity[rows]
        return Gradients(gradients.g[:, rows] * by, gradients.h[:, rows] * by, m)

    def noise(self, gradients: Gradients, rows: Array | None, noise: Noise) -> Gradients:
        k, m = gradients.g.shape
        rows = np.arange(m) if rows is None else rows
        z = np.stack([gaussian(int(rows.max(initial=-1)) + 1, noise.key / output)[rows] for output in range(k)])
        times = 1.0 if gradients.multiplicity is None else gradients.multiplicity.astype(np.float64)
        spread = noise.deviation * np.sqrt(gradients.h.astype(np.float64) / times)
        return replace(gradients, g=(gradients.g.astype(np.float64) + spread * z).astype(np.float32))

    # the tree

    def plant(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits
    ) -> _Frontier:
        g, h, units = integers(target.gradients, output)
        bins = dense_rows(data.bins)
        root = _Node(np.arange(len(g)), int(g.sum()), int(h.sum()), 0)
        return _Frontier(
            bins if target.rows is None else bins[target.rows],
            data.cuts.n_bins,
            data.cuts.is_categorical,
            g,
            h,
            units,
            candidates,
            limits,
            output,
            [root],
            _weight(target.gradients) / max(root.h, 1),
        )

    def histograms(self, frontier: _Frontier) -> None:
        for node in frontier.nodes:
            if node.sought or not frontier.can_split(node):
                continue
            for f in frontier.candidates.features:
                sums = np.zeros((frontier.n_bins[f] + 1, 3), np.int64)
                at = frontier.bins[node.rows, f]
                np.add.at(sums[:, 0], at, frontier.g[node.rows])
                np.add.at(sums[:, 1], at, frontier.h[node.rows])
                np.add.at(sums[:, 2], at, 1)
                node.histogram[int(f)] = sums

    def best_splits(self, frontier: _Frontier) -> None:
        f = frontier
        rest = f.units, f.limits, f.n_bins, f.categorical, f.rows_per_h
        fresh = [node for node in f.nodes if not node.sought and node.histogram]
        totals = [(node.g, node.h, len(node.rows)) for node in fresh]
        if fresh and f.limits.symmetric:
            of_level = f.candidates.lots(f.output), fresh[0].depth
            shared = shared_splits([node.histogram for node in fresh], totals, *rest, *of_level)
            for i, node in enumerate(fresh):
                node.split = shared[i] if shared else None
        else:
            for node, own in zip(fresh, totals, strict=True):
                v = next(i for i, one in enumerate(f.nodes) if one is node)
                histogram, cuts = _competing(f.candidates, v, node.histogram)
                node.split = best_split(histogram, own, *rest, cuts, f.candidates.lots(f.output))
        for node in f.nodes:
            node.sought, node.histogram = True, {}

    def partition(self, frontier: _Frontier, most: int | None = None) -> bool:
        nodes = frontier.nodes
        open_nodes = [v for v, node in enumerate(nodes) if node.split is not None and not node.left]
        room = frontier.limits.max_leaves - frontier.n_leaves
        room = room if most is None else min(most, room)
        if frontier.limits.symmetric and len(open_nodes) > room:
            return False  # a level is split as a whole
        chosen = sorted(sorted(open_nodes, key=lambda v: (-_split(nodes[v]).gain, v))[:room])
        for v in chosen:
            node, split = nodes[v], _split(nodes[v])
            left = split.goes_left(frontier.bins[node.rows, split.feature], int(frontier.n_bins[split.feature]))
            node.left, node.right = len(nodes), len(nodes) + 1
            for side in (left, ~left):
                rows = node.rows[side]
                nodes.append(_Node(rows, int(frontier.g[rows].sum()), int(frontier.h[rows].sum()), node.depth + 1))
        frontier.n_leaves += len(chosen)
        return bool(chosen)

    def harvest(self, frontier: _Frontier, data: TrainingSet, target: Target) -> Structure:
        nodes = _as_arrays(frontier)
        sums = (
            None
            if target.noisy
            else (
                np.array([node.g * frontier.units[0] for node in frontier.nodes]),
                np.array([node.h * frontier.units[1] for node in frontier.nodes]),
            )
        )
        if target.rows is not None:
            own = sums if target.own_leaves else None
            return Structure(nodes, frontier.output, target.version, None, own)
        leaf_of_row = np.empty(data.n_rows, np.int32)
        for v, node in enumerate(frontier.nodes):
            leaf_of_row[node.rows] = v  # children come after their parent and overwrite it
        return Structure(nodes, frontier.output, target.version, leaf_of_row, sums)

    def random_structure(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits, key: Key
    ) -> Structure:
        nodes = random_nodes(data.cuts, candidates, limits, key / output)
        return Structure(nodes, output, target.version, None, None, blind=True)

    def leaf_values(
        self,
        structure: Structure,
        gradients: Gradients,
        data: TrainingSet,
        limits: Limits,
        version: int,
        noise: Noise | None = None,
    ) -> tuple[Tree, Array]:
        nodes, leaf_of_row, sums = structure.nodes, structure.leaf_of_row, structure.sums
        if leaf_of_row is None:
            leaf_of_row = route(nodes, dense_rows(data.bins), data.cuts)
        if sums is None or structure.version != version:
            g, h, units = integers(gradients, structure.output)
            exact = np.zeros((2, len(nodes.feature)), np.int64)
            np.add.at(exact[0], leaf_of_row, g)
            np.add.at(exact[1], leaf_of_row, h)
            sums = exact[0] * units[0], exact[1] * units[1]
            if structure.blind:
                nodes = counted(nodes, exact[1], np.bincount(leaf_of_row, minlength=len(exact[1])), units[1])
        value = newton_values(nodes, sums, limits)
        if noise is not None:
            value += leaf_noise(
                nodes, sums[1], limits, noise.deviation, gaussian(len(value), noise.key / structure.output)
            )
        return Tree(nodes, value, structure.output, structure.version), leaf_of_row

    def leaf_quantiles(self, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet) -> Tree:
        assert loss.leaf_quantile is not None
        residual = data.y - scores[tree.output] + 0.0  # + 0.0: no negative zero
        weight, value = whole_weights(data), np.zeros(len(tree.value))
        for leaf in np.flatnonzero(tree.nodes.is_leaf):
            rows = np.flatnonzero(leaf_of_row == leaf)
            value[leaf] = weighted_quantile(residual[rows], weight[rows], loss.leaf_quantile)
        return replace(tree, value=value)

    def line_search(
        self, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool
    ) -> Tree:
        return line_search.along_tree(self, tree, leaf_of_row, loss, scores, data, per_leaf)

    # the model

    def add_leaves(self, scores: Array, tree: Tree, factor: float, leaf_of_row: Array) -> None:
        steps = factor * tree.value
        scores[tree.output] += steps[leaf_of_row]

    def add_tree(self, scores: Array, tree: Tree, factor: float, bins: Bins, cuts: Cuts) -> None:
        self.add_leaves(scores, tree, factor, route(tree.nodes, dense_rows(bins), cuts))

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        out[:] = bias[:, None] + scale * sums

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        each = _values(loss, scores, y)
        total = fixed_order_sum(np.array(each) if weight is None else np.array(each) * weight)
        return total / (len(y) if weight is None else fixed_order_sum(weight))

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        if ensemble.components:
            return additive.Additive.of(self, ensemble).predict(self, ensemble, x)
        n, bins = x.shape[0], dense_rows(self.quantise(x, ensemble.cuts))
        sums = np.zeros((ensemble.n_outputs, n))
        if ensemble.scale == 1.0:
            sums += ensemble.bias[:, None]
        for tree, factor in zip(ensemble.trees, ensemble.factors, strict=True):
            self.add_leaves(sums, tree, factor, route(tree.nodes, bins, ensemble.cuts))
        return sums if ensemble.scale == 1.0 else ensemble.bias[:, None] + ensemble.scale * sums

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        for rounds in range(1, ensemble.n_rounds + 1):
            yield self.predict(ensemble.first(rounds), x)

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        bins = dense_rows(self.quantise(x, ensemble.cuts))
        found = [route(tree.nodes, bins, ensemble.cuts) for tree in ensemble.trees]
        return np.stack(found, axis=1) if found else np.empty((len(bins), 0), np.int32)

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        bins = dense_rows(self.quantise(x, ensemble.cuts))
        return contributions_by_definition(Paths.of(ensemble), bins, ensemble.cuts.n_columns)

    def smoothing(self) -> Smoothing:
        """The verbs for components."""
        return ReferenceSmoothing(integers, dense_rows, route)


def integers(gradients: Gradients, output: int) -> tuple[Array, Array, tuple[float, float]]:
    """(m,) int64 g and h, and the value of one unit of each: exact sums for whoever adds them up."""
    m = gradients.multiplicity
    times = np.ones(gradients.g.shape[1], np.int64) if m is None else m.astype(np.int64)
    parts, units = [], []
    for values, bits in ((gradients.g[output], 31), (gradients.h[output], 32)):
        top, total = extent(values, times)
        scale = fixed_point_scale(top, total, float(times.max(initial=1)), float(times.sum()), bits)
        parts.append(np.rint(values.astype(np.float64) * scale).astype(np.int64) * times)
        units.append(1.0 / scale)
    return parts[0], parts[1], (units[0], units[1])


def _values(loss: Loss, scores: Array, y: Array) -> list[float]:
    """The loss of each row."""
    if loss.n_outputs == 1:
        return [loss.value(float(t), float(f), loss.parameter) for t, f in zip(y, scores[0], strict=True)]
    return [loss.row_value(float(t), scores[:, i], loss.parameter) for i, t in enumerate(y)]


def _weight(gradients: Gradients) -> int:
    """How many rows the gradients stand for."""
    m = gradients.multiplicity
    return gradients.g.shape[1] if m is None else int(m.sum())


def extent(values: Array, times: Array) -> tuple[float, float]:
    """Largest and summed |value| * multiplicity."""
    size = np.abs(values.astype(np.float64)) * times
    return float(size.max(initial=0.0)), fixed_order_sum(size)


def gaussian(n: int, key: Key) -> Array:
    """(n,) float64: numbers 0 .. n - 1 of the stream as Gaussian ones."""
    return gaussian_of(uniform_bits(n, key))


def dense_rows(bins: Bins) -> Array:
    """(n, d) uint8, whatever the layout."""
    if isinstance(bins, DenseBins):
        return bins.rows
    assert isinstance(bins, SparseBins)
    n = bins.shape[0]
    rows = np.tile(bins.default, (n, 1))
    of_entry = np.repeat(np.arange(n), np.diff(bins.row_start))
    rows[of_entry, bins.feature] = bins.row_bin
    return rows


def route(nodes: Nodes, bins: Array, cuts: Cuts) -> Array:
    """(n,) int32: the leaf of every row. bins (n, d) uint8."""
    n_bins, categorical = cuts.n_bins, cuts.is_categorical
    at = np.zeros(len(bins), np.int32)
    every = np.arange(len(bins))
    while (nodes.feature[at] >= 0).any():
        feature = np.maximum(nodes.feature[at], 0)
        code = bins[every, feature].astype(np.int64)
        in_set = nodes.left_set[at, code >> 5] >> (code & 31).astype(np.uint32) & 1
        left = np.where(categorical[feature], in_set == 1, code <= nodes.bin[at])
        left = np.where(code == n_bins[feature], nodes.missing_left[at], left)
        at = np.where(nodes.feature[at] < 0, at, np.where(left, nodes.left[at], nodes.right[at])).astype(np.int32)
    return at


def newton_values(nodes: Nodes, sums: tuple[Array, Array], limits: Limits) -> Array:
    """(v,) float64: -G / (H + lambda) at leaves, 0 elsewhere and where the denominator is 0.

    Leaves that share one value, ``limits.signed``, have -(G_L - G_R) / (H_L + H_R + lambda) and its negative.
    """
    if limits.signed and len(nodes.feature) == 3:
        g, h = float(sums[0][1]) - float(sums[0][2]), float(sums[1][1]) + float(sums[1][2]) + limits.reg_lambda
        left = -g / h if h > 0.0 else 0.0
        return np.array([0.0, left, -left]) + 0.0
    below = sums[1] + limits.reg_lambda
    return np.divide(-sums[0], below, out=np.zeros(len(below)), where=nodes.is_leaf & (below > 0.0)) + 0.0


def leaf_noise(nodes: Nodes, h: Array, limits: Limits, deviation: float, z: Array) -> Array:
    """(v,) float64: deviation / sqrt(H + lambda) z at leaves that hold curvature, 0 elsewhere."""
    below = h + limits.reg_lambda
    spread = np.divide(deviation, np.sqrt(below), out=np.zeros(len(h)), where=nodes.is_leaf & (h > 0.0) & (below > 0.0))
    return spread * z


def weighted_quantile(x: Array, weight: Array, alpha: float) -> float:
    """The smallest x whose weight, with that of all smaller ones, reaches alpha of the whole; 0 for no rows.

    weight (n,) int64, positive: ``whole_weights``.
    """
    if len(x) == 0:
        return 0.0
    order = np.argsort(x, kind="stable")
    reached = np.cumsum(weight[order])
    total = int(reached[-1])
    needed = min(max(ceil(alpha * float(total)), 1), total)
    return float(x[order[np.searchsorted(reached, needed)]])


def whole_weights(data: TrainingSet) -> Array:
    """(n,) int64, at least 1: weights as integers, so that a sum of them has no order."""
    if data.weight is None:
        return np.ones(data.n_rows, np.int64) if data.multiplicity is None else data.multiplicity.astype(np.int64)
    return np.maximum(np.rint(data.weight * weight_scale(data.weight)).astype(np.int64), 1)


def weight_scale(weight: Array) -> float:
    """The power of two that takes the largest weight to 2**30 .. 2**31: sums of 2**32 of them fit in 64 bits."""
    return line_search.whole_scale(float(weight.max(initial=0.0)))


def fixed_order_sum(x: Array) -> float:
    """The sum in an order that suits every machine: 16 lanes of each stretch of 4,096, lanes in order; then the
    stretches of each block of 65,536 in order, and the blocks in order."""
    total = 0.0
    for begin in range(0, len(x), BLOCK):
        in_block = 0.0
        for at in range(begin, min(begin + BLOCK, len(x)), STRETCH):
            stretch = x[at : min(at + STRETCH, len(x))].astype(np.float64)
            lane_sums = np.zeros(LANES)
            for line in np.concatenate([stretch, np.zeros(-len(stretch) % LANES)]).reshape(-1, LANES):
                lane_sums = lane_sums + line
            in_stretch = 0.0
            for lane in lane_sums:
                in_stretch += float(lane)
            in_block += in_stretch
        total += in_block
    return total


def _codes(x: Any, f: int, cuts: Cuts) -> Array:
    c = cuts.columns[f]
    column = x[:, [c]].toarray()[:, 0] if hasattr(x, "toarray") else x[:, c]
    column = np.asarray(column, np.float64)
    categories, b = cuts.categories[f], cuts.n_bins[f]
    if categories is None:
        codes = np.searchsorted(cuts.thresholds[f], column, side="left")
    else:
        place = {float(code): c for c, code in enumerate(categories)}
        codes = np.array([place.get(v, b) for v in column.tolist()], np.int64)
    return np.where(np.isnan(column), b, codes)


def _competing(
    candidates: Candidates, v: int, histogram: dict[int, Array]
) -> tuple[dict[int, Array], dict[int, Array] | None]:
    """The histograms of the features that compete at node v, and the cuts by which it may be split, if not all."""
    if candidates.by_node is not None:
        count = candidates.by_node[0]
        drawn = candidates.features[subset(count, len(candidates.features), candidates.node_key(v))]
        return {int(f): histogram[int(f)] for f in drawn}, None
    if candidates.root is None or v != 0:
        return histogram, None
    return histogram, {int(f): cuts for f, cuts in zip(candidates.features, candidates.root, strict=True)}


def _split(node: _Node) -> Split:
    assert node.split is not None
    return node.split


def _as_arrays(frontier: _Frontier) -> Nodes:
    nodes, made = frontier.nodes, [node.split if node.left else None for node in frontier.nodes]
    n_bins = frontier.n_bins
    return Nodes(
        feature=np.array([s.feature if s else -1 for s in made], np.int32),
        bin=np.array([s.bin if s else 0 for s in made], np.int32),
        missing_left=np.array([s.missing_left if s else False for s in made], np.bool_),
        left=np.array([node.left for node in nodes], np.int32),
        right=np.array([node.right for node in nodes], np.int32),
        gain=np.array([s.gain if s else 0.0 for s in made], np.float64),
        cover=np.array([node.h * frontier.units[1] for node in nodes], np.float64),
        count=np.array([len(node.rows) for node in nodes], np.int64),
        left_set=np.array(
            [s.words(n_bins[s.feature]) if s else np.zeros(8, np.uint32) for s in made], np.uint32
        ).reshape(-1, 8),
    )
