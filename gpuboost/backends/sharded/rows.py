"""A shard's rows while a tree grows: the driver decides, a shard sums, sorts and counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu_frontier import SORTED_PER_THREAD, CpuFrontier
from gpuboost.kernels import nodes as table
from gpuboost.kernels import partition
from gpuboost.types import Array

_LOW = np.int64(0xFFFF_FFFF)

RULE = [table.FEATURE, table.BIN, table.MISSING_LEFT]


class ShardRows(CpuFrontier):
    """A frontier that seeks no splits: its table holds this shard's rows of each node, and the splits it is told of."""

    def _is_simple(self) -> bool:
        return False  # no step may be put off until the next: the driver waits for its result

    def sum_up(self, built: NDArray[np.int64]) -> tuple[list[Array], Array | None]:
        """The histograms of these nodes, one array each: packed pairs if the node is small, else sums of g and of h.

        With them the (p, cells) counts of rows, where a leaf must hold more than one.
        """
        cells, none = self._layout.n_cells, np.full_like(built, -1)
        self._make_slots(len(built))
        self._node[built, table.SLOT] = np.arange(len(built))
        self._fresh = np.stack([built, none, none], axis=1)
        self.build_histograms()
        found = []
        for i, at in enumerate(built):
            size = int(self._node[at, table.END] - self._node[at, table.BEGIN])
            own = self._histograms[i, :cells] if size <= self._narrow_rows else self._histograms[i]
            parts = [self._spare[part, : len(own)] for part in self._shared[i] if part >= 0]
            found.append(np.add.reduce([own, *parts]))
        self._fresh = self._fresh[:0]
        return found, self._counts[: len(built)].copy() if self._counts.shape[1] else None

    def sort(self, chosen: NDArray[np.int64], rule: Array, left_sets: Array) -> NDArray[np.int64]:
        """Rows of these nodes in the order of their children; (c,) how many of each went left."""
        self._node[chosen[:, None], RULE] = rule
        self._left_set[chosen] = left_sets
        lefts = self._sorted(chosen)
        self._node[chosen, table.LEFT_H] = lefts  # remembered until ``bear``
        return lefts

    def bear(self, chosen: NDArray[np.int64], children: Array, rule: Array, left_sets: Array) -> None:
        """The children (c, 2) of these nodes. Of a last level's nodes the rows are not sorted: see ``settle``."""
        self._lengthen_table(int(children.max()) + 1)
        node = self._node
        node[chosen[:, None], RULE] = rule
        self._left_set[chosen] = left_sets
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
        self._n_nodes = int(children.max()) + 1

    def count(self) -> NDArray[np.int64]:
        """(v,) rows of each node, once they are settled."""
        node = self._node[: self._n_nodes]
        return np.asarray(node[:, table.END] - node[:, table.BEGIN])

    def _sorted(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        node = self._node
        total = int((node[chosen, table.END] - node[chosen, table.BEGIN]).sum())
        parts = max(1, min(self._team.size, total // SORTED_PER_THREAD))
        counts = np.zeros((self._team.size, len(chosen)), np.int64)
        bounds = np.array([total * part // parts for part in range(parts + 1)], np.int64)

        def sort(part: int) -> None:
            if part < parts:
                partition.sort_stretches(
                    *self._columns(), chosen, node, self._left_set, self._n_bins, self._kinds, self._rows,
                    self._scratch_rows, bounds[part], bounds[part + 1], counts[part],
                )  # fmt: skip

        def copy(part: int) -> None:
            if part < parts:
                partition.copy_stretches(chosen, node, self._rows, self._scratch_rows, bounds, part, counts)

        self._run(parts, sort)
        self._run(parts, copy)
        return np.asarray(counts.sum(axis=0))

    def _make_slots(self, wanted: int) -> None:
        """Histograms for so many nodes; those of earlier nodes are with the driver."""
        if wanted > len(self._histograms):
            self._make_room(max(wanted, 2 * len(self._histograms)))


def unpacked(histogram: Array, cells: int) -> Array:
    """(2, cells) int64 sums of g and of h, of one array of ``ShardRows.sum_up``."""
    if len(histogram) == cells:
        return np.stack([histogram >> 32, histogram & _LOW])
    return histogram.reshape(2, cells)
