"""A tree while it grows from rows on many machines: their histograms added up here, and the splits chosen here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.grower import CpuFrontier
from gpuboost.backends.cpu.layout import Layout
from gpuboost.backends.cpu.partition import RowsByNode
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.sharded.rows import RULE, unpacked
from gpuboost.kernels.common import nodes as table
from gpuboost.kernels.growth import partition
from gpuboost.types import Array, Bins, Candidates, Cuts, Limits

NO_PAIRS, NO_INTS = np.empty(0, np.int64), np.empty(0, np.int32)
ALWAYS_WIDE = -1  # rows up to which histograms are narrow: sums of many shards are kept as two integers

Ask = Callable[..., list[Any]]
"""(method of ``Shard``, arguments after the tree's number) -> the answers"""


class RowsElsewhere(Workspace):
    """The driver has no rows to sort, so it needs no room for them."""

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        return np.empty(0, dtype) if name == "scratch rows" else super().array(name, shape, dtype)


class ShardedFrontier(CpuFrontier):
    """See the protocol's Frontier. Its table is the whole tree's; ``n_rows`` are the rows of all shards together."""

    def __init__(
        self,
        tree: int,
        ask: Ask,
        tell: Callable[..., None],
        empty_bins: Bins,
        cuts: Cuts,
        layout: Layout,
        n_rows: int,
        weight: int,
        totals: tuple[int, int],
        units: tuple[float, float],
        limits: Limits,
        output: int,
        team: ThreadPool,
        workspace: Workspace,
        candidates: Candidates,
    ) -> None:
        self.tree, self._ask, self._tell = tree, ask, tell
        of_all = np.broadcast_to(np.int32(0), (n_rows,))  # only how many they are is ever looked at
        rows = RowsByNode(empty_bins, layout, None, of_all, NO_INTS, team, workspace)
        super().__init__(
            rows, NO_PAIRS, weight, totals, units, None, cuts, limits, candidates, output, workspace, ALWAYS_WIDE
        )

    def build_histograms(self) -> None:
        fresh, cells, node, histograms = self._fresh, self._rows.layout.n_cells, self._tree.node, self._histograms
        if not len(fresh):
            return
        built, siblings = fresh[:, 0], fresh[:, 1]
        answers = self._ask("sum_up", self.tree, built)
        slots = node[built, table.SLOT]
        for i, slot in enumerate(slots):
            total = sum(unpacked(found[i], cells) for found, _ in answers)
            histograms.of[slot] = np.reshape(total, -1)
        if histograms.counts.shape[1]:
            counts = sum(count for _, count in answers)
            histograms.counts[slots] = counts
            some = siblings >= 0
            histograms.counts[node[siblings[some], table.SLOT]] -= histograms.counts[slots[some]]
        histograms.shared = np.empty((len(fresh), 0), np.int64)

    def split(self, most: int | None) -> bool:
        room, limits, tree, before = self._limits.max_leaves - self.n_leaves, self._limits, self._tree, self._tree.size
        most = before if limits.symmetric else room if most is None else min(most, room)
        chosen = np.empty(before, np.int64)
        count = partition.choose(tree.node, before, tree.gain, most, chosen)
        if count == 0 or count > room:  # a level that several nodes share is split as a whole
            return False
        chosen, fresh, counts = chosen[:count], np.empty((count, 3), np.int64), np.zeros((1, count), np.int64)
        deeper = tree.node[chosen, table.DEPTH] + 1 < limits.max_depth
        if deeper.any():
            counts[0, deeper] = sum(self._ask("sort", self.tree, chosen[deeper], *self._told(chosen[deeper])))
        self._histograms.make_more_room(int(np.count_nonzero(deeper)))
        tree.lengthen(before + 2 * count)
        tree.size, pairs = partition.add_children(
            chosen, tree.node, before, self._histograms.slots, counts, *self._rule(), fresh
        )
        self._fresh = fresh[:pairs]
        self.n_leaves += count
        children = tree.node[chosen][:, [table.LEFT, table.RIGHT]]
        self._tell("bear", self.tree, chosen, children, *self._told(chosen))
        return True

    def _told(self, nodes: NDArray[np.int64]) -> tuple[Array, Array]:
        """The splits of these nodes, as shards are told them."""
        return self._tree.node[nodes][:, RULE], self._tree.left_set[nodes]

    def counted(self, counts: NDArray[np.int64]) -> None:
        """Take the (v,) rows of each node, which only the shards know. Ends the growth."""
        node = self._tree.node[: self._tree.size]
        node[:, table.BEGIN], node[:, table.END] = 0, counts
