"""A tree on dummy data, step by step: each step compiles the kernels that the same step of a real tree needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.trees.histograms import PACKED_ROWS, Histograms
from gpuboost.backends.cpu.trees.large_trees import LargeTree
from gpuboost.backends.cpu.trees.layout import NO_INTS, SortedColumns, layout_of
from gpuboost.backends.cpu.trees.nodes import NodeTable
from gpuboost.backends.cpu.trees.partition import RowsByNode
from gpuboost.backends.cpu.trees.small_trees import Levels
from gpuboost.backends.cpu.trees.split_search import Search
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspace, count_up
from gpuboost.kernels.common.fixed_point import BLOCK
from gpuboost.kernels.common.records import ChildLimits
from gpuboost.kernels.growth import partition
from gpuboost.types import Candidates, Cuts, DenseBins, Gradients, Limits, Target

D, BINS = 4, 9
PLAIN = Limits(max_leaves=8)


def is_usual(limits: Limits, candidates: Candidates, by_column: SortedColumns | None, n_rows: int) -> bool:
    """True if a tree runs the same kernels as the dummy one."""
    plain = limits.min_samples_leaf == 1 and not limits.signed and candidates.root is None and candidates.cuts is None
    each = by_column is None and not limits.bounded and not limits.symmetric
    return each and (plain or n_rows > PACKED_ROWS)


class DummyTree:
    """The steps of ``Cpu`` for a tree on dummy data: dense, by every feature, without constraints.

    The steps are independent of each other, so they may run in any order, and in several processes.
    """

    def __init__(self, *, large: bool, categorical: bool, limits: Limits = PLAIN) -> None:
        """large: more rows than ``small_trees.grow`` is for; categorical: a feature is categorical."""
        n, self._pool, self._workspace = BLOCK + 1 if large else 256, ThreadPool(1), Workspace()
        self._large, self._limits = large, limits
        columns = np.tile(np.arange(n) % BINS, (D, 1)).astype(np.uint8)
        codes = np.arange(BINS, dtype=np.int64)
        cuts = Cuts((np.arange(BINS - 1.0),) * D, (codes if categorical else None, None, None, None))
        bins, candidates = DenseBins(np.ascontiguousarray(columns.T), columns), Candidates(np.arange(D, dtype=np.int32))
        self._cuts, self._candidates = cuts, candidates
        layout = layout_of(bins, cuts, candidates, by_column=False)
        self._rows = RowsByNode(
            bins, layout, None, count_up(np.empty(n, np.int32)), NO_INTS, self._pool, self._workspace
        )
        units = np.ones(2)
        self._search = Search(layout, cuts, self._limits, candidates, 0, units, n <= PACKED_ROWS, self._pool)
        self._tree = NodeTable(self._limits, n)
        self._new_pairs = self._tree.init_root(n, (0, n), can_split=True)
        max_nodes, packed = len(self._tree.node), np.ones(n, np.int64)
        self._histograms = Histograms(self._rows, packed, self._limits, max_nodes, PACKED_ROWS, self._workspace)
        self._histograms.of[:] = 0
        self._child_limits = ChildLimits(self._limits.max_depth, 0, self._limits.min_child_weight, units[1])

    def pack(self) -> None:
        """Gradients as integers."""
        values = np.ones((1, len(self._rows)), np.float32)

        def at_once(n_rows: int, work: Callable[[int, int, int], object]) -> None:
            work(0, 0, n_rows)

        packed = np.empty(len(self._rows), np.int64)
        cpu_sums.pack(Gradients(values, values, None), 0, self._pool, at_once, packed)

    def sum(self) -> None:
        """Histograms."""
        self._histograms.build(self._tree, self._new_pairs)

    def search(self) -> None:
        """The best split of every node."""
        self._search.each(self._tree, self._histograms, self._new_pairs)

    def split(self) -> None:
        """Children and their rows, for an empty list of nodes."""
        tree, none = self._tree, np.empty(0, np.int64)
        partition.choose(tree.node, 0, tree.gain, 0, tree.chosen)
        partition.count_above(tree.node, none, 0)
        partition.rows_in(tree.node, none)
        self._rows.split(tree, none, 0, self._histograms.slots, self._child_limits)
        if self._large:
            self._rows.sort(tree, none)

    def settle(self) -> None:
        """The leaf of every row, and the finished tree."""
        tree, rows, depth, units = self._tree, self._rows, self._limits.max_depth, np.ones(2)
        if self._large:
            rows.settle(tree, depth)
            tree.finished(units, rows.layout)
        tree.finish(rows.columns(), rows.rows, units, depth, rows.room_for_leaves(wanted=True))

    def levels(self) -> None:
        """The levels of a small tree, in one call."""
        if not self._large:
            tree, rows, limits, workspace = self._tree, self._rows, self._limits, self._workspace
            Levels(tree, rows, self._histograms, self._search, limits, 0, workspace).grow(self._new_pairs)

    def together(self) -> None:
        """The whole tree, as several threads grow it in one call of each."""
        values = np.ones((1, len(self._rows)), np.float32)
        gradients = Gradients(values, values, None)
        known = self._cuts, self._limits, self._candidates, self._workspace
        LargeTree(self._rows, gradients, 0, *known).grow(Target(0, None, gradients))
