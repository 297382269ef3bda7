"""Growth of one tree for several outputs, depth-wise or leaf-wise; the machine holds the rows and searches the splits.

A leaf of rows R has a value for each output, and takes the sum over the outputs of G_j^2 / (H_j + lambda) off the loss,
twice; the gain of a split is that of its two sides less that of the node. Sums are of integers, and terms are added in
the order of the outputs. ``min_child_weight`` is compared with the mean of H_j over the outputs.

A category is split from the rest: there is no order of categories that suits all outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpuboost.backends.numerics.feature_subsets import features_of
from gpuboost.types import Array, Candidates, Limits, Nodes

NOISE = 2.0**-40  # a gain below this share of the node's score is rounding, not gain


class VectorSplit(NamedTuple):
    """The best split of a node."""

    feature: int
    gain: float
    bin: int  # rows of bins 0 .. bin go left; of a categorical feature those of this bin
    missing_left: bool
    all_but: bool = False  # True: the rows of all categories go left, and those without one right


@dataclass(eq=False)
class VectorNode:
    """A node of the growing tree."""

    number: int
    rows: Any  # as the machine holds them
    count: int  # of them
    depth: int
    sums: Array  # (s, 2) int64 of g and h
    features: Array  # int32 those that compete, increasing
    split: VectorSplit | None = None
    left: int = 0
    right: int = 0


def best_of(found: Array, features: Array) -> VectorSplit | None:
    """The split of the largest gain, the lowest feature among equals.

    found (t, 4): gain, bin, whether missing values go left, whether all categories do, of each of (t,) features.
    """
    place = int(np.argmax(found[:, 0]))
    gain, cut, missing_left, all_but = found[place].tolist()
    return VectorSplit(int(features[place]), gain, int(cut), bool(missing_left), bool(all_but)) if gain > 0.0 else None


class Division(NamedTuple):
    """The rows of a node that is split, as its machine holds them."""

    left: Any
    right: Any
    n_left: int
    sums: Array  # (s, 2) int64, of the left rows


class TreeRows(Protocol):
    """The rows of a tree on a machine."""

    def every(self) -> tuple[Any, int, Array]:
        """All rows, their number, and (s, 2) int64 sums of g and h."""
        ...

    def search(self, nodes: list[VectorNode]) -> list[VectorSplit | None]:
        """The best split of each node."""
        ...

    def divide(self, nodes: list[VectorNode], first: int) -> list[Division]:
        """The rows of nodes that have a split. Children of node i have the numbers first + 2 i and one more."""
        ...


@dataclass
class VectorTree:
    """A growing tree."""

    rows: TreeRows
    n_bins: Array
    categorical: Array
    units: Array  # (s, 2) float64: values of a unit of g and of h
    candidates: Candidates
    limits: Limits
    nodes: list[VectorNode] = field(default_factory=list)

    def grow(self) -> None:
        """Grow the tree from its root."""
        rows, count, sums = self.rows.every()
        self._add(rows, count, 0, sums)
        (self._depth_wise if self.limits.growth == "depthwise" else self._leaf_wise)()

    def _depth_wise(self) -> None:
        level = self.nodes[:]
        while level:
            self._find(level)
            chosen = self._gaining_most(level)[: self._room]
            level = self._divide(sorted(chosen, key=lambda node: node.number))

    def _leaf_wise(self) -> None:
        leaves = self.nodes[:]
        self._find(leaves)
        while self._room and (open_leaves := self._gaining_most(leaves)):
            leaves.remove(open_leaves[0])
            children = self._divide(open_leaves[:1])
            self._find(children)
            leaves += children

    @property
    def _room(self) -> int:
        return self.limits.max_leaves - (len(self.nodes) + 1) // 2

    def mean_h(self, sums: Array) -> float:
        """Mean over the outputs of H."""
        total = 0.0
        for h, unit in zip(sums[:, 1].tolist(), self.units[:, 1].tolist(), strict=True):
            total += h * unit
        return total / len(sums)

    def _find(self, nodes: list[VectorNode]) -> None:
        limits = self.limits
        able = [
            node
            for node in nodes
            if node.depth < limits.max_depth
            and node.sums[:, 1].any()
            and node.count >= 2 * limits.min_samples_leaf
            and self.mean_h(node.sums) >= 2.0 * limits.min_child_weight
        ]
        for node, split in zip(able, self.rows.search(able) if able else [], strict=True):
            node.split = split

    @staticmethod
    def _gaining_most(nodes: list[VectorNode]) -> list[VectorNode]:
        gaining = [(node.split.gain, node) for node in nodes if node.split is not None]
        return [node for _, node in sorted(gaining, key=lambda pair: (-pair[0], pair[1].number))]

    def _divide(self, nodes: list[VectorNode]) -> list[VectorNode]:
        """Split these nodes; their children, in order."""
        children = []
        for node, side in zip(nodes, self.rows.divide(nodes, len(self.nodes)) if nodes else [], strict=True):
            depth = node.depth + 1
            left = self._add(side.left, side.n_left, depth, side.sums)
            right = self._add(side.right, node.count - side.n_left, depth, node.sums - side.sums)
            node.left, node.right = left.number, right.number
            children += [left, right]
        return children

    def _add(self, rows: Any, count: int, depth: int, sums: Array) -> VectorNode:
        number, candidates = len(self.nodes), self.candidates
        features = candidates.features
        if candidates.by_node is not None:
            features = features[features_of(candidates, number, depth)]
        self.nodes.append(VectorNode(number, rows, count, depth, sums, features))
        return self.nodes[-1]

    def as_arrays(self) -> Nodes:
        """The nodes; ``cover`` is the mean of H over the outputs."""
        made = [node.split if node.left else None for node in self.nodes]
        return Nodes(
            feature=np.array([s.feature if s else -1 for s in made], np.int32),
            bin=np.array([s.bin if s and not self.categorical[s.feature] else 0 for s in made], np.int32),
            missing_left=np.array([s.missing_left if s else False for s in made], np.bool_),
            left=np.array([node.left for node in self.nodes], np.int32),
            right=np.array([node.right for node in self.nodes], np.int32),
            gain=np.array([s.gain if s else 0.0 for s in made], np.float64),
            cover=np.array([self.mean_h(node.sums) for node in self.nodes], np.float64),
            count=np.array([node.count for node in self.nodes], np.int64),
            left_set=np.array([self._set(s) for s in made], np.uint32).reshape(-1, 8),
        )

    def _set(self, split: VectorSplit | None) -> list[int]:
        """The categories that go left, as 256 bits."""
        words = [0] * 8
        if split is not None and self.categorical[split.feature]:
            members = range(int(self.n_bins[split.feature])) if split.all_but else [split.bin]
            for c in members:
                words[c // 32] |= 1 << (c % 32)
        return words


@dataclass
class RowsOfHost:
    """The rows of a tree in the host's memory: positions in the target's rows."""

    columns: Array  # (d, m) uint8 bins of the target's rows
    n_bins: Array
    categorical: Array
    search: Callable[[list[VectorNode]], list[VectorSplit | None]]
    sums: Callable[[Array], Array]  # (.,) rows -> (s, 2) int64 sums of g and h

    def every(self) -> tuple[Array, int, Array]:
        root = np.arange(self.columns.shape[1])
        return root, len(root), self.sums(root)

    def divide(self, nodes: list[VectorNode], first: int) -> list[Division]:
        return [self._divided(node) for node in nodes]

    def _divided(self, node: VectorNode) -> Division:
        assert node.split is not None
        split = node.split
        codes, missing = self.columns[split.feature][node.rows], int(self.n_bins[split.feature])
        if self.categorical[split.feature]:
            left = np.full(len(codes), True) if split.all_but else codes == split.bin
        else:
            left = codes <= split.bin
        left = np.where(codes == missing, split.missing_left, left)
        of_left = node.rows[left]
        return Division(of_left, node.rows[~left], len(of_left), self.sums(of_left))

    def leaf_of_row(self, nodes: list[VectorNode]) -> Array:
        """(m,) int32 the leaf of each of the target's rows."""
        leaves = np.empty(self.columns.shape[1], np.int32)
        for node in nodes:
            leaves[node.rows] = node.number  # children come after their parent
        return leaves
