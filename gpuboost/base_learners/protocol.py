"""The two parts of a base learner: a worker fits it, and the server adds it to the model.

Friedman's functional gradient descent has two steps: fit a direction to the negative gradient, and compute the step
length along it. The first needs only the target; the second needs all rows and the newest scores. So they are two
methods, which may run on different hosts.
"""

from __future__ import annotations

from typing import Any, Protocol

from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.losses.protocol import Loss
from gpuboost.records import dataclass
from gpuboost.state import RunningScores
from gpuboost.steps import Step
from gpuboost.types import Array, Component, FittedTree, Gradients, Grow, Noise, TrainingSet


@dataclass(frozen=True, slots=True)
class RoundState:
    """The server's state when the fits of a round arrive."""

    loss: Loss
    data: TrainingSet
    gradients: Gradients  # of every row, at the current scores
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
        """The worker's part. key: key of the round, for learners that draw."""
        ...

    def values(
        self, backend: Backend, structure: Any, state: RoundState, noise: Noise | None
    ) -> tuple[Any, Array | None]:
        """The server's part: h before the step rule, from the gradients of all rows.

        noise: noise on the gradients of the leaf values. Returns the input of ``update`` and, for a tree, the (n,) leaf
        of every row (otherwise None).
        """
        ...

    def update(
        self, backend: Backend, values: Any, leaf_of_row: Array | None, state: RoundState, step: Step
    ) -> FittedTree | Component:
        """Apply the step rule to h, and add it in place: F <- F + factor h. Returns h as it was added."""
        ...
