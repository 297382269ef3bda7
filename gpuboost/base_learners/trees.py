"""Trees, of any growth: the learner that is boosted if no other is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from gpuboost.backends.protocol import Backend
from gpuboost.base_learners.protocol import Now
from gpuboost.growth import Growth
from gpuboost.keys import Key
from gpuboost.langevin import Grow
from gpuboost.types import Array, Structure, TrainingSet, Tree


@dataclass(frozen=True, slots=True)
class Trees:
    """The shape is the worker's half; leaf values, on all rows, are the server's."""

    growth: Growth

    def prepared(self, backend: Backend, data: TrainingSet) -> Trees:
        return self

    def n_groups(self, data: TrainingSet) -> int:
        return data.cuts.n_features

    def search(self, key: Key) -> Grow:
        return self.growth.structure

    def join(self, backend: Backend, structure: Structure, now: Now) -> tuple[Tree, Array]:
        """Values are exact, with noise of their own if there is any (SGLB: zeta), and as the step rule refines them.

        Under monotonic constraints they keep their order, whatever rows, noise and step make of them.
        """
        limits = self.growth.limits
        at = structure, now.gradients, now.data, limits, now.version
        tree, leaf_of_row = now.chain.leaf_values(backend, *at, now.noise)
        if limits.directions is not None:
            tree = backend.bound_leaves(tree, leaf_of_row, now.data, limits)
        tree = now.step.refine(backend, tree, leaf_of_row, now.loss, now.running.scores, now.data)
        if limits.directions is not None:
            tree = backend.bound_leaves(tree, leaf_of_row, now.data, limits, refined=True)
        backend.add_leaves(now.running.sums, tree, now.factor, leaf_of_row)
        return tree, leaf_of_row
