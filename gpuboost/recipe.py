"""The pieces of one run. Absence is an object, so the loop never asks whether a piece is there."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuboost.composition import Finding, langevin_findings
from gpuboost.errors import RecipeError, UnprovenError
from gpuboost.execution import Execution, Serial
from gpuboost.growth import DepthWise, Growth
from gpuboost.langevin import Chain, Dynamics, Langevin, NoNoise
from gpuboost.learners import AllLearners, Selection
from gpuboost.losses.protocol import Loss
from gpuboost.sampling import EveryRow, Sampling
from gpuboost.sampling_findings import sampling_findings
from gpuboost.steps import NewtonStep, Step
from gpuboost.types import Ensemble, Limits, TrainingSet


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
    langevin: Dynamics = field(default_factory=NoNoise)

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise RecipeError(f"rounds: must be at least 0; got {self.rounds!r}.")
        if not self.learning_rate > 0.0:
            raise RecipeError(f"learning_rate: must be positive; got {self.learning_rate!r}.")
        curvature = self.step.curvature(self.loss)  # refuses a step that the loss cannot serve
        self.langevin.check(self.learning_rate, curvature, self.rounds)
        for finding in self.findings:
            if finding.kind == "refused":
                raise RecipeError(finding.why)
        for finding in self.langevin_findings:  # those of a sample are asked for by name
            if finding.kind == "unproven" and not getattr(self.langevin, "allow_unproven", False):
                raise UnprovenError(f"{finding.why} To run it nevertheless: gb.Langevin(allow_unproven=True).")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What pieces ask of each other and do not get."""
        return self.sampling_findings + self.langevin_findings

    @property
    def langevin_findings(self) -> tuple[Finding, ...]:
        """Those that Langevin boosting's theorem is about."""
        if not isinstance(self.langevin, Langevin):
            return ()
        pieces = self.step, self.sampling, self.growth.limits, self.execution
        return langevin_findings(self.langevin, self.loss, *pieces)

    @property
    def sampling_findings(self) -> tuple[Finding, ...]:
        """Those that come of drawing rows."""
        pieces = self.step, self.growth.limits, self.execution, self.langevin
        return sampling_findings(self.sampling, self.loss, *pieces)

    def start(self, data: TrainingSet) -> Ensemble:
        """The model before its first tree."""
        return Ensemble(self.langevin.start(self.loss, data), data.cuts)

    def chain(self, data: TrainingSet, ensemble: Ensemble) -> Chain:
        """What noise and shrinkage come to, for these data and the ensemble to carry on.

        Raises:
            RecipeError: if the model would be shrunk to nothing.
        """
        curvature = self.step.curvature(self.loss)
        chain = self.langevin.chain(data, self.learning_rate, curvature, self.growth.limits)
        chain.check(ensemble.n_rounds + self.rounds)
        return chain
