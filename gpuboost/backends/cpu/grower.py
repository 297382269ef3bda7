"""A tree while it grows on the CPU: its nodes, its rows in their order, the histograms in use, and the search.

Every step is one kernel over a list of nodes. Work is parted by rows (histograms, partition) or by features (split
search), never by what a thread happens to get: sums are integers and searches are reduced in feature order, so the
number of threads leaves no trace.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu import histograms as cpu_histograms
from gpuboost.backends.cpu.best_first import Ahead
from gpuboost.backends.cpu.histograms import Histograms, free_slots
from gpuboost.backends.cpu.layout import SortedColumns
from gpuboost.backends.cpu.nodes import NodeTable
from gpuboost.backends.cpu.partition import RowsByNode
from gpuboost.backends.cpu.small_trees import Levels
from gpuboost.backends.cpu.split_search import Search
from gpuboost.backends.cpu.warm_up import HELPER
from gpuboost.backends.host.workspace import Workspace
from gpuboost.kernels.growth import partition
from gpuboost.types import Candidates, Cuts, Limits, Nodes


class CpuFrontier:
    """See the protocol's Frontier.

    packed: g and h of the rows as integers, by the bins' numbers of rows; weight: how many rows they stand for;
    totals, units: their sums, and the value of one unit of each. by_column: the columns to search without histograms,
    or None. narrow_rows: rows up to which histograms are narrow, if others than usual.
    """

    def __init__(
        self,
        rows: RowsByNode,
        packed: NDArray[np.int64],
        weight: int,
        totals: tuple[int, int],
        units: tuple[float, float],
        by_column: SortedColumns | None,
        cuts: Cuts,
        limits: Limits,
        candidates: Candidates,
        output: int,
        workspace: Workspace,
        narrow_rows: int | None = None,
    ) -> None:
        self.output, self.n_leaves, self.workspace = output, 1, workspace
        self._limits, self._units, self._by_column, self._packed = limits, np.array(units), by_column, packed
        self._rows, self._tree = rows, NodeTable(limits, len(rows))
        # Rows that a node needs to be split. Where several share a split, one heavy row is as good as two light ones.
        self._least_rows = 0 if limits.symmetric and limits.min_samples_leaf == 1 else 2 * limits.min_samples_leaf
        heavy = totals[1] > 0 and totals[1] * self._units[1] >= 2.0 * limits.min_child_weight
        can = limits.max_depth > 0 and len(rows) >= self._least_rows and heavy
        self._fresh = self._tree.sow(len(rows), totals, can_split=can)
        narrow = cpu_histograms.NARROW_ROWS if narrow_rows is None else narrow_rows
        rows_per_h, all_narrow = weight / max(totals[1], 1), len(rows) <= narrow
        self._search = Search(
            rows.layout, cuts, limits, candidates, output, self._units, rows_per_h, all_narrow, rows.team
        )
        self._ahead: Ahead | None = None
        self._levels: Levels | None = None
        most = len(self._tree.node)
        if by_column is None:
            self._histograms = Histograms(rows, packed, limits, most, narrow, workspace)
            if self._is_simple():
                self._levels = Levels(self._tree, rows, self._histograms, self._search, limits, self._least_rows)
        else:
            self._slots = free_slots(0, most)
        self._waiting = False  # whether the fresh pairs' histograms and search are left to ``split``

    def build_histograms(self) -> None:
        """Sum the smaller node of every fresh pair. The siblings follow in ``seek_splits``."""
        if not len(self._fresh) or self._by_column is not None:
            return
        if self._levels is None:
            self._histograms.build(self._tree, self._fresh)
        elif not self._levels.ahead:
            self._waiting = True

    def seek_splits(self) -> None:
        """Complete the histograms of every fresh pair and find the best split of each of its nodes."""
        if not len(self._fresh) or self._levels is not None:
            return
        if self._by_column is not None:
            self._search.by_column(self._tree, self._by_column, self._rows, self._packed, self._fresh)
        elif self._limits.symmetric:
            self._search.shared(self._tree, self._histograms, self._fresh)
        else:
            self._search.each(self._tree, self._histograms, self._fresh)
        self._fresh = self._fresh[:0]

    def _is_simple(self) -> bool:
        """Whether ``levels.grow`` will do: small data, and no node that is to wait for others or for random numbers."""
        search = self._search
        return search.plain and search.by_node is None and search.lots is None and not self._limits.symmetric

    def split(self, most: int | None) -> bool:
        """Split the best open nodes and send their rows on."""
        if self._levels is not None and self._split_levels(self._levels, most):
            return True
        room = self._limits.max_leaves - self.n_leaves
        # Nodes that draw their own features do so by number, which no node has before its turn.
        if most == 1 and self._search.by_node is None and not self._limits.symmetric:
            return room > 0 and self._split_next()
        most = room if most is None else min(most, room)
        symmetric, tree = self._limits.symmetric, self._tree
        count = partition.choose(tree.node, tree.size, tree.gain, tree.size if symmetric else most, tree.chosen)
        if count == 0 or (symmetric and count > room):  # a level is split as a whole
            return False
        self._split_nodes(tree.chosen[:count])
        self.n_leaves += count
        return True

    def _split_levels(self, levels: Levels, most: int | None) -> bool:
        """Split a level and those after it; False if nothing was split, and what was put off is done."""
        if levels.ahead:
            levels.next()
        elif not self._waiting:
            return False
        elif most is not None:
            self._waiting = False
            self._histograms.build(self._tree, self._fresh)
            self._search.each(self._tree, self._histograms, self._fresh)
            self._fresh = self._fresh[:0]
            return False
        else:
            self._waiting = False
            HELPER.wait()
            made, self._fresh = levels.grow(self._fresh)
            if not made:
                return False
        self.n_leaves = levels.n_leaves()
        return True

    def _split_next(self) -> bool:
        """The open node that gains most; with it, some whose turn is still to come."""
        ahead, tree = self._ahead or Ahead(self._limits.max_leaves - 1), self._tree
        made, self._ahead = self.n_leaves - 1, ahead
        if not ahead.knows(made):
            wanted = ahead.wanted(tree.node, tree.size, tree.gain)
            if len(wanted):
                self._split_nodes(wanted)
            elif not ahead.knows(made):
                return False
        self.n_leaves += 1
        return True

    def _split_nodes(self, chosen: NDArray[np.int64]) -> None:
        """Sort the rows of these nodes and make their children."""
        tree, limits = self._tree, self._limits
        n_deeper = partition.count_above(tree.node, chosen, limits.max_depth - 1)
        slots = self._slots_for(n_deeper)
        tree.lengthen(tree.size + 2 * len(chosen))
        self._fresh = self._rows.split(tree, chosen, n_deeper, slots, self._rule())

    def _slots_for(self, pairs: int) -> NDArray[np.int64]:
        """The stack of free slots, with enough for these."""
        if self._by_column is not None:
            return self._slots
        self._histograms.make_more_room(pairs)
        return self._histograms.slots

    def _rule(self) -> tuple[int, int, float, float]:
        """Which children may be split: see ``partition.add_children``."""
        return self._limits.max_depth, self._least_rows, self._limits.min_child_weight, self._units[1]

    def settle(self, *, wanted: bool = True) -> NDArray[np.int32]:
        """(m,) the leaf of every row, (0,) if it is not wanted. Ends the growth."""
        self._put_in_order()
        return self._rows.settle(self._tree, self._limits.max_depth, wanted=wanted)

    def _put_in_order(self) -> None:
        """Forget what was split ahead of a turn that never came."""
        if self._levels is not None:
            self._levels.cut_back()
        if self._ahead is not None:
            tree, splits = self._tree, self.n_leaves - 1
            tree.node, tree.gain, tree.left_set = self._ahead.in_order(
                tree.node, tree.size, tree.gain, tree.left_set, splits
            )
            tree.size = 2 * splits + 1

    def nodes(self) -> Nodes:
        """The finished tree, once its rows are settled."""
        return self._tree.finished(self._units, self._rows.layout)

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(v,) G and H of every node."""
        return self._tree.sums(self._units)
