"""The two halves of a base learner: a worker fits it, and the server adds it to the model.

Friedman's functional gradient descent asks two things of a learner: to be as parallel as it can to the negative
gradient, and to go as far along it as pays. The first needs nothing but the target; the second is a matter of all rows
and of the newest scores. So they are two verbs, and between them may lie a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.losses.protocol import Loss
from gpuboost.records import fast_dataclass
from gpuboost.state import RunningScores
from gpuboost.steps import Step
from gpuboost.types import Array, Component, Gradients, Grow, Noise, TrainingSet, Tree


@fast_dataclass
@dataclass(frozen=True, slots=True)
class RoundState:
    """The server's state when the fits of a round arrive."""

    loss: Loss
    data: TrainingSet
    gradients: Gradients  # of every row, at the scores as they are
    scores: RunningScores
    factor: float  # by which a tree is multiplied when it is added to the running sums
    version: int  # of the gradients


class BaseLearner(Protocol):
    """Trees, components that compete, or a user's estimator."""

    def prepared(self, backend: Backend, data: TrainingSet) -> BaseLearner:
        """The learner with all that can be computed once for these data."""
        ...

    def n_groups(self, data: TrainingSet) -> int:
        """Number of groups for a selection rule to draw from: features, or pairs of family and feature."""
        ...

    def search(self, key: Key) -> Grow:
        """The worker's half. key: of the round, for learners that draw."""
        ...

    def values(
        self, backend: Backend, structure: Any, state: RoundState, noise: Noise | None
    ) -> tuple[Any, Array | None]:
        """The server's half: h before the step rule, from the gradients of all rows.

        noise: on the gradients that leaf values are made of. Returns what ``update`` takes and, for a tree, the (n,)
        leaf of every row (otherwise None).
        """
        ...

    def update(
        self, backend: Backend, values: Any, leaf_of_row: Array | None, state: RoundState, step: Step
    ) -> Tree | Component:
        """The step length by the step rule, and F <- F + factor h, in place. Returns h as it was added."""
        ...
