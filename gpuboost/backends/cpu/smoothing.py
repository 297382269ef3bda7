"""Components on the CPU: threads divide the spaces, or the rows of a single grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.leaves import wide
from gpuboost.backends.host.penalised_least_squares import Penalised
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.prediction.memo import Memo
from gpuboost.backends.prediction.routing import codes_of, dense_rows
from gpuboost.backends.reference.smoothing import lines_of, with_sums
from gpuboost.backends.smoothing import Fits, SmoothingPlan, Tables
from gpuboost.components import Grid, TreeComponent
from gpuboost.kernels.smoothing import lines
from gpuboost.kernels.smoothing import smoothing as kernels
from gpuboost.types import Array, Bins, Cuts, DenseBins, Gradients, Nodes, Structure, TrainingSet

NO_BINS, NO_CELLS, EVERY_ROW = np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int32)

RouteRows = Callable[[Nodes, Bins, Cuts], Array]


class CpuSmoothing(Penalised):
    """``Smoothing`` with the backend's number of threads. Several callers may use it at once."""

    def __init__(self, pool: ThreadPool, in_parts: cpu_sums.Share, route: RouteRows) -> None:
        super().__init__(pool)
        self._in_parts, self._route = in_parts, route
        self._columns_of_sparse = Memo(lambda bins: np.ascontiguousarray(dense_rows(bins).T))
        self._idle: list[
            tuple[SmoothingPlan, Workspace]
        ] = []  # of fits that are done, one for each that ran at the same time

    def codes(self, bins: Bins, feature: int) -> Array:
        return codes_of(bins, feature)

    def cells(self, gradients: Gradients, rows: Array | None, output: int, grid: Grid, bins: Bins) -> Array:
        scratch, sums = self._room(None), np.zeros((grid.n_cells, 2), np.int64)
        packed, units = self._packed(gradients, output, scratch)
        kernels.cell_sums(packed, EVERY_ROW if rows is None else rows, *self._columns(grid, bins), sums)
        self._idle.append((_NO_PLAN, scratch))
        return sums * np.array(units)

    def fit(
        self, plan: SmoothingPlan, gradients: Gradients, rows: Array | None, output: int, chosen: Array, bins: Bins
    ) -> Fits:
        scratch = self._room(plan)
        packed, units = self._packed(gradients, output, scratch)
        sums = scratch.array("sums", (int(plan.cell_start[-1]), 2), np.int64)
        wanted, some = np.unique(plan.grid[chosen]).tolist(), EVERY_ROW if rows is None else rows

        def add_up(begin: int, end: int) -> None:
            for g in wanted[begin:end]:
                cell_sums = sums[plan.cell_start[g] : plan.cell_start[g + 1]]
                cell_sums[:] = 0
                kernels.cell_sums(packed, some, *self._columns(plan.grids[g], bins), cell_sums)

        self._shared(len(wanted), len(packed) * len(wanted), add_up)
        fits = self._fits(plan, sums, units, chosen, scratch)
        self._idle.append((plan, scratch))
        return fits

    def add(self, scores: Array, steps: Array, grid: Grid, bins: Bins) -> None:
        columns = self._columns(grid, bins)
        self._in_parts(len(scores), lambda _, a, b: kernels.add_table(scores, steps, *columns, a, b))

    def add_all(self, scores: Array, tables: Tables, bins: Bins) -> None:
        for grid, steps in tables:
            self.add(scores, steps, grid, bins)

    def kept_tree(self, structure: Structure, own_sums: bool) -> tuple[Structure, Array, Array]:
        return with_sums(structure, own_sums)

    def fit_lines(
        self, structure: Structure, gradients: Gradients, data: TrainingSet, leaf_of_row: Array, features: Array,
        centres: Array, ridge: float, reg_lambda: float,
    ) -> tuple[Array, Array]:  # fmt: skip
        codes, m = self._by_row(data.bins), cpu_sums.multiplicity_of(gradients)
        g, h = gradients.g[structure.output], gradients.h[structure.output]
        (v, s), leaf_of_row = features.shape, wide(leaf_of_row)
        starts = range(0, max(data.n_rows, 1), lines.BLOCK)
        parts = np.zeros((len(starts), v, s + 2, s + 1))

        def work(begin: int, end: int) -> None:
            for block in range(begin, end):
                rows = starts[block], min(starts[block] + lines.BLOCK, data.n_rows)
                lines.moments(g, h, m, codes, leaf_of_row, features, centres, *rows, parts[block])

        self._shared(len(starts), data.n_rows, work)
        total = np.zeros(parts.shape[1:])
        for part in parts:
            total += part
        weights = np.bincount(leaf_of_row, data.row_weight(), v)
        return lines_of(total, weights, structure, ridge, reg_lambda, self)

    def add_lines(self, scores: Array, component: TreeComponent, factor: float, bins: Bins, cuts: Cuts) -> None:
        codes, leaf_of_row = self._by_row(bins), self._route(component.tree.nodes, bins, cuts)
        what = component.tree.value, component.features, component.slopes, component.centres
        self._in_parts(len(scores), lambda _, a, b: lines.add(scores, factor, codes, leaf_of_row, *what, a, b))

    # parts of the above

    def _packed(self, gradients: Gradients, output: int, scratch: Workspace) -> tuple[Array, tuple[float, float]]:
        packed = scratch.array("packed", gradients.g[output].shape, np.int64)
        _, units = cpu_sums.pack(gradients, output, self._pool, self._in_parts, packed)
        return packed, units

    def _room(self, plan: SmoothingPlan | None) -> Workspace:
        """Scratch memory that no other caller is using: that of the last fit of this plan, if it is free."""
        for i, (idle_plan, _) in enumerate(self._idle):
            if idle_plan is (plan or _NO_PLAN):
                try:
                    entry = self._idle.pop(i)
                except IndexError:
                    break
                if entry[0] is idle_plan:
                    return entry[1]
                self._idle.append(entry)
        return Workspace()

    def _columns(self, grid: Grid, bins: Bins) -> tuple[Array, Array, Array, Array]:
        """Bins of the first feature and of the second, if any, and the look-up table from bins to cells."""
        columns = self._by_column(bins)
        a = columns[grid.features[0]], grid.cells[0]
        return (*a, NO_BINS, NO_CELLS) if len(grid.features) == 1 else (*a, columns[grid.features[1]], grid.cells[1])

    def _by_column(self, bins: Bins) -> Array:
        """(d, n) uint8; for sparse bins built once."""
        return bins.columns if isinstance(bins, DenseBins) else self._columns_of_sparse.of(bins)

    def _by_row(self, bins: Bins) -> Array:
        """(n, d) uint8"""
        return bins.rows if isinstance(bins, DenseBins) else np.ascontiguousarray(self._by_column(bins).T)


_NO_PLAN = SmoothingPlan.of(())
