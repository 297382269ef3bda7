"""Row partition of a growing tree on the CPU: the rows of each node lie together and are sorted into its children."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.trees.layout import NO_BYTES, NO_INTS, NO_LONGS, NO_ROWS, Layout
from gpuboost.backends.cpu.trees.nodes import NodeTable
from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.host.workspace import Workspace, count_up
from gpuboost.kernels.common.records import ChildLimits, ColumnArrays
from gpuboost.kernels.growth import partition
from gpuboost.kernels.histograms import histogram
from gpuboost.kernels.sampling import gather
from gpuboost.types import Array, Bins, DenseBins, Target, TrainingSet

SORTED_PER_THREAD = 32_768  # below this many rows to sort a thread is not worth waking
EVERY_ROW = 1 << 40
ROWS, SCRATCH = "rows", "scratch rows"  # names in the workspace


class RowsByNode:
    """``rows`` (m,) int32: the target's rows, numbered as in the bins and ordered by node.

    The columns of dense bins may have other row numbers: if ``drawn`` is not empty, row k is drawn[k] there. Columns of
    sparse bins are searched for a row, or read from ``laid_out`` (see ``layout.laid_out``).
    """

    def __init__(
        self, bins: Bins, layout: Layout, laid_out: Array | None, rows: NDArray[np.int32], drawn: NDArray[np.int32],
        pool: ThreadPool, workspace: Workspace | None,
    ) -> None:  # fmt: skip
        """workspace: scratch memory to sort the rows; None if they are sorted elsewhere."""
        self._workspace = workspace
        scratch = NO_INTS if workspace is None else workspace.array(SCRATCH, rows.shape, rows.dtype)
        self.bins, self.rows, self.scratch = bins, rows, scratch
        self.layout, self.pool, self._laid_out, self._drawn = layout, pool, laid_out, drawn
        self._columns = self._columns_with(NO_BYTES)

    def __len__(self) -> int:
        return len(self.rows)

    def columns(self) -> ColumnArrays:
        """The arrays that hold the split features' bins, as the kernels read them; for one thread."""
        if len(self._columns.columns) or isinstance(self.bins, DenseBins):
            return self._columns
        return self._columns_with(np.empty(self.bins.shape[0], np.uint8))

    def _columns_with(self, buffer: NDArray[np.uint8]) -> ColumnArrays:
        """The same with that scratch memory for a sparse column."""
        bins, of_all = self.bins, (self.layout.n_bins_of_all, self.layout.kinds_of_all)
        if isinstance(bins, DenseBins):
            return ColumnArrays(bins.columns, NO_BYTES, NO_LONGS, NO_INTS, NO_BYTES, buffer, self._drawn, *of_all)
        if self._laid_out is not None:
            return ColumnArrays(self._laid_out, NO_BYTES, NO_LONGS, NO_INTS, NO_BYTES, buffer, NO_INTS, *of_all)
        entries = bins.default, bins.column_start, bins.row, bins.column_bin
        return ColumnArrays(NO_ROWS, *entries, buffer, NO_INTS, *of_all)

    def held_by(self, tree: NodeTable, some: NDArray[np.int64]) -> int:
        """Number of rows of these nodes; ``EVERY_ROW``, an upper bound, if there is only one thread."""
        return EVERY_ROW if self.pool.size == 1 else partition.rows_in(tree.node, np.ascontiguousarray(some))

    def split(
        self, tree: NodeTable, chosen: NDArray[np.int64], n_deeper: int, slots: NDArray[np.int64],
        limits: ChildLimits,
    ) -> NDArray[np.int64]:  # fmt: skip
        """Sort the rows of these nodes and make their children; return the new pairs.

        n_deeper: number of these nodes above the last level; slots, limits: see ``partition.add_children``.
        """
        new_pairs = np.empty((len(chosen), 3), np.int64)
        parts = self.pool.n_parts(self.held_by(tree, chosen), SORTED_PER_THREAD)
        if parts == 1 or n_deeper == 0:
            tree.size, pairs = partition.split_alone(
                tuple(self.columns()), self.rows, self.scratch, chosen, tree.node, tree.left_set, tree.size, slots,
                tuple(limits), np.empty((1, len(chosen)), np.int64), new_pairs,
            )  # fmt: skip
        else:
            counts = self.sort(tree, chosen)
            tree.size, pairs = partition.add_children(chosen, tree.node, tree.size, slots, counts, limits, new_pairs)
        return new_pairs[:pairs]

    def sort(self, tree: NodeTable, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sort the rows of the chosen nodes into their children; (threads, c) numbers of rows that went left."""
        total, node = partition.rows_in(tree.node, chosen), tree.node
        parts = self.pool.n_parts(total, SORTED_PER_THREAD)
        counts = np.zeros((self.pool.size, len(chosen)), np.int64)
        bounds = np.array([total * part // parts for part in range(parts + 1)], np.int64)

        def sort(part: int) -> None:
            partition.sort_stretches(
                self.columns(), self.rows, self.scratch, chosen, node, tree.left_set, bounds[part], bounds[part + 1],
                counts[part],
            )  # fmt: skip

        def copy(part: int) -> None:
            partition.copy_stretches(chosen, node, self.rows, self.scratch, bounds, part, counts)

        self.pool.run_parts(parts, sort)
        self.pool.run_parts(parts, copy)
        return counts

    def settlers(self) -> int:
        """Number of threads to settle the rows."""
        return self.pool.n_parts(len(self.rows), SORTED_PER_THREAD)

    def room_for_leaves(self, *, wanted: bool) -> NDArray[np.int32]:
        """(m,) for the leaf of every row of the bins, (0,) if it is not wanted.

        It is the scratch memory of many rows, if that is as long: nothing is sorted once the rows are settled. Few rows
        may be sorted again, for the next tree: see ``growth.KeptGrower``.
        """
        size = len(self.rows) if isinstance(self.bins, DenseBins) else self.bins.shape[0]
        if wanted and self._workspace is not None and len(self.scratch) == size > histogram.TILE:
            self._workspace.let_go(SCRATCH)
            return self.scratch
        return np.empty(size if wanted else 0, np.int32)

    def settle(self, tree: NodeTable, max_depth: int, *, wanted: bool = True) -> NDArray[np.int32]:
        """(m,) the leaf of every row, (0,) if it is not wanted.

        Sets the number of rows of the last level's children.
        """
        node = tree.node[: tree.size]
        settled = tree.chosen[: partition.to_settle(node, tree.size, max_depth, tree.chosen)]
        out, total, parts = self.room_for_leaves(wanted=wanted), len(self.rows), self.settlers()
        counts = np.zeros((parts, len(settled)), np.int64)

        def settle(part: int) -> None:
            partition.settle_rows(
                tuple(self.columns()), self.rows, settled, node, tree.left_set, *share(total, part, parts), out,
                counts[part],
            )  # fmt: skip

        self.pool.run_parts(parts, settle)
        partition.bound_last_level(node, settled, counts)
        return out


def lend_gradients(target: Target, output: int, workspace: Workspace) -> None:
    """Use the memory of g and h of this output for the list of rows and its copy, if no later tree reads them.

    A row's g and h are read for the last time as they are packed, before its place in the list is written.
    """
    gradients = target.gradients
    if gradients.disposable and target.rows is None and target.gives_leaf_sums:
        workspace.keep(ROWS, gradients.h[output].view(np.int32))
        workspace.keep(SCRATCH, gradients.g[output].view(np.int32))


def take_back_gradients(target: Target, workspace: Workspace) -> None:
    """Forget what ``lend_gradients`` did: the next round has other gradients."""
    if target.gradients.disposable:
        workspace.let_go(ROWS)
        workspace.let_go(SCRATCH)


def rows_of_target(
    data: TrainingSet,
    target: Target,
    workspace: Workspace,
    by_rows: Callable[[int, Callable[[int, int], object]], None],
    *,
    numbered: bool = True,
) -> tuple[Bins, NDArray[np.int32], NDArray[np.int32]]:
    """The bins that a tree is grown from, the list of its rows in them, and the rows' numbers in the columns.

    Sampled dense rows are copied side by side, so the cost of growth is proportional to their number. Sampled sparse
    rows are read through the list, since a copy would need new columns as well. by_rows: see ``Cpu._by_rows``.
    numbered: False where the list of dense rows, which is 0, 1, 2, ..., is written later.
    """
    number = count_up if numbered else lambda rows: rows
    if target.rows is None:
        return data.bins, number(workspace.array(ROWS, (data.n_rows,), np.int32)), NO_INTS
    if not isinstance(data.bins, DenseBins):
        return data.bins, target.rows.copy(), NO_INTS
    bins, m = data.bins, len(target.rows)
    rows = workspace.array("bins", (m, bins.shape[1]), np.uint8)
    by_rows(m, lambda a, b: gather.gather(bins.rows, target.rows, a, b, rows))
    return DenseBins(rows, bins.columns), number(workspace.array(ROWS, (m,), np.int32)), target.rows
