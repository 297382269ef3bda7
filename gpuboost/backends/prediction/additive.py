"""Scores of models whose weak learners are components and not trees.

Functions of one space add up to one function of that space, and functions of one grid to one table, so a model of
10,000 rounds of splines predicts as fast as one with a single spline per feature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpuboost.backends.protocol import Backend
from gpuboost.components import EmptyComponent, EstimatorComponent, Grid, collapsed
from gpuboost.records import dataclass
from gpuboost.types import Array, Component, DenseBins, Ensemble, TrainingSet


@dataclass(frozen=True, slots=True)
class Additive:
    """A model of components, prepared for prediction."""

    tables: tuple[tuple[int, Grid, Array], ...]  # output, grid, (c,) contributions of its cells
    rest: tuple[tuple[Component, float], ...]  # components that cannot be merged, with their factors

    @classmethod
    def of(cls, backend: Backend, ensemble: Ensemble) -> Additive:
        sums, rest = collapsed(ensemble)
        tables: dict[tuple[int, Grid], Array] = {}
        for component in sums:
            key, steps = (component.output, component.space.grid), backend.smoothing().values(component)
            tables[key] = tables[key] + steps if key in tables else steps
        return cls(tuple((output, grid, steps) for (output, grid), steps in tables.items()), tuple(rest))

    def predict(self, backend: Backend, ensemble: Ensemble, x: Any) -> Array:
        """(k, n) float64 scores, in the backend's memory."""
        rows = _rows(backend, ensemble, x)
        sums = backend.start(rows, _begin(ensemble))
        for output in range(ensemble.n_outputs):
            tables = [(grid, steps) for of, grid, steps in self.tables if of == output]
            backend.smoothing().add_all(sums[output], tables, rows.bins)
        for component, factor in self.rest:
            component.add(backend, sums, factor, rows)
        if ensemble.scale != 1.0:
            backend.scores(sums, ensemble.bias, ensemble.scale, sums)
        return sums


def staged_predict(backend: Backend, ensemble: Ensemble, x: Any, copied: Callable[[Array], Array]) -> Iterator[Array]:
    """(k, n) float64 scores after each round, each a new array, made by ``copied``. The last ones are ``predict``'s."""
    whole = Additive.of(backend, ensemble)
    rows, k = _rows(backend, ensemble, x), ensemble.n_outputs
    sums = backend.start(rows, _begin(ensemble))
    for done in range(ensemble.n_rounds):
        if done == ensemble.n_rounds - 1 and whole.tables:  # sums of functions are not rounded as sums of their values
            yield whole.predict(backend, ensemble, x)
            return
        for i in range(done * k, (done + 1) * k):
            ensemble.components[i].add(backend, sums, ensemble.factors[i], rows)
        scores = copied(sums)
        if ensemble.scale != 1.0:
            scale = ensemble.scales[done] if ensemble.scales else ensemble.scale
            backend.scores(sums, ensemble.bias, scale, scores)
        yield scores


def _rows(backend: Backend, ensemble: Ensemble, x: Any) -> TrainingSet:
    """x as components read it: its numbers, and its bins if a component needs them."""
    by_bins = not all(isinstance(component, (EstimatorComponent, EmptyComponent)) for component in ensemble.components)
    nothing = np.empty((0, 0), np.uint8)
    bins = backend.quantise(x, ensemble.cuts) if by_bins else DenseBins(nothing, nothing)
    return TrainingSet(bins, ensemble.cuts, np.zeros(x.shape[0]), x=x)


def _begin(ensemble: Ensemble) -> Array:
    """(k,) initial values of the sums."""
    return ensemble.bias if ensemble.scale == 1.0 else np.zeros(ensemble.n_outputs)
