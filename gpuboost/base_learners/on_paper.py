"""A competition where there are no data: it asks a machine for what a fit would, to see what that takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gpuboost.backends.protocol import Backend
from gpuboost.backends.smoothing import Plan
from gpuboost.base_learners.competition import Competition, Direction, Grown, Smoothed, on_shared_grids
from gpuboost.base_learners.protocol import RoundState
from gpuboost.components import Grid, Smooth, Space
from gpuboost.keys import Key
from gpuboost.steps import Step, searches
from gpuboost.types import Candidates, Component, Grow, Noise, Target, TrainingSet


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
        spaces = [_plain(grid) for family in self.smooth for grid in family.grids(data.cuts)]
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

    def values(self, backend: Backend, structure: Any, state: RoundState, noise: Noise | None) -> tuple[Any, None]:
        """``Everything`` as it is: its parts are measured one after the other, as they are in a fit."""
        return structure, None

    def update(self, backend: Backend, values: Any, leaf_of_row: None, state: RoundState, step: Step) -> Component:
        joined = []
        for structure in values.found:
            direction, _ = Competition.values(self, backend, structure, state, None)
            joined.append(Competition.update(self, backend, direction, None, state, step))
        return joined[0]

    def _length(self, backend: Backend, values: Direction, state: RoundState, step: Step) -> float:
        component, origin, data = values.component, values.origin, state.data
        if searches(step):
            backend.start(data, np.zeros(state.loss.n_outputs))
            backend.length_along(state.loss, state.scores.values, component.output, np.zeros(data.n_rows), data)
        elif isinstance(component, Smooth) and isinstance(origin, Smoothed) and not origin.of_all_rows:
            grid = component.space.grid
            backend.smoothing().cells(state.gradients, None, component.output, grid, data.bins)
        return 1.0


def _plain(grid: Grid) -> Space:
    """A space of one function on the grid."""
    cells = grid.n_cells - 1
    return Space("linear", grid, np.zeros(cells, np.int32), np.ones((cells, 1)), np.zeros(1), np.zeros((1, 1)), 0.0)
