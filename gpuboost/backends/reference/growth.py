"""Tree growth by definition: depth-wise, leaf-wise, oblivious and random.

Every other machine grows the same trees, bit for bit: ``grow`` is ``Backend.grow``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.numerics.feature_subsets import features_of
from gpuboost.backends.numerics.forced_splits import ForcedCut, cut_of
from gpuboost.backends.numerics.interactions import PathRule
from gpuboost.backends.numerics.monotone import FREE, NodeBounds, of_features
from gpuboost.backends.numerics.random_trees import random_structure
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.reference.splits import Competition, Split, SplitCriterion, best_split, shared_splits
from gpuboost.keys import Key
from gpuboost.types import Array, Candidates, Limits, Nodes, Structure, Target, TrainingSet

Histograms = dict[int, Array]
"""feature: (b + 1, 3) int64 of g, h, count"""


def grow(
    data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits, key: Key | None = None
) -> Structure:
    """See ``Backend.grow``."""
    if key is not None:
        return random_structure(data, target, output, candidates, limits, key)
    tree = GrowingTree.root_of(data, target, output, candidates, limits)
    force(tree, cut_of(limits.forced, data.cuts))
    {"depthwise": depth_wise, "sign_stump": depth_wise, "leafwise": leaf_wise, "oblivious": oblivious}[limits.growth](
        tree
    )
    return tree.structure(data, target)


def force(tree: GrowingTree, plan: ForcedCut | None) -> None:
    """Make the forced splits, level by level."""
    level = [] if plan is None else [(tree.nodes[0], plan)]
    while level:
        splits = [(node, cut, tree.forced_split(node, cut)) for node, cut in level]
        chosen = [(node, cut, split) for node, cut, split in splits if split is not None][: tree.room]
        level = []
        for node, cut, split in chosen:
            node.split = split
            below = zip(tree.split(node), cut.below, strict=True)
            level += [(child, next_cut) for child, next_cut in below if next_cut is not None]


def depth_wise(tree: GrowingTree) -> None:
    """Split every node of a level before any of the next; the largest gains first if max_leaves does not allow all."""
    level = tree.leaves
    while level:
        for node in level:
            node.split = tree.best_split(node)
        chosen = tree.gaining_most(level)[: tree.room]
        level = [child for node in sorted(chosen, key=lambda node: node.number) for child in tree.split(node)]


def leaf_wise(tree: GrowingTree) -> None:
    """Split the leaf of the largest gain, at any depth. Equal gains: the older node first."""
    leaves = tree.leaves
    for leaf in leaves:
        leaf.split = tree.best_split(leaf)
    while tree.room and (open_leaves := tree.gaining_most(leaves)):
        chosen = open_leaves[0]
        leaves.remove(chosen)
        for child in tree.split(chosen):
            child.split = tree.best_split(child)
            leaves.append(child)


def oblivious(tree: GrowingTree) -> None:
    """Split all open nodes of a level by the one split of the largest summed gain; a whole level or none of it."""
    level = tree.nodes[:]
    while level:
        tree.share_a_split([node for node in level if tree.may_split(node)])
        chosen = [node for node in level if node.split is not None]
        if len(chosen) > tree.room:
            break
        level = [child for node in chosen for child in tree.split(node)]


@dataclass(eq=False)
class Node:
    """A node of the growing tree."""

    number: int
    rows: Array  # (.,) int64, positions in the target's rows
    g: int  # exact sums
    h: int
    depth: int
    bounds: tuple[float, float] = FREE  # of the leaf values below, if there are constraints
    path: tuple[int, ...] = ()  # features of the splits above
    value: float = 0.0  # to which those below are drawn
    split: Split | None = None  # the best one, if any gains
    left: int = 0
    right: int = 0

    @property
    def totals(self) -> tuple[int, int, int]:
        return self.g, self.h, len(self.rows)


@dataclass
class GrowingTree:
    """A growing tree: its nodes so far, and the data that they are split by."""

    bins: Array  # (m, d) uint8
    n_bins: Array
    categorical: Array
    g: Array  # (m,) int64
    h: Array
    units: tuple[float, float]
    candidates: Candidates
    limits: Limits
    output: int
    weight: int  # sum of the multiplicities of the rows
    directions: Array | None  # (d,) int64; None: leaf values have no bounds
    paths: PathRule | None  # None: any features may split the nodes of a path
    nodes: list[Node] = field(default_factory=list)

    @classmethod
    def root_of(
        cls, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits
    ) -> GrowingTree:
        """A tree of one node, the root, with the integers of the rows that it is fitted to."""
        g, h, units = integers(target.gradients, output)
        bins = dense_rows(data.bins)
        tree = cls(
            bins if target.rows is None else bins[target.rows],
            data.cuts.n_bins,
            data.cuts.is_categorical,
            g,
            h,
            units,
            candidates,
            limits,
            output,
            target.gradients.weight,
            of_features(limits.directions, data.cuts) if limits.bounded else None,
            None if limits.interactions is None else PathRule.of_features(limits.interactions, data.cuts),
        )
        root = tree._add(np.arange(len(g)), 0)
        root.bounds = -limits.largest_value, limits.largest_value
        if limits.path_smooth > 0.0:
            alone = NodeBounds(*root.bounds, np.empty(0, np.int64), limits.reg_alpha)
            root.value = alone.value(root.g * units[0], root.h * units[1], limits.reg_lambda)
        return tree

    @property
    def criterion(self) -> SplitCriterion:
        return SplitCriterion(self.units, self.limits, self.weight / max(self.nodes[0].h, 1))

    @property
    def room(self) -> int:
        """Number of leaves that may still be added."""
        return self.limits.max_leaves - (len(self.nodes) + 1) // 2

    @property
    def leaves(self) -> list[Node]:
        """The nodes that are not split, the older ones first."""
        return [node for node in self.nodes if not node.left]

    def may_split(self, node: Node) -> bool:
        """True if a split of the node can satisfy the limits."""
        limits = self.limits
        # Several nodes share a split, and so one with a single row may have to: a row of weight 2 is two rows.
        uncounted = limits.symmetric and limits.min_samples_leaf == 1
        return (
            node.depth < limits.max_depth
            and node.h > 0
            and (uncounted or len(node.rows) >= 2 * limits.min_samples_leaf)
            and node.h * self.units[1] >= 2.0 * limits.min_child_weight
        )

    def best_split(self, node: Node) -> Split | None:
        """Find the best split of this node by itself, if any gains."""
        if not self.may_split(node):
            return None
        histograms, competition = self._histograms(node), self._competition(self._cuts_of(node))
        return best_split(histograms, node.totals, self.categorical, self.criterion, competition, self._within(node))

    def forced_split(self, node: Node, cut: ForcedCut) -> Split | None:
        """The split of this node by the one cut, if it gains."""
        histograms = self._histograms(node)
        if not self.may_split(node) or cut.feature not in histograms:
            return None
        bits = np.zeros(8, np.uint32)
        bits[cut.bin >> 5] = 1 << (cut.bin & 31)
        of_node, alone = ({cut.feature: histograms[cut.feature]}, node.totals), Competition({cut.feature: bits})
        return best_split(*of_node, self.categorical, self.criterion, alone, self._within(node))

    def share_a_split(self, level: list[Node]) -> None:
        """Find the split that all these nodes are to share, if any gains in sum."""
        if not level:
            return
        histograms, totals = [self._histograms(node) for node in level], [node.totals for node in level]
        within = [bounds for node in level if (bounds := self._within(node)) is not None]
        how = self.categorical, self.criterion, self._competition(None)
        shared = shared_splits(histograms, totals, *how, within, level[0].depth)
        for i, node in enumerate(level):
            node.split = shared[i] if shared else None

    @staticmethod
    def gaining_most(nodes: list[Node]) -> list[Node]:
        """The nodes that have a split, by descending gain. Equal gains: the older node first."""
        return sorted((node for node in nodes if node.split), key=lambda node: (-_split(node).gain, node.number))

    def split(self, node: Node) -> tuple[Node, Node]:
        """Split the node: divide its rows between two new ones."""
        split = _split(node)
        left = split.goes_left(self.bins[node.rows, split.feature], int(self.n_bins[split.feature]))
        children = self._add(node.rows[left], node.depth + 1), self._add(node.rows[~left], node.depth + 1)
        node.left, node.right = (child.number for child in children)
        for child in children:
            child.path = (*node.path, split.feature)
        if (within := self._within(node)) is not None:
            ridge, (unit_g, unit_h) = self.limits.reg_lambda, self.units
            for child in children:
                child.value = within.value(child.g * unit_g, child.h * unit_h, ridge)
            children[0].bounds, children[1].bounds = within.children(split.feature, *(c.value for c in children))
        return children

    def structure(self, data: TrainingSet, target: Target) -> Structure:
        """The tree: its nodes, the leaf of each row, and the sums of g and h for its leaf values."""
        sums = (
            np.array([node.g * self.units[0] for node in self.nodes]),
            np.array([node.h * self.units[1] for node in self.nodes]),
        )
        leaf_of_row = np.empty(data.n_rows, np.int32)
        if target.rows is None:
            for node in self.nodes:
                leaf_of_row[node.rows] = node.number  # children come after their parent and overwrite it
        return Structure(
            _as_arrays(self),
            self.output,
            target.version,
            leaf_of_row if target.rows is None else None,
            sums if target.gives_leaf_sums else None,
            weight=self.weight,
        )

    def _add(self, rows: Array, depth: int) -> Node:
        node = Node(len(self.nodes), rows, int(self.g[rows].sum()), int(self.h[rows].sum()), depth)
        self.nodes.append(node)
        return node

    def _within(self, node: Node) -> NodeBounds | None:
        if self.directions is None:
            return None
        limits = self.limits
        smoothing = limits.smoothing(self.nodes[0].h * self.units[1], self.weight)
        return NodeBounds(*node.bounds, self.directions, limits.reg_alpha, smoothing, node.value)

    def _drawn(self, node: Node) -> Array:
        """The features that are drawn for the node, increasing; all candidates, if it draws none."""
        candidates = self.candidates
        if candidates.by_node is None:
            return candidates.features
        return candidates.features[features_of(candidates, node.number, node.depth)]

    def _histograms(self, node: Node) -> Histograms:
        """Sums of the node's rows, by bins of each drawn feature that interaction constraints allow."""
        histograms = {}
        for f in self._drawn(node):
            if self.paths is not None and not self.paths.allows(node.path, int(f)):
                continue
            sums = np.zeros((self.n_bins[f] + 1, 3), np.int64)
            bins = self.bins[node.rows, f]
            np.add.at(sums[:, 0], bins, self.g[node.rows])
            np.add.at(sums[:, 1], bins, self.h[node.rows])
            np.add.at(sums[:, 2], bins, 1)
            histograms[int(f)] = sums
        return histograms

    def _competition(self, cuts: dict[int, Array] | None) -> Competition:
        candidates, output = self.candidates, self.output
        return Competition(cuts, candidates.random_cuts(output), candidates.gain_noise(output), candidates.costs)

    def _cuts_of(self, node: Node) -> dict[int, Array] | None:
        """The cuts of each feature by which the node may be split; None for all."""
        candidates = self.candidates
        if candidates.root is None or node.number != 0:
            return None
        return {int(f): cuts for f, cuts in zip(candidates.features, candidates.root, strict=True)}


def _split(node: Node) -> Split:
    assert node.split is not None
    return node.split


def _as_arrays(tree: GrowingTree) -> Nodes:
    nodes, made = tree.nodes, [node.split if node.left else None for node in tree.nodes]
    n_bins = tree.n_bins
    return Nodes(
        feature=np.array([s.feature if s else -1 for s in made], np.int32),
        bin=np.array([s.bin if s else 0 for s in made], np.int32),
        missing_left=np.array([s.missing_left if s else False for s in made], np.bool_),
        left=np.array([node.left for node in nodes], np.int32),
        right=np.array([node.right for node in nodes], np.int32),
        gain=np.array([s.gain if s else 0.0 for s in made], np.float64),
        cover=np.array([node.h * tree.units[1] for node in nodes], np.float64),
        count=np.array([len(node.rows) for node in nodes], np.int64),
        left_set=np.array(
            [s.words(n_bins[s.feature]) if s else np.zeros(8, np.uint32) for s in made], np.uint32
        ).reshape(-1, 8),
    )
