"""What a base learner is to the loop: a worker's half, that fits it, and the server's half, that adds it.

Friedman's functional gradient descent asks two things of a learner: to be as parallel as it can to the negative
gradient, and to go as far along it as pays. The first needs nothing but the target; the second is a matter of all rows
and of the newest scores. So they are two verbs, and between them may lie a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.langevin import Chain, Grow, Running
from gpuboost.losses.protocol import Loss
from gpuboost.records import fast_dataclass
from gpuboost.steps import Step
from gpuboost.types import Array, Component, Gradients, TrainingSet, Tree


@fast_dataclass
@dataclass(frozen=True, slots=True)
class Now:
    """What the server knows as the fits of a round come in."""

    loss: Loss
    data: TrainingSet
    gradients: Gradients  # of every row, at the scores as they are
    running: Running
    factor: float  # of what is added to the running sums
    step: Step
    chain: Chain
    version: int  # of the gradients
    noise: Key  # of the leaves


class BaseLearner(Protocol):
    """Trees, components that compete, or somebody's estimator."""

    def prepared(self, backend: Backend, data: TrainingSet) -> BaseLearner:
        """Ready for these data: whatever can be worked out once."""
        ...

    def n_groups(self, data: TrainingSet) -> int:
        """How many there are for a selection rule to draw from: features, or pairs of family and feature."""
        ...

    def search(self, key: Key) -> Grow:
        """The worker's half. key: of the round, for learners that draw."""
        ...

    def join(self, backend: Backend, structure: Any, now: Now) -> tuple[Tree | Component, Array]:
        """The server's half: how far to go, and F <- F + factor h, in place.

        Returns h and, of a tree, the (n,) leaf of every row (otherwise None).
        """
        ...
