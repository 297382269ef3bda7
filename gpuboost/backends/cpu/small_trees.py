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
from gpuboost.backends.cpu.split_search import NO_FEATURES, Search
from gpuboost.backends.host.threads import share
from gpuboost.kernels.growth import small_trees as levels
from gpuboost.types import Limits

Results = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint32]]
"""(2p, t) gains, (2p, t, 4) splits and (2p, t, 8) left sets of p new pairs; empty if none is computed yet."""

NO_RESULTS: Results = np.empty((0, 0)), np.empty((0, 0, 4), np.int64), np.empty((0, 0, 8), np.uint32)


class Levels:
    """Arguments of the kernel for a growing tree."""

    def __init__(
        self, tree: NodeTable, rows: RowsByNode, histograms: Histograms, search: Search, limits: Limits, least_rows: int
    ) -> None:
        """least_rows: number of rows that a node needs to be split."""
        self._tree, self._rows, self._histograms, self._search = tree, rows, histograms, search
        self._limits, self._least_rows = limits, least_rows

    def grow(self, new_pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Split this level and the next ones until a step is large; return the new pairs left to sum and search."""
        pool, tree = self._rows.team, self._tree
        total, summers = self._histograms.summers(tree, new_pairs)
        searchers, step, results = self._search.searchers(len(new_pairs)), levels.BUILD, NO_RESULTS
        shared = np.full((len(new_pairs), summers if summers > 1 else 0), -1, np.int64)
        left = np.empty((len(tree.node), 3), np.int64)
        given = self._given(new_pairs, shared, left)
        if summers > 1 or searchers > 1:
            step = levels.SEARCH

            def sum_rows(part: int) -> None:
                own = share(total, part, summers) if summers > 1 else (0, len(self._rows))
                at, _ = levels.grow(levels.BUILD, levels.SEARCH, part, *own, *NO_RESULTS, *given)
                if at >= 0:
                    shared[at, part] = part

            pool.run_parts(summers, sum_rows)
        if searchers > 1:
            step, results = levels.SPLIT, self._room_for_results(len(new_pairs))
            bounds = even(self._rows.layout.starts, searchers).tolist()

            def search(part: int) -> None:
                levels.grow(levels.SEARCH, levels.SPLIT, part, *bounds[part : part + 2], *results, *given)

            pool.run_parts(searchers, search)
        tree.size, pairs = levels.grow(step, levels.ON, 0, 0, len(self._rows), *results, *given)
        return left[:pairs]

    def _room_for_results(self, pairs: int) -> Results:
        layout, t = self._rows.layout, len(self._rows.layout.features)
        sets = np.empty((2 * pairs, t if layout.some_categorical else 0, 8), np.uint32)
        return np.zeros((2 * pairs, t)), np.empty((2 * pairs, t, 4), np.int64), sets

    def _given(
        self, new_pairs: NDArray[np.int64], shared: NDArray[np.int64], left: NDArray[np.int64]
    ) -> tuple[object, ...]:
        """Arguments that all calls of the kernel have in common."""
        tree, rows, layout, search = self._tree, self._rows, self._rows.layout, self._search
        histograms, limits, alone = self._histograms, self._limits, rows.team.size == 1
        least_rows = EVERY_ROW if alone else -(-2 * cpu_histograms.ROWS_PER_THREAD // histograms.lines_of_eight)
        least_nodes = EVERY_ROW if alone else -(-2 * cpu_search.CELLS_PER_THREAD // layout.n_cells)
        return (
            tree.size, new_pairs, shared, tree.node, tree.gain, tree.left_set, layout.rows, layout.features,
            layout.starts, layout.row_start, layout.cells, histograms.packed, rows.rows, histograms.narrow_rows,
            histograms.scratch, histograms.of, histograms.spare, histograms.counts, layout.n_bins, layout.kinds,
            layout.kinds if layout.some_categorical else None, layout.defaults, search.units, search.rule, search.root,
            NO_FEATURES, histograms.slots, *rows.columns(), layout.n_bins_of_all, layout.kinds_of_all, rows.scratch,
            tree.chosen, limits.max_leaves, limits.max_depth, self._least_rows, least_rows, least_nodes, left,
        )  # fmt: skip
