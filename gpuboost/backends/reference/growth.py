"""The verbs that grow a tree, as ``Reference`` has them; what each is to do says ``backends.protocol``."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.numerics.feature_subsets import subset
from gpuboost.backends.numerics.monotone import FREE, NodeBounds, of_features
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.reference.splits import Split, best_split, shared_splits
from gpuboost.types import Array, Candidates, Gradients, Limits, Nodes, Structure, Target, TrainingSet


@dataclass
class Node:
    """A node of the tree under way."""

    rows: Array  # (.,) int64, positions in the target's rows
    g: int  # exact sums
    h: int
    depth: int
    split: Split | None = None
    sought: bool = False
    histogram: dict[int, Array] = field(default_factory=dict)  # feature: (b + 1, 3) int64 of g, h, count
    left: int = 0
    right: int = 0
    bounds: tuple[float, float] = FREE  # of the leaf values below, if there are constraints


@dataclass
class Frontier:
    """The tree under way, and what its nodes are split by."""

    bins: Array  # (m, d) uint8
    n_bins: Array
    categorical: Array
    g: Array  # (m,) int64
    h: Array
    units: tuple[float, float]
    candidates: Candidates
    limits: Limits
    output: int
    nodes: list[Node]
    rows_per_h: float
    directions: Array | None  # (d,) int64; None: every feature is free
    n_leaves: int = 1

    def within(self, node: Node) -> NodeBounds | None:
        return None if self.directions is None else NodeBounds(*node.bounds, self.directions)

    def bounds(self, node: Node) -> list[tuple[float, float]]:
        """Those of its children, left and right, the sums of which are known."""
        within, ridge, (unit_g, unit_h) = self.within(node), self.limits.reg_lambda, self.units
        if within is None:
            return [FREE, FREE]
        sides = (self.nodes[node.left], self.nodes[node.right])
        values = (within.value(side.g * unit_g, side.h * unit_h, ridge) for side in sides)
        return list(within.children(_split(node).feature, *values))

    def can_split(self, node: Node) -> bool:
        limits = self.limits
        # Several nodes share a split, and so one with a single row may have to: a row of weight 2 is two rows.
        uncounted = limits.symmetric and limits.min_samples_leaf == 1
        return (
            node.depth < limits.max_depth
            and node.h > 0
            and (uncounted or len(node.rows) >= 2 * limits.min_samples_leaf)
            and node.h * self.units[1] >= 2.0 * limits.min_child_weight
        )


def plant(data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits) -> Frontier:
    """A tree that is its root so far, with the integers of the rows that it learns from."""
    g, h, units = integers(target.gradients, output)
    bins = dense_rows(data.bins)
    root = Node(np.arange(len(g)), int(g.sum()), int(h.sum()), 0)
    return Frontier(
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
        None if limits.directions is None else of_features(limits.directions, data.cuts),
    )


def histograms(frontier: Frontier) -> None:
    """Sum the rows of every open node that was not searched yet, feature by feature and bin by bin."""
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


def best_splits(frontier: Frontier) -> None:
    """Find what each node with a histogram is best split by; all nodes count as searched then."""
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
            lots = f.candidates.lots(f.output)
            node.split = best_split(histogram, own, *rest, cuts, lots, f.within(node))
    for node in f.nodes:
        node.sought, node.histogram = True, {}


def partition(frontier: Frontier, most: int | None = None) -> bool:
    """Split open nodes, ``most`` of those that gain most; False if there was none. See ``Backend.partition``."""
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
            nodes.append(Node(rows, int(frontier.g[rows].sum()), int(frontier.h[rows].sum()), node.depth + 1))
        nodes[node.left].bounds, nodes[node.right].bounds = frontier.bounds(node)
    frontier.n_leaves += len(chosen)
    return bool(chosen)


def harvest(frontier: Frontier, data: TrainingSet, target: Target) -> Structure:
    """The tree as it stands: its nodes, the leaf of each row, and the sums that leaf values may be made of."""
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


def _split(node: Node) -> Split:
    assert node.split is not None
    return node.split


def _as_arrays(frontier: Frontier) -> Nodes:
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


def _weight(gradients: Gradients) -> int:
    """How many rows the gradients stand for."""
    m = gradients.multiplicity
    return gradients.g.shape[1] if m is None else int(m.sum())
