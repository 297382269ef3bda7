"""The pieces of a run, as rules of composition read them."""

from __future__ import annotations

from typing import Protocol

from gpuboost.base_learners import BaseLearner
from gpuboost.composition.findings import Finding
from gpuboost.execution import Execution
from gpuboost.growth import Growth
from gpuboost.langevin import Dynamics
from gpuboost.learners import Selection
from gpuboost.learning_rates import Rates
from gpuboost.losses.protocol import Loss
from gpuboost.multi_output import MultiOutput
from gpuboost.sampling import Sampling
from gpuboost.steps import Step


class Pieces(Protocol):
    """A recipe: ``gpuboost.recipe`` explains its pieces, and imports the rules that read them."""

    @property
    def loss(self) -> Loss: ...
    @property
    def rounds(self) -> int: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def growth(self) -> Growth: ...
    @property
    def sampling(self) -> Sampling: ...
    @property
    def learners(self) -> Selection: ...
    @property
    def step(self) -> Step: ...
    @property
    def execution(self) -> Execution: ...
    @property
    def langevin(self) -> Dynamics: ...
    @property
    def base_learner(self) -> BaseLearner | None: ...  # None: trees
    @property
    def inert(self) -> tuple[Finding, ...]: ...
    @property
    def permutations(self) -> int: ...
    @property
    def averages(self) -> bool: ...
    @property
    def multi_output(self) -> MultiOutput: ...
    @property
    def rates(self) -> Rates: ...
