"""Trees of any growth policy: the default base learner."""

from __future__ import annotations

from gpuboost.backends.protocol import Backend
from gpuboost.base_learners.protocol import RoundState
from gpuboost.growth import Growth
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.steps import Step
from gpuboost.types import Array, FittedTree, Grow, Noise, Structure, TrainingSet


@dataclass(frozen=True, slots=True)
class Trees:
    """Trees: a worker grows the shape; the server computes the leaf values on all rows."""

    growth: Growth

    def prepared(self, backend: Backend, data: TrainingSet) -> Trees:
        return self

    def n_groups(self, data: TrainingSet) -> int:
        return data.cuts.n_features

    def search(self, key: Key) -> Grow:
        return self.growth.structure

    def values(
        self, backend: Backend, structure: Structure, state: RoundState, noise: Noise | None
    ) -> tuple[FittedTree, Array]:
        """-G / (D + lambda) of all rows. Monotonic constraints hold for the values, whatever the noise."""
        limits = self.growth.limits
        tree, leaf_of_row = backend.leaf_values(structure, state.gradients, state.data, limits, state.version, noise)
        if limits.directions is not None:
            tree = backend.bound_leaves(tree, leaf_of_row, state.data, limits)
        return tree, leaf_of_row

    def update(
        self, backend: Backend, values: FittedTree, leaf_of_row: Array, state: RoundState, step: Step
    ) -> FittedTree:
        """Add the tree as the step rule refines it, and return it."""
        tree = self.refined(backend, values, leaf_of_row, state, step)
        backend.add_leaves(state.scores.sums, tree, state.factor, leaf_of_row)
        return tree

    def refined(
        self, backend: Backend, values: FittedTree, leaf_of_row: Array, state: RoundState, step: Step
    ) -> FittedTree:
        """The tree as the step rule refines it. Monotonic constraints hold for its values again."""
        tree = step.refine(backend, values, leaf_of_row, state.loss, state.scores.base, state.data)
        if self.growth.limits.directions is not None:
            tree = backend.bound_leaves(tree, leaf_of_row, state.data, self.growth.limits, refined=True)
        return tree
