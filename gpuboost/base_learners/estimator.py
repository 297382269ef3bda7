"""A user's estimator as a base learner: a regressor with scikit-learn's interface, cloned and fitted in each round.

It has the same target as a tree: it is fitted by weighted least squares to -g / h with weights h, h being the curvature
of the step rule (so to -g if it is constant). An estimator that takes no weights is fitted to -g itself: functional
gradient descent needs only a direction. The step length along it is computed on all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.protocol import Backend
from gpuboost.base_learners import line
from gpuboost.base_learners.protocol import RoundState
from gpuboost.components import EmptyComponent, EstimatorComponent
from gpuboost.errors import InputError
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.steps import Step
from gpuboost.types import Candidates, Component, Grow, Noise, Target, TrainingSet

EVEN = 1e-5
"""Relative difference up to which weights count as equal: they are computed from float32 numbers."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted estimator, as a worker sends it to the server."""

    estimator: Any
    columns: NDArray[np.int32] | None
    output: int
    version: int


@dataclass(frozen=True, slots=True)
class Predicted:
    """A fitted estimator, and its predictions for the training rows."""

    component: EstimatorComponent  # with coefficient 1
    by_row: NDArray[np.float64]  # (n,)


@dataclass(frozen=True, slots=True)
class AnyEstimator:
    """Base learner from a ``template`` with ``fit(X, y)`` and ``predict(X)``, which is copied, never fitted itself."""

    template: Any
    copied: Callable[[Any], Any]  # an unfitted one with the parameters of the template
    weighted: bool  # whether fit takes sample_weight
    cancels: bool = False  # whether it takes no weights, and p is in proportion to h, so that h / p is constant

    def prepared(self, backend: Backend, data: TrainingSet) -> AnyEstimator:
        """The learner itself; there is nothing to compute.

        Raises:
            InputError: if rows have weights, and the estimator takes none.
        """
        if not self.weighted and not line.is_flat(data):
            raise InputError(
                f"sample_weight: learner {type(self.template).__name__!r} does not accept sample weights. Pass none, "
                "or a base_learner whose fit takes sample_weight."
            )
        return self

    def n_groups(self, data: TrainingSet) -> int:
        return data.cuts.n_columns

    def search(self, key: Key) -> Grow:
        return cast(Grow, partial(self._fit, key))

    def _fit(
        self, key: Key, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Fitted:
        columns = candidates.features if len(candidates.features) < data.cuts.n_columns else None
        x = data.x if columns is None else data.x[:, columns]
        x = x if target.rows is None else x[target.rows]
        y, weight = self._target(backend, target, output)
        made = seeded(self.copied(self.template), key / output)
        if weight is None:
            made.fit(x, y)
        else:
            made.fit(x, y, sample_weight=weight)
        return Fitted(made, columns, output, target.version)

    def _target(
        self, backend: Backend, target: Target, output: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """(m,) float64 values to fit, and (m,) weights of mean 1; None if all weights are equal."""
        g, h = line.vectors(backend, target.gradients, output)
        even = h.min(initial=np.inf) * (1.0 + EVEN) >= h.max(initial=0.0)
        if not (self.weighted or self.cancels or even):
            return -g, None
        ratio = np.divide(-g, h, out=np.zeros(len(g)), where=h > 0.0)
        return (ratio, None) if even or not self.weighted else (ratio, h / h.mean())

    def values(
        self, backend: Backend, structure: Fitted, state: RoundState, noise: Noise | None
    ) -> tuple[Predicted, None]:
        component = EstimatorComponent(structure.estimator, 1.0, structure.columns, structure.output, structure.version)
        return Predicted(component, component.values(state.data.x)), None

    def update(
        self, backend: Backend, values: Predicted, leaf_of_row: None, state: RoundState, step: Step
    ) -> Component:
        """The estimator times rho of the step rule, on all rows."""
        component, f = values.component, values.by_row
        rho = line.length(backend, state, step, component.output, f)
        if rho == 0.0:
            return EmptyComponent(component.output, component.version)
        state.scores.sums[component.output] += (state.factor * rho) * f
        return replace(component, coefficient=rho)


def seeded(estimator: Any, key: Key) -> Any:
    """The estimator with each ``random_state`` among its parameters drawn from the stream."""
    if hasattr(estimator, "get_params"):
        names = [name for name in sorted(estimator.get_params(deep=True)) if name.split("__")[-1] == "random_state"]
        if names:
            estimator.set_params(**{name: _seed(key, name) for name in names})
    return estimator


def _seed(key: Key, name: str) -> int:
    digest = blake2b(line.seed_words(key.words, name), digest_size=4).digest()
    return int.from_bytes(digest, "little") & 0x7FFF_FFFF
