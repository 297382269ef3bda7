"""A shard's rows during growth: the driver chooses the splits, a shard sums, sorts and counts its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.trees import histograms as cpu_histograms
from gpuboost.backends.cpu.trees.histograms import Histograms
from gpuboost.backends.cpu.trees.nodes import NodeTable
from gpuboost.backends.cpu.trees.partition import RowsByNode
from gpuboost.backends.host.workspace import Workspace
from gpuboost.kernels.common import nodes as table
from gpuboost.types import Array, Limits

_LOW = np.int64(0xFFFF_FFFF)

RULE = [table.FEATURE, table.BIN, table.MISSING_LEFT]


class ShardRows:
    """The part of growth that needs rows. Its table holds this shard's rows of each node, and the driver's splits."""

    def __init__(self, rows: RowsByNode, packed: NDArray[np.int64], limits: Limits, workspace: Workspace) -> None:
        """packed: see ``TreeGrower``."""
        self.workspace, self._rows, self._limits = workspace, rows, limits
        self._tree = NodeTable(limits, len(rows))
        self._tree.init_root(len(rows), (0, 0), can_split=False)
        self._histograms = Histograms(rows, packed, limits, len(self._tree.node), cpu_histograms.PACKED_ROWS, workspace)

    def sum_up(self, built: NDArray[np.int64]) -> tuple[list[Array], Array | None]:
        """The histograms of these nodes, one array each: packed pairs if the node is small, else sums of g and of h.

        Also the (p, cells) counts of rows, if min_samples_leaf > 1.
        """
        node, histograms, none = self._tree.node, self._histograms, np.full_like(built, -1)
        self._make_slots(len(built))
        node[built, table.SLOT] = np.arange(len(built))
        histograms.build(self._tree, np.stack([built, none, none], axis=1))
        node_histograms, cells = [], self._rows.layout.n_cells
        for i, node_number in enumerate(built):
            size = int(node[node_number, table.END] - node[node_number, table.BEGIN])
            is_packed = size <= histograms.packed_rows
            histogram = histograms.of[i, :cells] if is_packed else histograms.of[i]
            parts = [histograms.part(line, is_packed=is_packed) for line in histograms.shared[i] if line >= 0]
            node_histograms.append(np.add.reduce([histogram, *parts]))
        return node_histograms, histograms.counts[: len(built)].copy() if histograms.counts.shape[1] else None

    def sort(self, chosen: NDArray[np.int64], rule: Array, left_sets: Array) -> NDArray[np.int64]:
        """Sort the rows of these nodes into their children; (c,) numbers of rows that went left."""
        node = self._tree.node
        node[chosen[:, None], RULE] = rule
        self._tree.left_set[chosen] = left_sets
        lefts = np.asarray(self._rows.sort(self._tree, chosen).sum(axis=0))
        node[chosen, table.LEFT_H] = lefts  # remembered until ``apply_splits``
        return lefts

    def apply_splits(self, chosen: NDArray[np.int64], children: Array, rule: Array, left_sets: Array) -> None:
        """Make the children (c, 2) of these nodes. The rows of a last level's nodes are not sorted: see ``settle``."""
        self._tree.lengthen(int(children.max()) + 1)
        node = self._tree.node
        node[chosen[:, None], RULE] = rule
        self._tree.left_set[chosen] = left_sets
        left, right = children.T
        deeper = node[chosen, table.DEPTH] + 1 < self._limits.max_depth
        middle = node[chosen, table.BEGIN] + np.where(deeper, node[chosen, table.LEFT_H], 0)
        node[left, table.BEGIN], node[left, table.END] = node[chosen, table.BEGIN], middle
        node[right, table.BEGIN], node[right, table.END] = middle, node[chosen, table.END]
        node[chosen, table.LEFT], node[chosen, table.RIGHT] = left, right
        node[chosen, table.STATE] = table.SPLIT
        for child in (left, right):
            node[child, table.DEPTH] = node[chosen, table.DEPTH] + 1
            node[child, table.FEATURE], node[child, table.STATE] = -1, table.CLOSED
        self._tree.size = int(children.max()) + 1

    def settle(self) -> NDArray[np.int32]:
        """(m,) the leaf of every row. Ends the growth."""
        return self._rows.settle(self._tree, self._limits.max_depth)

    def count(self) -> NDArray[np.int64]:
        """(v,) rows of each node, once they are settled."""
        node = self._tree.node[: self._tree.size]
        return np.asarray(node[:, table.END] - node[:, table.BEGIN])

    def _make_slots(self, wanted: int) -> None:
        """Memory for the histograms of this many nodes; the driver holds those of earlier nodes."""
        if wanted > len(self._histograms.of):
            self._histograms.make_room(max(wanted, 2 * len(self._histograms.of)))


def unpacked(histogram: Array, cells: int) -> Array:
    """(2, cells) int64 sums of g and of h, from one array of ``ShardRows.sum_up``."""
    if len(histogram) == cells:
        return np.stack([histogram >> 32, histogram & _LOW])
    return histogram.reshape(2, cells)
