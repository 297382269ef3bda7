"""Growth of a large tree by one call of each thread, for the kinds of splits that ``large_trees.grow`` supports."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.sums import multiplicity_of
from gpuboost.backends.cpu.trees.histograms import FIRST_SLOTS, PACKED_ROWS, Histograms
from gpuboost.backends.cpu.trees.layout import even
from gpuboost.backends.cpu.trees.nodes import NodeTable, least_rows
from gpuboost.backends.cpu.trees.partition import EVERY_ROW, RowsByNode
from gpuboost.backends.cpu.trees.small_trees import BOUNDED, MOST_RESULTS, OBLIVIOUS, PLAIN, WORK_PER_THREAD
from gpuboost.backends.cpu.trees.split_search import NO_FEATURES, Search
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics.fixed_point import NOT_FINITE
from gpuboost.errors import InputError
from gpuboost.kernels.common.fixed_point import BLOCK
from gpuboost.kernels.common.records import GrowthLimits, Shares, TreeGradients
from gpuboost.kernels.growth import large_trees as kernel
from gpuboost.kernels.growth.team import PAIRS, WORDS
from gpuboost.types import Candidates, Cuts, DenseBins, Gradients, Limits, Structure, Target, TrainingSet

LEAST_ROWS = PACKED_ROWS + 1  # smaller trees: ``small_trees``
CHUNKS_PER_THREAD: int = kernel.CHUNKS_PER_THREAD  # of rows
FEATURES_PER_GROUP = 64  # with fewer, the same cache lines would be read for several groups
ROOT = np.array([[0, -1, 0]])  # the first pair
PathBounds: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int64]]
"""See ``Bounds.of_pairs``"""
MOST_WORK = 1 << 28  # (row, feature) pairs in a call, a quarter of a second: then an interrupt is looked for


def suits(data: TrainingSet, target: Target, candidates: Candidates, limits: Limits) -> bool:
    """True if ``large_trees.grow`` supports the tree.

    It is for many dense rows, and for splits that do not depend on the number of rows, noise, random cuts, forced
    splits or path smoothing. Nodes may draw features in depth-wise trees alone, where the kernel numbers nodes as they
    are split. Arrays must be writable, although none is written to: for others numba would compile for several seconds.
    """
    bins, gradients = data.bins, target.gradients
    n_rows = gradients.g.shape[1]
    if n_rows < LEAST_ROWS or not isinstance(bins, DenseBins) or limits.min_samples_leaf > 1:
        return False
    needs_more = limits.path_smooth > 0.0 or limits.forced is not None
    if needs_more or candidates.chooses_by_more or candidates.cuts is not None:
        return False
    if candidates.by_node is not None and limits.growth != "depthwise":
        return False
    if limits.symmetric and (limits.bounded or limits.interactions is not None):
        return False
    read = bins.rows, bins.columns, gradients.g, gradients.h, gradients.multiplicity, target.rows
    if not all(array is None or (array.flags.writeable and array.flags.c_contiguous) for array in read):
        return False
    return _lines(limits, n_rows) * len(candidates.features) <= MOST_RESULTS


def kernel_kind(categorical: bool, limits: Limits) -> str:
    """The name of the kernel's variant for such trees; each is compiled by itself."""
    of_limits = OBLIVIOUS if limits.symmetric else BOUNDED if limits.bounded else PLAIN
    return of_limits + ("categorical" if categorical else "numeric")


def _lines(limits: Limits, n_rows: int) -> int:
    """Number of nodes that there may be."""
    return 2 * min(limits.max_leaves, int(2 ** min(limits.max_depth, 62)), n_rows)


def _most_slots(limits: Limits, search: Search) -> int:
    """Number of histograms of a leaf-wise tree, after which the leaves that are least likely to be split lose theirs.

    Of 255 leaves, 150 wait for their split at the same time, and hardly one of the last third is split. At least a
    quarter is needed, two for each node that is split ``best_first.at_once``. Where searches depend on the nodes above,
    which are found by pairs, every leaf keeps its histogram, so that its children are a pair.
    """
    if limits.growth != "leafwise" or search.follows_paths:
        return EVERY_ROW
    return max(3 * limits.max_leaves // 8, FIRST_SLOTS)


class LargeTree:
    """A tree that is grown by all threads at once; the rows' list and integers are written meanwhile."""

    def __init__(
        self, rows: RowsByNode, gradients: Gradients, output: int, cuts: Cuts, limits: Limits, candidates: Candidates,
        workspace: Workspace,
    ) -> None:  # fmt: skip
        self._rows, self._limits, self._output, self._workspace = rows, limits, output, workspace
        layout, m = rows.layout, len(rows)
        work = m * len(layout.features)
        self._threads = max(rows.pool.n_parts(work, WORK_PER_THREAD), 2)
        self._tree, self._units = NodeTable(limits, m), np.ones(2)
        groups = min(max(len(layout.features) // FEATURES_PER_GROUP, 1), CHUNKS_PER_THREAD * self._threads)
        self._groups = even(layout.starts, groups)
        self._search = Search(layout, cuts, limits, candidates, output, self._units, False, rows.pool)
        packed = workspace.array("packed", (m,), np.int64)
        parts = max(-(-CHUNKS_PER_THREAD * self._threads // groups), 2)
        self._most_slots = _most_slots(limits, self._search)
        most = min(len(self._tree.node), self._most_slots)
        self._histograms = Histograms(rows, packed, limits, most, PACKED_ROWS, workspace, parts)
        self._gradients = self._of(gradients)
        self._words = np.zeros(WORDS, np.int64)
        self._shares = self._shared()

    def grow(self, target: Target) -> Structure:
        """The finished tree. The leaves of rows are not computed if the tree was grown from a sample.

        Raises:
            InputError: if a gradient is not a finite number.
        """
        tree, every, why = self._tree, target.rows is None, kernel.LONG
        leaf_of_row = self._rows.room_for_leaves(wanted=every)
        while why != kernel.FINISHED:
            why = self._call(leaf_of_row)
            tree.size = int(self._words[kernel.NODES])
            if why == kernel.NOT_FINITE:
                raise InputError(NOT_FINITE)
            if why == kernel.NO_ROOM:
                tree.lengthen(tree.size + 2 * int(self._words[kernel.COUNT]))
                self._histograms.make_more_room(int(self._words[kernel.DEEPER]))
                self._shares = self._shared()
        sums = tree.sums(self._units) if target.gives_leaf_sums else None
        nodes = tree.finished(self._units, self._rows.layout)
        return Structure(nodes, self._output, target.version, leaf_of_row if every else None, sums)

    def _call(self, leaf_of_row: NDArray[np.int32]) -> int:
        """Call the kernel on each thread. Returns the reason for which the first thread's call has ended."""
        limits, rows, layout, words = self._limits, self._rows, self._rows.layout, self._words
        bounds, by_node, most_work = self._before_call()
        of_tree = limits.max_leaves, limits.max_leaves, limits.max_depth, least_rows(limits)
        of_growth = GrowthLimits(*of_tree, EVERY_ROW, EVERY_ROW, most_work, self._most_slots)
        arguments = (
            layout.arrays, of_growth, rows.columns(), self._histograms.rows, self._histograms.arrays,
            self._search.criterion, self._tree.arrays, self._gradients,
        )  # fmt: skip
        records: Any = tuple(map(tuple, arguments))
        leaf_wise, shares, ends = limits.growth == "leafwise", tuple(self._shares), [0]
        level = np.empty(2 * len(self._shares.left), np.int64) if limits.symmetric else None
        words[0] = 0

        def grow(part: int) -> None:
            kernel_arguments = leaf_wise, layout.kinds_if_any, level, bounds, by_node, *records, leaf_of_row, shares
            if part:
                kernel.grow(kernel.HELP, *kernel_arguments)
                return
            try:
                ends[0] = kernel.grow(kernel.LEAD, *kernel_arguments)
            finally:
                words[0] = -1  # an interrupt may have come before the call

        rows.pool.run_parts(self._threads, grow)
        return ends[0]

    def _before_call(self) -> tuple[PathBounds | None, NDArray[np.bool_], int]:
        """Bounds and features of the new pairs by node, and the work after which the call ends.

        Where the search of a node depends on those above it, a call searches these pairs, if there are any, and ends
        before it sums the next ones.
        """
        words, node, search = self._words, self._tree.node, self._search
        words[kernel.WORK] = 0
        if not search.follows_paths:
            return None, NO_FEATURES, MOST_WORK
        first = words[kernel.STEP] == kernel.NOTHING
        pairs = ROOT if first else self._shares.left[: words[PAIRS]]
        below = pairs[:0] if first else pairs  # the root's bounds are there, and its sums are not
        bounds = None if search.bounds is None else search.bounds.of_pairs(below, node)
        if not len(pairs):
            words[kernel.WORK] = 1  # more than 0
        some = search.some_features and len(pairs) > 0
        return bounds, search.competing(self._tree, pairs, pairs[:, :2].ravel()) if some else NO_FEATURES, 0

    def _of(self, gradients: Gradients) -> TreeGradients:
        g, h, m = gradients.g[self._output], gradients.h[self._output], multiplicity_of(gradients)
        weight = len(g) if gradients.multiplicity is None else int(m.sum())
        extents = np.zeros((2, -(-len(g) // BLOCK), 3))
        return TreeGradients(g, h, m, float(weight), extents, np.zeros((self._most_stretches, 8), np.int64))

    @property
    def _most_stretches(self) -> int:
        return CHUNKS_PER_THREAD * self._threads

    def _shared(self) -> Shares:
        """Memory for what the threads share; made anew when the tree has more nodes."""
        layout, workspace, stretches = self._rows.layout, self._workspace, self._most_stretches
        t, lines = len(layout.features), len(self._tree.node) + 1
        return Shares(
            self._words, np.zeros(max(stretches, len(self._histograms.scratch)) + 1, np.int64), self._groups,
            even(layout.starts, min(stretches, t)), np.empty((lines, 3), np.int64),
            np.empty((lines, len(self._histograms.scratch)), np.int64), np.empty((stretches, lines), np.int64),
            workspace.array("gains", (lines, t), np.float64), workspace.array("splits", (lines, t, 4), np.int64),
            workspace.array("left sets", (lines, t if layout.some_categorical else 0, 8), np.uint32),
        )  # fmt: skip
