"""Levels of a small tree: one call of the kernel ``small_trees.grow`` does several of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu import histograms as cpu_histograms
from gpuboost.backends.cpu import split_search as cpu_search
from gpuboost.backends.cpu.histograms import Histograms
from gpuboost.backends.cpu.layout import even
from gpuboost.backends.cpu.nodes import NodeTable
from gpuboost.backends.cpu.partition import EVERY_ROW, RowsByNode
from gpuboost.backends.cpu.split_search import Search, no_splits
from gpuboost.backends.host.threads import share
from gpuboost.kernels.common.records import GrowthLimits, Level
from gpuboost.kernels.growth import small_trees
from gpuboost.types import Limits

NO_RESULTS = np.empty((0, 0)), np.empty((0, 0, 4), np.int64), np.empty((0, 0, 8), np.uint32)


class Levels:
    """Arguments of the kernel for a growing tree."""

    def __init__(
        self, tree: NodeTable, rows: RowsByNode, histograms: Histograms, search: Search, limits: Limits, least_rows: int
    ) -> None:
        """least_rows: number of rows that a node needs to be split."""
        self._tree, self._rows, self._histograms, self._search = tree, rows, histograms, search
        layout, alone = rows.layout, rows.pool.size == 1
        most_summed = EVERY_ROW if alone else -(-2 * cpu_histograms.ROWS_PER_THREAD // histograms.lines_of_eight)
        most_searched = EVERY_ROW if alone else -(-2 * cpu_search.CELLS_PER_THREAD // layout.n_cells)
        self._limits = GrowthLimits(limits.max_leaves, limits.max_depth, least_rows, most_summed, most_searched)

    def grow(self, new_pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Split this level and the next ones until a step is large; return the new pairs left to sum and search."""
        pool, tree, layout = self._rows.pool, self._tree, self._rows.layout
        histograms, kinds = self._histograms, layout.kinds_if_any
        total, summers = histograms.summers(tree, new_pairs)
        searchers, step, results = self._search.searchers(len(new_pairs)), small_trees.BUILD, NO_RESULTS
        shared = np.empty((len(new_pairs), summers if summers > 1 else 0), np.int64)
        shared[:] = -1
        left = np.empty((len(tree.node), 3), np.int64)
        arguments = (
            Level(tree.size, new_pairs, shared, left), self._limits, tree.arrays, layout.arrays, self._rows.columns(),
            histograms.rows, histograms.arrays, self._search.criterion,
        )  # fmt: skip
        records = tuple(
            map(tuple, arguments)
        )  # numba recognizes a plain tuple in less than half the time of a named one
        if summers > 1 or searchers > 1:
            step = small_trees.SEARCH

            def sum_rows(part: int) -> None:
                own = share(total, part, summers) if summers > 1 else (0, len(self._rows))
                line, _ = small_trees.grow(small_trees.BUILD, small_trees.SEARCH, part, *own, kinds, results, *records)
                if line >= 0:
                    shared[line, part] = part

            pool.run_parts(summers, sum_rows)
        if searchers > 1:
            step, results = small_trees.SPLIT, tuple(no_splits(layout, len(new_pairs)))
            bounds = even(layout.starts, searchers).tolist()

            def search(part: int) -> None:
                own = bounds[part : part + 2]
                small_trees.grow(small_trees.SEARCH, small_trees.SPLIT, 0, *own, kinds, results, *records)

            pool.run_parts(searchers, search)
        tree.size, pairs = small_trees.grow(step, small_trees.ON, 0, 0, len(self._rows), kinds, results, *records)
        return left[:pairs]
