"""Functions of bins where there are no data: they ask a machine for what a fit would, to see what that takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpuboost.backends.protocol import Backend
from gpuboost.backends.smoothing import Plan
from gpuboost.components import Grid, Smooth, Space
from gpuboost.fitting.competition import Competition, Smoothed, on_shared_grids
from gpuboost.fitting.protocol import Now
from gpuboost.fitting.spaces import grids_at_most
from gpuboost.types import TrainingSet


@dataclass(frozen=True, slots=True, eq=False)
class OnPaper(Competition):
    """A competition whose spaces have the cells of the real ones, one coefficient each, and a winner in each round."""

    def prepared(self, backend: Backend, data: TrainingSet) -> OnPaper:
        grids = [grid for family in self.families for grid in grids_at_most(family, data.cuts)]
        return replace(self, plan=Plan.of(on_shared_grids([_plain(grid) for grid in grids])))

    def _length(self, backend: Backend, structure: Smoothed, found: Smooth, now: Now) -> float:
        if getattr(now.step, "searches", False):
            backend.start(now.data, np.zeros(now.loss.n_outputs))
            along = np.zeros(now.data.n_rows)
            backend.length_along(now.loss, now.running.scores, found.output, along, now.data)
        elif not structure.of_all_rows:
            smoothing = backend.smoothing()
            smoothing.cells(now.gradients, None, found.output, found.space.grid, now.data.bins)
        return 1.0


def _plain(grid: Grid) -> Space:
    """A space of one function on the grid."""
    cells = grid.n_cells - 1
    return Space("linear", grid, np.zeros(cells, np.int32), np.ones((cells, 1)), np.zeros(1), np.zeros((1, 1)), 0.0)
