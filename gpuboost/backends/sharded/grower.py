"""Growth of a tree on shards: the driver adds up their histograms and chooses the splits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.grower import can_split_root, child_limits, chosen_splits
from gpuboost.backends.cpu.trees.forced_splits import force
from gpuboost.backends.cpu.trees.histograms import Histograms
from gpuboost.backends.cpu.trees.layout import layout_of
from gpuboost.backends.cpu.trees.nodes import NodeTable
from gpuboost.backends.cpu.trees.partition import RowsByNode
from gpuboost.backends.cpu.trees.split_search import Search
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics.forced_splits import cut_of
from gpuboost.backends.sharded.arrays import RemoteCalls
from gpuboost.backends.sharded.rows import RULE, unpacked
from gpuboost.backends.sharded.shard import Shard
from gpuboost.kernels.common import nodes as table
from gpuboost.kernels.growth import partition
from gpuboost.records import dataclass
from gpuboost.types import Array, Bins, Candidates, Cuts, Limits, Nodes

NO_PAIRS, NO_INTS = np.empty(0, np.int64), np.empty(0, np.int32)
NEVER_PACKED = -1  # rows up to which histograms are packed: sums of many shards are kept as two integers


@dataclass(frozen=True, slots=True)
class RootSums:
    """Sums over the rows of all shards."""

    rows: int
    weight: int  # sum of their multiplicities
    totals: tuple[int, int]  # of g and of h, as integers
    units: tuple[float, float]  # value of one unit of each


class ShardedGrower:
    """A tree whose node table the driver holds, and whose rows the shards hold. ``tree``: its number there."""

    def __init__(
        self, tree: int, calls: RemoteCalls, root: RootSums, empty_bins: Bins, cuts: Cuts, output: int,
        candidates: Candidates, limits: Limits, pool: ThreadPool, workspace: Workspace,
    ) -> None:  # fmt: skip
        self._number, self._calls, self._forced = tree, calls, cut_of(limits.forced, cuts)
        self._limits, self._units = limits, np.array(root.units)
        self._layout = layout = layout_of(empty_bins, cuts, candidates, by_column=False)
        of_all = np.broadcast_to(np.int32(0), (root.rows,))  # only how many they are is ever looked at
        rows = RowsByNode(empty_bins, layout, None, of_all, NO_INTS, pool, None)
        self._tree, (_, h), (_, unit_h) = NodeTable(limits, root.rows), root.totals, root.units
        can = can_split_root(limits, root.rows, h, unit_h)
        self._new_pairs = self._tree.init_root(root.rows, root.totals, can_split=can)
        self._search = Search(layout, cuts, limits, candidates, output, self._units, False, pool)
        self._search.begin(root.weight / max(h, 1), limits.smoothing(h * unit_h, root.weight))
        self._histograms = Histograms(rows, NO_PAIRS, limits, len(self._tree.node), NEVER_PACKED, workspace)

    def grow(self) -> None:
        """Grow level by level or leaf by leaf, by ``limits.growth``."""
        at_once = 1 if self._limits.growth == "leafwise" else self._limits.max_leaves
        self._find_splits()
        if self._forced is not None:
            of_tree = self._tree, self._histograms, self._search, self._limits.max_leaves
            force(self._forced, *of_tree, self._split_and_search)
        while len(chosen := chosen_splits(self._tree, self._limits, at_once).copy()):
            self._split(chosen)
            self._find_splits()

    def _split_and_search(self, chosen: NDArray[np.int64]) -> None:
        self._split(chosen)
        self._find_splits()

    def finished(self, counts: NDArray[np.int64]) -> Nodes:
        """The tree. counts: (v,) rows of each node, counted by the shards."""
        node = self._tree.node[: self._tree.size]
        node[:, table.BEGIN], node[:, table.END] = 0, counts
        return self._tree.finished(self._units, self._layout)

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(v,) G and H of every node."""
        return self._tree.sums(self._units)

    def _find_splits(self) -> None:
        """Add up the shards' histograms of the smaller node of every new pair, and find the best splits of both."""
        new_pairs, cells, node, histograms = self._new_pairs, self._layout.n_cells, self._tree.node, self._histograms
        if not len(new_pairs):
            return
        built, siblings = new_pairs[:, 0], new_pairs[:, 1]
        answers = self._calls.ask(Shard.sum_up, self._number, built)
        slots = node[built, table.SLOT]
        for i, slot in enumerate(slots):
            total = sum(unpacked(shard_histograms[i], cells) for shard_histograms, _ in answers)
            histograms.of[slot] = np.reshape(total, -1)
        if histograms.counts.shape[1]:
            counts = sum(np.asarray(count) for _, count in answers)
            histograms.counts[slots] = counts
            some = siblings >= 0
            histograms.counts[node[siblings[some], table.SLOT]] -= histograms.counts[slots[some]]
        histograms.shared = np.empty((len(new_pairs), 0), np.int64)
        self._search.nodes(self._tree, histograms, new_pairs)
        self._new_pairs = new_pairs[:0]

    def _split(self, chosen: NDArray[np.int64]) -> None:
        """Make the children of these nodes here and on the shards, which sort their rows."""
        limits, tree, count = self._limits, self._tree, len(chosen)
        new_pairs, counts = np.empty((count, 3), np.int64), np.zeros((1, count), np.int64)
        deeper = tree.node[chosen, table.DEPTH] + 1 < limits.max_depth
        if deeper.any():
            counts[0, deeper] = sum(
                self._calls.ask(Shard.sort, self._number, chosen[deeper], *self._told(chosen[deeper]))
            )
        self._histograms.make_more_room(int(np.count_nonzero(deeper)))
        tree.lengthen(tree.size + 2 * count)
        slots, below = self._histograms.slots, child_limits(limits, self._units[1])
        tree.size, pairs = partition.add_children(chosen, tree.node, tree.size, slots, counts, below, new_pairs)
        self._new_pairs = new_pairs[:pairs]
        children = tree.node[chosen][:, [table.LEFT, table.RIGHT]]
        self._calls.tell(Shard.apply_splits, self._number, chosen, children, *self._told(chosen))

    def _told(self, nodes: NDArray[np.int64]) -> tuple[Array, Array]:
        """The splits of these nodes, in the form that is sent to the shards."""
        return self._tree.node[nodes][:, RULE], self._tree.left_set[nodes]
