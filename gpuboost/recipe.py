"""The pieces of one run. An absent piece is an object that does nothing, so the loop needs no condition for it."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np

from gpuboost.backends.protocol import Backend
from gpuboost.base_learners import BaseLearner, Trees
from gpuboost.base_learners.best_of_families import BestOfFamilies
from gpuboost.base_learners.estimator import AnyEstimator
from gpuboost.components import on_spaces
from gpuboost.composition import rules
from gpuboost.composition.findings import Finding
from gpuboost.errors import RecipeError
from gpuboost.execution import Execution, Serial
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.growth import DepthWise, Growth
from gpuboost.langevin import Chain, Dynamics, Langevin, NoNoise
from gpuboost.learners import (
    AllLearners,
    CutRule,
    FeatureViews,
    GainNoise,
    Selection,
    charged,
    cut_rule,
    gain_noise,
    prepared,
)
from gpuboost.learners.selection import SelectionTraits
from gpuboost.learning_rates import Rates
from gpuboost.losses.averages import weighted_mean
from gpuboost.losses.base import estimates_spread
from gpuboost.losses.distribution import scaled_to_start, units_of
from gpuboost.losses.protocol import Loss
from gpuboost.losses.start_values import OPTIMUM, StartRule, start_value
from gpuboost.multi_output import MultiOutput, OneTree, OneTreePerOutput
from gpuboost.records import dataclass, declared
from gpuboost.sampling import EveryRow, ImportanceSampling, Sampler, Sampling, recall, sampler_of
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.sampling.unclipped import UnclippedSampling
from gpuboost.steps import NewtonStep, Step
from gpuboost.types import Ensemble, Limits, TrainingSet


@dataclass(frozen=True, slots=True)
class Recipe:
    """The pieces that ``boost`` runs.

    Raises:
        RecipeError: if two pieces contradict each other, before any work is done.
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
    start_at: StartRule = OPTIMUM  # F_0
    inert: tuple[Finding, ...] = ()  # about parameters of the estimator that no piece reads
    permutations: int = 0  # of ordered target statistics: a sequence of trees for each; 0 without statistics
    views: FeatureViews | None = None  # the features of each permutation, if there are several
    averages: bool = False  # True: the model is the mean of its rounds, and rates are 1, 1/2, 1/3 ...
    multi_output: MultiOutput = field(default_factory=OneTreePerOutput)
    rates: Rates = ()  # of each round of the model, if they differ; learning_rate is then the largest of this fit

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise RecipeError(f"rounds: must be at least 0; got {self.rounds!r}.")
        if not self.learning_rate > 0.0:
            raise RecipeError(f"learning_rate: must be positive; got {self.learning_rate!r}.")
        curvature = self.step.curvature(self.loss)  # refuses a step that the loss cannot serve
        self.langevin.check(self.learning_rate, curvature, self.rounds)
        rules.check(self)

    @property
    def rereads_gradients(self) -> bool:
        """True if the gradients of a round may be read after its trees are grown, or by several workers."""
        plain = type(self.execution), type(self.langevin), type(self.multi_output), type(self.sampling)
        return plain != (Serial, NoNoise, OneTreePerOutput, EveryRow) or self.base_learner is not None

    @property
    def weak_learner(self) -> BaseLearner:
        """The base learner; trees if it is None."""
        return self.base_learner or Trees(self.growth)

    @property
    def _row_sampling(self) -> Sampling:
        """The sampling rule; without probabilities of 1 for a learner that ignores weights."""
        learner, rule = self.base_learner, self.sampling
        if isinstance(learner, AnyEstimator) and learner.cancels and isinstance(rule, ImportanceSampling):
            return UnclippedSampling(rule)
        return rule

    def _prepared_sampling(self, data: TrainingSet) -> Sampling:
        rule: Any = self._row_sampling
        traits = declared(SamplingTraits, rule)
        prepared: Sampling = rule
        if traits.n_rows is not None or traits.frozen_from is not None or traits.by_query:
            prepared = rule.prepared(data)
        return prepared

    @property
    def gain_noise(self) -> GainNoise:
        """Noise on split gains: ``random_strength``."""
        return gain_noise(self.growth.limits.random_strength)

    @property
    def cut_rule(self) -> CutRule:
        """Cuts that compete in a node: ``extra_trees``."""
        return cut_rule(self.growth.limits.extra_trees)

    def prepared(self, backend: Backend, data: TrainingSet) -> Recipe:
        """The recipe with all that a base learner and a selection rule can compute once for these data."""
        ready = self.weak_learner.prepared(backend, data)
        if self.views is not None:
            drawn = self.views.prepared(self.learners, data.cuts)
            return replace(self, learners=charged(drawn, self.growth.limits.costs, data.cuts), views=None)
        learners = prepared(self.learners, data.cuts, ready.n_groups(data))
        learners = charged(learners, self.growth.limits.costs, data.cuts)
        if self.base_learner is None:
            return self if learners is self.learners else replace(self, learners=learners)
        return replace(self, base_learner=ready, learners=learners)

    def continued(self, ensemble: Ensemble) -> Ensemble:
        """The ensemble with its functions on the spaces of this recipe, which is ``prepared``, and its gains noted."""
        recall = declared(SelectionTraits, self.learners).recall
        if recall is not None:
            recall(ensemble)
        learner = self.base_learner
        plan = learner.plan if isinstance(learner, BestOfFamilies) else None
        return ensemble if plan is None or not ensemble.components else on_spaces(ensemble, plan.spaces)

    def scaled(self, ensemble: Ensemble, data: TrainingSet) -> Recipe:
        """The recipe with a loss in the units of the model's start, if the loss has such.

        Langevin boosting keeps the loss as it is, since it draws from the posterior of that loss.
        """
        if isinstance(self.langevin, Langevin) or not estimates_spread(self.loss):
            return self
        start = np.array(ensemble.bias)
        if data.offset is not None:
            start[1] += weighted_mean(data.offset[1], data.row_weight())
        scaled, trees = scaled_to_start(self.loss, start), self.multi_output
        if isinstance(trees, OneTree):
            trees = replace(trees, units=units_of(scaled))
        return replace(self, loss=scaled, multi_output=trees)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Requirements of the pieces that other pieces do not meet."""
        return rules.findings(self)

    @property
    def sequences(self) -> int:
        """Number of sequences of trees, which grow in turn; the model is their mean."""
        return max(1, self.permutations)

    def rate(self, step: int) -> float:
        """The learning rate of a step of the loop; the sequences of trees take their steps of a round in turn."""
        return self.rates[step // self.sequences] if self.rates else self.learning_rate

    @property
    def stale_leaves(self) -> bool:
        """True if leaf values are computed by the workers, at the scores that they pulled."""
        return declared(ExecutionTraits, self.execution).leaf_values == "worker"

    def start(self, data: TrainingSet) -> Ensemble:
        """The model before its first tree."""
        if self.start_at == OPTIMUM and data.offset is None:
            return Ensemble(self.langevin.start(self.loss, data), data.cuts)
        return Ensemble(start_value(self.start_at, self.loss, data.y, data.row_weight(), data.offset), data.cuts)

    def sampler(self, backend: Backend, data: TrainingSet, ensemble: Ensemble, shrink: float) -> Sampler:
        """The sampler of a fit, with the rounds of a continued ensemble that control variates need."""
        sampler = sampler_of(self._prepared_sampling(data), own_leaves=self.stale_leaves)
        recall(
            sampler,
            backend,
            data,
            ensemble,
            loss=self.loss,
            curvature=self.step.curvature(self.loss),
            limits=self.growth.limits,
            shrink=shrink,
        )
        return sampler

    def chain(self, data: TrainingSet, ensemble: Ensemble) -> Chain:
        """Noise and shrinkage for these data and the ensemble to be continued.

        Raises:
            RecipeError: if shrinkage would underflow the factor of the first trees.
        """
        curvature = self.step.curvature(self.loss)
        chain = self.langevin.chain(data, self.learning_rate, curvature, self.growth.limits)
        chain.check(ensemble.n_rounds + self.rounds)
        return replace(chain, averages=True) if self.averages else chain
