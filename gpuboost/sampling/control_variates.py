"""Control variates (SMART, algorithm 3): the gradients of an earlier round, known for all rows, reduce variance."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import field

from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.losses.protocol import Loss
from gpuboost.records import dataclass, declared
from gpuboost.sampling.importance import ScoredDraws
from gpuboost.sampling.protocol import Losses, Sampling, SamplingTraits
from gpuboost.sampling.sampler import PlainSampler, Sampler, drawn_by
from gpuboost.state import RunningScores
from gpuboost.types import Array, Ensemble, FittedTree, Gradients, Limits, Sample, Structure, Target, TrainingSet


@dataclass(frozen=True, slots=True)
class _Round:
    gradients: Gradients
    trees: Sequence[FittedTree]  # fitted to these gradients
    leaves: Sequence[Array]


@dataclass(slots=True)
class ControlVariateSampler:
    """Sampled gradients with those of an earlier round as control variate; without one in the first rounds.

    ``by_node``: over all rows of the node being grown; otherwise over those of a leaf of the last round's tree.
    """

    rule: Sampling
    by_node: bool
    lag: int
    eta: float
    past: deque[_Round] = field(default_factory=deque)
    kept: Gradients | None = None  # of this round

    def draw(self, backend: Backend, gradients: Gradients, losses: Losses, key: Key) -> Sample:
        return drawn_by(self.rule, backend, gradients, losses, key)

    def target(self, backend: Backend, version: int, gradients: Gradients, sample: Sample) -> Target:
        target = self._target(backend, version, gradients, sample)
        self.kept = backend.keep_gradients(gradients, self.lag)
        return target

    def _target(self, backend: Backend, version: int, gradients: Gradients, sample: Sample) -> Target:
        if len(self.past) < self.lag:
            return Target(version, sample.rows, backend.weigh(gradients, sample), own_leaves=True)
        before = self.past[0].gradients
        if self.by_node:
            of_all_rows = backend.node_control_variate(gradients, sample, before, self.eta)
            return Target(version, None, of_all_rows, own_leaves=True)
        last = self.past[-1]
        sizes = tuple(tree.size for tree in last.trees)
        controlled = backend.leaf_control_variate(gradients, sample, before, self.eta, tuple(last.leaves), sizes)
        return Target(version, sample.rows, controlled, own_leaves=True)

    def remember(self, gradients: Gradients, trees: Sequence[FittedTree], leaves: Sequence[Array]) -> None:
        self.past.append(_Round(gradients if self.kept is None else self.kept, trees, leaves))
        if len(self.past) > self.lag:
            self.past.popleft()


def sampler_of(rule: Sampling, *, own_leaves: bool = False) -> Sampler:
    """The sampler that the rule's ``variance_control`` asks for.

    own_leaves: compute leaf values from the sample, even if the rule asks for exact ones.
    """
    traits = declared(SamplingTraits, rule)
    match traits.variance_control:
        case "none":
            return PlainSampler(rule, own_leaves=True)
        case "horvitz_thompson":
            return PlainSampler(rule, own_leaves=True, on_all_rows=True)
        case "node":
            return ControlVariateSampler(rule, True, traits.lag, traits.eta)
        case "previous_leaf":
            return ControlVariateSampler(rule, False, traits.lag, traits.eta)
    return PlainSampler(rule, own_leaves)


def recall(
    sampler: Sampler,
    backend: Backend,
    data: TrainingSet,
    ensemble: Ensemble,
    *,
    loss: Loss,
    curvature: float | None,
    limits: Limits,
    shrink: float,
) -> None:
    """Restore the sampler's memory of the last rounds of a continued ensemble, so that 5 + 5 rounds equal 10.

    Their gradients and leaves are computed again from the trees, as are scores of rows that are kept.
    """
    k = ensemble.n_outputs
    for version in range(max(0, ensemble.n_rounds - sampler.lag), ensemble.n_rounds):
        scores = RunningScores.of(backend, data, ensemble.first(version), shrink).values
        gradients = backend.gradients(loss, scores, data, curvature)
        trees = ensemble.trees[k * version : k * version + k]
        shapes = (Structure(tree.nodes, tree.output, version, None, None) for tree in trees)
        leaves = tuple(backend.leaf_values(shape, gradients, data, limits, version)[1] for shape in shapes)
        sampler.remember(gradients, trees, leaves)
    rule = sampler.rule
    kept = rule.of.frozen_from if isinstance(rule, ScoredDraws) else None
    if isinstance(rule, ScoredDraws) and kept is not None and ensemble.n_rounds > kept:
        scores = RunningScores.of(backend, data, ensemble.first(kept), shrink).values
        rule.recall(
            backend, backend.gradients(loss, scores, data, curvature), lambda: backend.losses(loss, scores, data)
        )
