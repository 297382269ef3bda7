"""Levels of a small tree: one call of the kernel ``small_trees.grow`` does several of them.

Where leaves need several rows, their values have bounds, paths are restricted, or nodes draw cuts or features, a kernel
of ``small_general_trees`` does them all, on one thread; where nodes share splits, ``small_oblivious_trees.grow`` does.

A leaf-wise tree has one split in each level. One thread grows all of it in one call; several threads have too little
to do in such a level, and split more leaves at once, speculatively (``best_first``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.trees import histograms as cpu_histograms
from gpuboost.backends.cpu.trees import split_search as cpu_search
from gpuboost.backends.cpu.trees.histograms import Histograms
from gpuboost.backends.cpu.trees.layout import NO_LONGS, even
from gpuboost.backends.cpu.trees.nodes import ROOT_PAIR, NodeTable
from gpuboost.backends.cpu.trees.partition import EVERY_ROW, RowsByNode
from gpuboost.backends.cpu.trees.split_search import Search, no_splits
from gpuboost.backends.host.threads import share
from gpuboost.backends.host.workspace import Workspace
from gpuboost.kernels.common.by_address import is_compiled
from gpuboost.kernels.common.records import GrowthLimits, HistogramArrays, Team
from gpuboost.kernels.growth import small_general_trees, small_oblivious_trees, small_trees, team
from gpuboost.types import Limits

WORK_PER_THREAD = 262_144  # below this many bins to sum and cells to search in a tree a thread is not worth waking
LEAST_TOGETHER = 1 << 20  # below this one thread grows trees alone, since it can repeat rounds without Python
ROWS_PER_NODE = 8  # cells of nodes of fewer rows than that are not counted, since most of them are empty
AT_ONCE = 4  # features that ``histogram.build_features`` sums in one loop
MOST_ONE_BY_ONE = 2_048  # leaves; every choice of one looks at all nodes, so speculative splits of more take less time
CHUNKS_PER_THREAD = 1  # of a level's work
MOST_RESULTS = 1 << 20  # (node, feature) pairs up to which a team has room for results
PLAIN, GENERAL, BOUNDED, OBLIVIOUS = "", "general-", "bounded-", "oblivious-"
"""Variants of kernels: for plain trees, for those of more rules, for bounded leaf values, and for oblivious trees"""

NO_SHARED = np.empty((0, 0), np.int64)
NO_RESULTS = np.empty((0, 0)), np.empty((0, 0, 4), np.int64), np.empty((0, 0, 8), np.uint32)
ALONE = NO_LONGS, NO_LONGS, *NO_RESULTS  # a ``Team`` of one thread


class Levels:
    """Growth of several levels of a tree in one kernel call. ``suit``: True if that is the fastest way to grow it."""

    def __init__(
        self, tree: NodeTable, rows: RowsByNode, histograms: Histograms, search: Search, limits: Limits,
        least_rows: int, workspace: Workspace,
    ) -> None:  # fmt: skip
        """least_rows: number of rows that a node needs to be split."""
        self._workspace = workspace
        self._tree, self._rows, self._histograms, self._search = tree, rows, histograms, search
        self._threads = self._team_size()
        layout, alone = rows.layout, self._threads == 1
        most_summed = EVERY_ROW if alone else -(-2 * cpu_histograms.ROWS_PER_THREAD // histograms.lines_of_eight)
        most_searched = EVERY_ROW if alone else -(-2 * cpu_search.CELLS_PER_THREAD // layout.n_cells)
        leaf_wise = limits.growth == "leafwise"
        self.at_once = 1 if leaf_wise else limits.max_leaves  # nodes that a level may split
        self.variant = _variant(search, limits)
        one_thread = leaf_wise or self.variant != PLAIN
        self.suit = not one_thread or (alone and (not leaf_wise or limits.max_leaves <= MOST_ONE_BY_ONE))
        self._limits = GrowthLimits(
            limits.max_leaves, self.at_once, limits.max_depth, least_rows, most_summed, most_searched, *[EVERY_ROW] * 2
        )
        self._last_records: tuple[NDArray[np.int64], HistogramArrays, tuple[tuple[Any, ...], ...]] | None = None

    def grow(self, new_pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], bool]:
        """Split this level and the next ones until a step is large, or there is no room.

        Returns the new pairs left to sum and search, and True if the tree is finished.
        """
        if self._threads == 1:
            return self._grow_alone(new_pairs)
        return self._grow_together(new_pairs, self._threads) if self._threads else self._grow_in_steps(new_pairs)

    def _grow_alone(self, new_pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], bool]:
        tree, kinds = self._tree, self._rows.layout.kinds_if_any
        shared, left = np.empty((len(new_pairs), 0), np.int64), np.empty((len(tree.node), 3), np.int64)
        level = tree.size, new_pairs, shared, left
        first = small_trees.BUILD, small_trees.ON, 0, 0, len(self._rows), kinds
        tree.size, pairs = self.kernel(*first, NO_RESULTS, level, *self._records(), self._rules())
        return left[: max(pairs, 0)], pairs == 0

    @property
    def kernel(self) -> Any:
        """The compiled function that grows the tree on one thread."""
        general = small_general_trees
        return {
            PLAIN: small_trees.grow, GENERAL: general.grow, BOUNDED: general.grow_within_bounds,
            OBLIVIOUS: small_oblivious_trees.grow,
        }[self.variant]  # fmt: skip

    def of_root(self) -> tuple[Any, ...] | None:
        """Arguments of the kernel for a tree of one node; None if several threads grow it."""
        if self._threads != 1:
            return None
        rows, kinds = self._rows, self._rows.layout.kinds_if_any
        level = 1, ROOT_PAIR, np.empty((1, 0), np.int64), np.empty((len(self._tree.node), 3), np.int64)
        first = small_trees.BUILD, small_trees.ON, 0, 0, len(rows), kinds
        return (*first, NO_RESULTS, level, *self._records(), self._rules())

    def _rules(self) -> tuple[Any, ...]:
        """The last argument of the kernel on one thread."""
        has_rules = self.variant in (GENERAL, BOUNDED)
        return tuple(self._search.rules(len(self._tree.node))) if has_rules else ALONE

    def is_compiled(self) -> bool:
        """True if the kernel need not be compiled for one thread."""
        return bool(is_compiled(self.kernel, *(self.of_root() or ())))

    def _records(self) -> tuple[tuple[Any, ...], ...]:
        """The arguments of the kernel that stay as they are until there is more room."""
        tree, histograms, last = self._tree, self._histograms, self._last_records
        if last is None or last[0] is not tree.node or last[1] is not histograms.arrays:
            arguments = (
                self._limits, tree.arrays, self._rows.layout.arrays, self._rows.columns(), histograms.rows,
                histograms.arrays, self._search.criterion,
            )  # fmt: skip
            # numba recognizes a plain tuple in less than half the time of a named one
            last = self._last_records = tree.node, histograms.arrays, tuple(map(tuple, arguments))
        return last[2]

    def _grow_in_steps(self, new_pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], bool]:
        """The same, but the first step may be taken by several threads."""
        pool, tree, layout = self._rows.pool, self._tree, self._rows.layout
        kinds, step, results = layout.kinds_if_any, small_trees.BUILD, NO_RESULTS
        total, summers = self._histograms.summers(tree, new_pairs)
        searchers = self._search.searchers(len(new_pairs))
        shared = np.empty((len(new_pairs), summers if summers > 1 else 0), np.int64)
        shared[:] = -1
        left = np.empty((len(tree.node), 3), np.int64)
        records = ((tree.size, new_pairs, shared, left), *self._records(), ALONE)
        if summers > 1 or searchers > 1:
            step = small_trees.SEARCH

            def sum_rows(part: int) -> None:
                row_range = share(total, part, summers) if summers > 1 else (0, len(self._rows))
                line, _ = small_trees.grow(
                    small_trees.BUILD, small_trees.SEARCH, part, *row_range, kinds, results, *records
                )
                if line >= 0:
                    shared[line, part] = part

            pool.run_parts(summers, sum_rows)
        if searchers > 1:
            step, results = small_trees.SPLIT, tuple(no_splits(layout, len(new_pairs)))
            bounds = even(layout.starts, searchers).tolist()

            def search(part: int) -> None:
                feature_range = bounds[part : part + 2]
                small_trees.grow(small_trees.SEARCH, small_trees.SPLIT, 0, *feature_range, kinds, results, *records)

            pool.run_parts(searchers, search)
        tree.size, pairs = small_trees.grow(step, small_trees.ON, 0, 0, len(self._rows), kinds, results, *records)
        return left[: max(pairs, 0)], pairs == 0

    def _team_size(self) -> int:
        """Number of threads that grow the tree in one call. 0: each level divides its rows, then its features.

        That is how sparse bins are summed, since their rows are not divided by features.
        """
        rows, t, lines = self._rows, len(self._rows.layout.features), len(self._tree.node) + 1
        if rows.pool.size == 1:
            return 1
        if not rows.layout.rows.shape[1] or lines * t > MOST_RESULTS:
            return 0
        work = len(rows) * t + rows.layout.n_cells * min(lines, len(rows) // ROWS_PER_NODE) // 2
        return 1 if work < LEAST_TOGETHER else min(rows.pool.n_parts(work, WORK_PER_THREAD), -(-t // AT_ONCE))

    def _grow_together(self, new_pairs: NDArray[np.int64], threads: int) -> tuple[NDArray[np.int64], bool]:
        """All levels by one call of each thread, so that no pairs are left."""
        rows, tree, layout, workspace = self._rows, self._tree, self._rows.layout, self._workspace
        t, lines = len(layout.features), len(tree.node) + 1
        chunks = min(CHUNKS_PER_THREAD * threads, t)
        words, left = np.zeros(team.WORDS, np.int64), np.empty((lines, 3), np.int64)
        shared = Team(
            words, _bounds(t, chunks),
            workspace.array("gains", (lines, t), np.float64), workspace.array("splits", (lines, t, 4), np.int64),
            workspace.array("left sets", (lines, t if layout.some_categorical else 0, 8), np.uint32),
        )  # fmt: skip
        records = ((tree.size, new_pairs, NO_SHARED, left), *self._records(), tuple(shared))
        ends = [(0, 0)] * threads

        def grow(part: int) -> None:
            step = small_trees.HELP if part else small_trees.BUILD
            try:
                ends[part] = small_trees.grow(
                    step, small_trees.ON, 0, 0, len(rows), layout.kinds_if_any, NO_RESULTS, *records
                )
            finally:
                if part == 0:  # an interrupt may have come before the call
                    words[0] = -1

        rows.pool.run_parts(threads, grow)
        tree.size, pairs = ends[0]
        return left[: max(pairs, 0)], pairs == 0


def _variant(search: Search, limits: Limits) -> str:
    """The variant of the kernel of small trees that grows such a tree."""
    of_search = BOUNDED if limits.bounded else GENERAL if search.is_general else PLAIN
    return OBLIVIOUS if limits.symmetric else of_search


def _bounds(t: int, parts: int) -> NDArray[np.int64]:
    """(parts + 1,) bounds of about equal parts of t features, multiples of AT_ONCE but for the last."""
    groups = -(-t // AT_ONCE)
    return np.minimum(np.arange(parts + 1) * groups // parts * AT_ONCE, t)
