"""A competition without data, for memory estimates: it makes the same requests to a backend as a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gpuboost.backends.protocol import Backend
from gpuboost.backends.smoothing import SmoothingPlan
from gpuboost.base_learners.best_of_families import BestOfFamilies, Direction, GrownTree, Smoothed, on_shared_grids
from gpuboost.base_learners.protocol import RoundState
from gpuboost.components import Grid, SmoothTerm, Space
from gpuboost.keys import Key
from gpuboost.learners.families.protocol import Family
from gpuboost.steps import Step, searches
from gpuboost.types import Candidates, Component, Grow, Noise, Target, TrainingSet


@dataclass(frozen=True, slots=True)
class Everything:
    """One function of bins, and a tree of each kind, since any of them may win in some round."""

    found: tuple[Smoothed | GrownTree, ...]
    output: int
    version: int


@dataclass(frozen=True, slots=True, eq=False)
class DryRunOfFamilies:
    """A competition that all candidates win. Its spaces have the cells of the real ones, and one coefficient each."""

    competition: BestOfFamilies

    @classmethod
    def of(cls, families: tuple[Family, ...]) -> DryRunOfFamilies:
        return cls(BestOfFamilies(families, length=_unmeasured_length))

    def prepared(self, backend: Backend, data: TrainingSet) -> DryRunOfFamilies:
        spaces = [_plain(grid) for family in self.competition.smooth for grid in family.grids(data.cuts)]
        return DryRunOfFamilies(replace(self.competition, plan=SmoothingPlan.of(on_shared_grids(spaces))))

    def n_groups(self, data: TrainingSet) -> int:
        """See ``BestOfFamilies``."""
        return self.competition.n_groups(data)

    def search(self, key: Key) -> Grow:
        return cast(Grow, self._all)

    def _all(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Everything:
        competition = self.competition
        assert competition.plan is not None
        n, chosen = len(competition.plan.spaces), np.asarray(candidates.features)
        fits: list[Smoothed | GrownTree] = []
        if len(smooth := chosen[chosen < n]):
            fits.append(competition.fit(backend, data, target, output, Candidates(smooth)))
        fits += [competition.grow_tree(backend, data, target, output, family)[0] for family in competition.trees]
        return Everything(tuple(fits), output, target.version)

    def values(self, backend: Backend, structure: Any, state: RoundState, noise: Noise | None) -> tuple[Any, None]:
        """``Everything`` unchanged: its parts are measured one after the other, as in a fit."""
        return structure, None

    def update(self, backend: Backend, values: Any, leaf_of_row: None, state: RoundState, step: Step) -> Component:
        joined = []
        for structure in values.found:
            direction, _ = self.competition.values(backend, structure, state, None)
            joined.append(self.competition.update(backend, direction, None, state, step))
        return joined[0]


def _unmeasured_length(backend: Backend, values: Direction, state: RoundState, step: Step) -> float:
    """1, after the same requests to the backend as in ``length_of``."""
    component, origin, data = values.component, values.origin, state.data
    if searches(step):
        backend.start(data, np.zeros(state.loss.n_outputs))
        backend.length_along(state.loss, state.scores.base, component.output, np.zeros(data.n_rows), data)
    elif isinstance(component, SmoothTerm) and isinstance(origin, Smoothed) and not origin.of_all_rows:
        grid = component.space.grid
        backend.smoothing().cells(state.gradients, None, component.output, grid, data.bins)
    return 1.0


def _plain(grid: Grid) -> Space:
    """A space of one function on the grid."""
    cells = grid.n_cells - 1
    return Space("linear", grid, np.zeros(cells, np.int32), np.ones((cells, 1)), np.zeros(1), np.zeros((1, 1)), 0.0)
