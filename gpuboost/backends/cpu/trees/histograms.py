"""The histograms of a growing tree on the CPU, and their memory: slots are freed and used again.

Threads sum stretches of the rows of a pair's smaller node; the search completes both histograms (``split``).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.trees.nodes import NodeTable
from gpuboost.backends.cpu.trees.partition import RowsByNode
from gpuboost.backends.host.threads import share
from gpuboost.backends.host.workspace import Workspace
from gpuboost.kernels.common.records import HistogramArrays, RowArrays
from gpuboost.kernels.histograms import histogram
from gpuboost.types import Limits

ROWS_PER_THREAD = 32_768  # below this many (row, entry / 8) pairs a thread is not worth waking
FIRST_SLOTS = 32  # histograms there is room for at first: a tree of depth 6 needs no more
FIRST_BYTES = 1 << 27  # or as many as fit: unused pages cost nothing, and to double the room copies all of them
NO_PARTS = np.empty((0, 0), np.int64)
_LOW = np.int64(0xFFFF_FFFF)
PACKED_ROWS = histogram.TILE  # nodes of up to this many rows have packed histograms


def free_slots(first: int, end: int) -> NDArray[np.int64]:
    """A stack of slots first .. end - 1, the lowest on top: its height, and then the slots from the bottom."""
    return _stack_of_slots(first, end).copy()


@lru_cache(maxsize=16)  # of trees of equal limits it is the same
def _stack_of_slots(first: int, end: int) -> NDArray[np.int64]:
    slots = np.zeros(end + 2, np.int64)
    slots[0], slots[1 : end - first + 1] = end - first, np.arange(end - 1, first - 1, -1)
    return slots


class Histograms:
    """Histograms by slot: ``of`` (slots, 2 cells) int64, sums of g and of h, or packed pairs of a node of few rows.

    ``counts`` (slots, cells) int32 are numbers of rows, (1, 0) if they are not needed. ``slots`` is the stack of free
    slots. ``shared`` (p, threads): the lines of ``spare`` that hold a part of each new pair's built node, or -1.
    """

    def __init__(
        self, rows: RowsByNode, packed: NDArray[np.int64], limits: Limits, most_nodes: int, packed_rows: int,
        workspace: Workspace, parts: int | None = None,
    ) -> None:  # fmt: skip
        """packed: g and h of every row as one integer; most_nodes: expected maximum number of nodes.

        parts: stretches of rows that are summed apart; None: one for each thread.
        """
        self._parts = rows.pool.size if parts is None else parts
        self.packed, self.packed_rows = packed, packed_rows
        self._rows, self._limits, self._workspace = rows, limits, workspace
        self._layout, self._pool = rows.layout, rows.pool
        layout = rows.layout
        self.rows = RowArrays(layout.rows, layout.row_start, layout.cells, packed, rows.rows, rows.scratch)
        self.shared = NO_PARTS
        self.lines_of_eight = (self._layout.entries_per_row + 7) // 8
        size = max(2 * self._layout.n_cells, 1)
        wanted = max(FIRST_SLOTS, FIRST_BYTES // (8 * size), workspace.room("histograms") // size)
        self.make_room(min(wanted, most_nodes))  # one per leaf, and as many again for speculative splits

    def make_room(self, n_slots: int) -> None:
        """Allocate ``n_slots`` histograms and the parts' scratch memory. Pages are committed at first use."""
        cells, parts = self._layout.n_cells, self._parts
        self.of = self._workspace.small_pages("histograms", (n_slots, 2 * cells), np.int64)
        self.counts = np.empty((n_slots, cells) if self._limits.min_samples_leaf > 1 else (1, 0), np.int32)
        self.scratch = np.zeros((parts, cells), np.int64)
        self.spare = np.empty((parts, 2 * cells + 1 if parts > 1 else 0), np.int64)
        self._all_slots = _stack_of_slots(1, n_slots)  # the root has slot 0
        self.slots = self._all_slots.copy()
        self._set_arrays()

    def clear(self) -> None:
        """Free every slot but the root's, for another tree."""
        if len(self.slots) == len(self._all_slots):
            self.slots[:] = self._all_slots
        else:  # there is more room by now
            self.make_room(len(self.of))
        self.shared = NO_PARTS

    @property
    def all_slots(self) -> NDArray[np.int64] | None:
        """The stack of free slots at the begin of a tree; None if slots have been allocated since."""
        return self._all_slots if len(self.slots) == len(self._all_slots) else None

    def make_more_room(self, wanted: int) -> None:
        """Make at least ``wanted`` slots free."""
        free = int(self.slots[0])
        if free >= wanted:
            return
        old = len(self.of)
        new = max(2 * old, old + wanted - free)
        self.of = np.concatenate([self.of, np.empty((new - old, self.of.shape[1]), np.int64)])
        self._workspace.keep("histograms", self.of)
        if self.counts.shape[1]:
            self.counts = np.concatenate([self.counts, np.empty((new - old, self.counts.shape[1]), np.int32)])
        more = free_slots(old, new)
        self.slots = np.concatenate([[free + new - old], self.slots[1 : free + 1], more[1:]])
        self._set_arrays()

    def _set_arrays(self) -> None:
        """``arrays``: the histograms as the kernels read them."""
        self.arrays = HistogramArrays(self.of, self.counts, self.scratch, self.spare, self.slots, self.packed_rows)

    def summers(self, tree: NodeTable, new_pairs: NDArray[np.int64]) -> tuple[int, int]:
        """Number of rows to sum for the new pairs, and number of threads to sum them."""
        total = self._rows.held_by(tree, new_pairs[:, 0])
        return total, self._pool.n_parts(total * self.lines_of_eight, ROWS_PER_THREAD)

    def build(self, tree: NodeTable, new_pairs: NDArray[np.int64]) -> None:
        """Sum the smaller node of every new pair."""
        total, parts = self.summers(tree, new_pairs)
        rows, layout, arrays = map(tuple, (self.rows, self._layout.arrays, self.arrays))
        self.shared = shared = np.empty((len(new_pairs), parts if parts > 1 else 0), np.int64)
        shared[:] = -1

        def sum_rows(part: int) -> None:
            stretch = share(total, part, parts)
            line = histogram.build(rows, layout, tree.node, new_pairs, arrays, part, *stretch)
            if line >= 0:
                shared[line, part] = part

        self._pool.run_parts(parts, sum_rows)
        if self._limits.min_samples_leaf > 1:
            self._count(tree, new_pairs)

    def part(self, line: int, *, is_packed: bool) -> NDArray[np.int64]:
        """A line of ``spare`` as the histogram of its node is: packed pairs, or sums of g and of h."""
        cells, part = self._layout.n_cells, self.spare[line]
        pairs: NDArray[np.int64] = part[:cells]
        if is_packed:
            return pairs
        return np.concatenate([pairs >> 32, pairs & _LOW]) if part[-1] else part[:-1]

    def _count(self, tree: NodeTable, new_pairs: NDArray[np.int64]) -> None:
        layout, t = self._layout.arrays, len(self._layout.features)
        if self._layout.rows.shape[1] == 0:
            histogram.count_sparse(self.rows, layout, tree.node, new_pairs, self.counts)
            return
        parts = min(self._pool.n_parts(len(self._rows), ROWS_PER_THREAD), t)

        def count(part: int) -> None:
            histogram.count(self.rows, layout, tree.node, new_pairs, *share(t, part, parts), self.counts)

        self._pool.run_parts(parts, count)
