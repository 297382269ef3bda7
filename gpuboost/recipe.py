"""The pieces of one run. Absence is an object, so the loop never asks whether a piece is there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gpuboost.backends.protocol import Backend
from gpuboost.base_learners import BaseLearner, Trees
from gpuboost.composition.base_learner import base_learner_findings
from gpuboost.composition.execution import execution_findings
from gpuboost.composition.findings import Finding, langevin_findings
from gpuboost.composition.learners import learner_findings
from gpuboost.composition.monotone import monotone_findings
from gpuboost.composition.sampling import sampling_findings
from gpuboost.errors import RecipeError, UnprovenError
from gpuboost.execution import Execution, Serial
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.growth import DepthWise, Growth
from gpuboost.langevin import Chain, Dynamics, Langevin, NoNoise
from gpuboost.learners import AllLearners, Selection, prepared
from gpuboost.losses.protocol import Loss
from gpuboost.records import declared
from gpuboost.sampling import EveryRow, Sampling
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
    base_learner: BaseLearner | None = None  # in place of trees

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
        of_execution = declared(ExecutionTraits, self.execution).allow_unproven
        asked = (  # those of a sample are asked for by name
            (
                self.langevin_findings + self.monotone_findings, self.langevin.allow_unproven,
                "gb.Langevin(allow_unproven=True)",
            ),
            (self.execution_findings, of_execution, "gb.Asynchronous(..., allow_unproven=True)"),
        )  # fmt: skip
        for findings, allowed, how in asked:
            if not allowed:
                _refuse_unproven(findings, how)

    @property
    def weak(self) -> BaseLearner:
        """What is boosted."""
        return self.base_learner or Trees(self.growth)

    def prepared(self, backend: Backend, data: TrainingSet) -> Recipe:
        """Ready for these data: whatever a base learner and a selection rule can work out once."""
        ready = self.weak.prepared(backend, data)
        learners = prepared(self.learners, data.cuts, ready.n_groups(data))
        if self.base_learner is None:
            return self if learners is self.learners else replace(self, learners=learners)
        return replace(self, base_learner=ready, learners=learners)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What pieces ask of each other and do not get."""
        of_pieces = self.sampling_findings + self.langevin_findings + self.base_learner_findings
        return of_pieces + self.execution_findings + self.learner_findings + self.monotone_findings

    @property
    def monotone_findings(self) -> tuple[Finding, ...]:
        """Those of monotonic constraints."""
        trees = self.base_learner is None
        return monotone_findings(self.growth.limits, self.loss, self.langevin, trees=trees)

    @property
    def learner_findings(self) -> tuple[Finding, ...]:
        """Those that come of drawing weak learners."""
        trees = self.base_learner is None
        return learner_findings(self.learners, self.growth.limits, self.step, self.langevin, trees=trees)

    @property
    def execution_findings(self) -> tuple[Finding, ...]:
        """Those that come of building trees on old gradients."""
        pieces = self.sampling, self.learners, self.langevin
        return execution_findings(self.execution, self.loss, self.step, self.learning_rate, *pieces)

    @property
    def stale_leaves(self) -> bool:
        """Whether leaf values are those that a worker found, at the scores it pulled."""
        return declared(ExecutionTraits, self.execution).leaf_values == "worker"

    @property
    def langevin_findings(self) -> tuple[Finding, ...]:
        """Those that Langevin boosting's theorem is about."""
        if not isinstance(self.langevin, Langevin):
            return ()
        pieces = self.step, self.sampling, self.growth.limits, self.execution
        return langevin_findings(self.langevin, self.loss, *pieces, trees=self.base_learner is None)

    @property
    def base_learner_findings(self) -> tuple[Finding, ...]:
        """Those of what is boosted in place of trees."""
        pieces = self.step, self.sampling, self.learners, self.langevin, self.execution
        return base_learner_findings(self.base_learner, self.loss, *pieces)

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


def _refuse_unproven(findings: tuple[Finding, ...], how: str) -> None:
    for finding in findings:
        if finding.kind == "unproven":
            raise UnprovenError(f"{finding.why} To run it nevertheless: {how}.")
