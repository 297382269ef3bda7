"""A competition where there are no data: it asks a machine for what a fit would, to see what that takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gpuboost.backends.protocol import Backend
from gpuboost.backends.smoothing import Plan
from gpuboost.base_learners.competition import Competition, Grown, Smoothed, on_shared_grids
from gpuboost.base_learners.protocol import Now
from gpuboost.base_learners.spaces import grids_at_most
from gpuboost.components import Grid, Smooth, Space
from gpuboost.keys import Key
from gpuboost.langevin import Grow
from gpuboost.learners.families import LinearTree, Tree
from gpuboost.steps import searches
from gpuboost.types import Candidates, Component, Target, TrainingSet


@dataclass(frozen=True, slots=True)
class Everything:
    """One of the functions of bins, and a tree of each kind: any of them may win in some round."""

    found: tuple[Smoothed | Grown, ...]
    output: int
    version: int


@dataclass(frozen=True, slots=True, eq=False)
class OnPaper(Competition):
    """A competition that everybody wins. Its spaces have the cells of the real ones, and one coefficient each."""

    def prepared(self, backend: Backend, data: TrainingSet) -> OnPaper:
        on_bins = [family for family in self.families if not isinstance(family, (Tree, LinearTree))]
        spaces = [_plain(grid) for family in on_bins for grid in grids_at_most(family, data.cuts)]
        return replace(self, plan=Plan.of(on_shared_grids(spaces)))

    def search(self, key: Key) -> Grow:
        return cast(Grow, self._all)

    def _all(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Everything:
        assert self.plan is not None
        n, chosen = len(self.plan.spaces), np.asarray(candidates.features)
        found: list[Smoothed | Grown] = []
        if len(smooth := chosen[chosen < n]):
            found.append(self._fit(backend, data, target, output, Candidates(smooth)))
        found += [self._grow(backend, data, target, output, family)[0] for family in self.trees]
        return Everything(tuple(found), output, target.version)

    def join(self, backend: Backend, structure: Any, now: Now) -> tuple[Component, None]:
        """Of ``Everything``."""
        joined = [Competition.join(self, backend, one, now) for one in structure.found]
        return joined[0]

    def _length(self, backend: Backend, structure: Smoothed, found: Smooth, now: Now) -> float:
        if searches(now.step):
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
