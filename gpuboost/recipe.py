"""The pieces of one run. Absence is an object, so the loop never asks whether a piece is there."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuboost.errors import RecipeError
from gpuboost.execution import Execution, Serial
from gpuboost.growth import DepthWise, Growth
from gpuboost.learners import AllLearners, Selection
from gpuboost.losses.protocol import Loss
from gpuboost.sampling import EveryRow, Sampling
from gpuboost.steps import NewtonStep, Step
from gpuboost.types import Limits


@dataclass(frozen=True, slots=True)
class Recipe:
    """What ``boost`` runs.

    Raises:
        RecipeError: where two pieces contradict each other, before any work is done.
    """

    loss: Loss
    rounds: int = 100
    learning_rate: float = 0.1
    growth: Growth = field(default_factory=lambda: DepthWise(Limits(max_leaves=64)))
    sampling: Sampling = field(default_factory=EveryRow)
    learners: Selection = field(default_factory=AllLearners)
    step: Step = field(default_factory=NewtonStep)
    execution: Execution = field(default_factory=Serial)

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise RecipeError(f"rounds: must be at least 0; got {self.rounds!r}.")
        if not self.learning_rate > 0.0:
            raise RecipeError(f"learning_rate: must be positive; got {self.learning_rate!r}.")
        self.step.curvature(self.loss)  # refuses a step that the loss cannot serve
