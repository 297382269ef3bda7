"""From a sample to what a tree is fitted to: where its sums, and so its leaf values, come from."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.records import declared
from gpuboost.sampling.protocol import Losses, Sampling, SamplingTraits
from gpuboost.types import Array, Gradients, Sample, Target, Tree


class Targets(Protocol):
    """Makes the targets of one run, in order of its rounds."""

    @property
    def lag(self) -> int:
        """How many rounds back it has to remember."""
        ...

    def sample(self, backend: Backend, gradients: Gradients, losses: Losses, key: Key) -> Sample: ...

    def target(self, backend: Backend, version: int, gradients: Gradients, sample: Sample) -> Target: ...

    def remember(self, gradients: Gradients, trees: tuple[Tree, ...], leaves: tuple[Array, ...]) -> None:
        """What was grown, and the (n,) leaf of every row in each tree."""
        ...


@dataclass(slots=True)
class FromSample:
    """Weighted gradients of the drawn rows. Leaf values are of all rows, or ``own_leaves`` of the sample."""

    rule: Sampling
    own_leaves: bool = False
    lag: int = field(default=0, init=False)

    def sample(self, backend: Backend, gradients: Gradients, losses: Losses, key: Key) -> Sample:
        return _drawn(self.rule, backend, gradients, losses, key)

    def target(self, backend: Backend, version: int, gradients: Gradients, sample: Sample) -> Target:
        return Target(version, sample.rows, backend.weigh(gradients, sample), own_leaves=self.own_leaves)

    def remember(self, gradients: Gradients, trees: tuple[Tree, ...], leaves: tuple[Array, ...]) -> None:
        """Nothing is needed again."""


@dataclass(frozen=True, slots=True)
class _Past:
    gradients: Gradients
    trees: tuple[Tree, ...]  # that were fitted to them
    leaves: tuple[Array, ...]


@dataclass(slots=True)
class Controlled:
    """Gradients with those of an earlier round as a control variate (SMART, algorithm 3); the sample's alone at first.

    ``by_node``: over all rows of the node being grown; otherwise over those of a leaf of the last round's tree.
    """

    rule: Sampling
    by_node: bool
    lag: int
    eta: float
    past: deque[_Past] = field(default_factory=deque)
    kept: Gradients | None = None  # of this round

    def sample(self, backend: Backend, gradients: Gradients, losses: Losses, key: Key) -> Sample:
        return _drawn(self.rule, backend, gradients, losses, key)

    def target(self, backend: Backend, version: int, gradients: Gradients, sample: Sample) -> Target:
        made = self._target(backend, version, gradients, sample)
        self.kept = backend.keep(gradients, self.lag)
        return made

    def _target(self, backend: Backend, version: int, gradients: Gradients, sample: Sample) -> Target:
        if len(self.past) < self.lag:
            return Target(version, sample.rows, backend.weigh(gradients, sample), own_leaves=True)
        before = self.past[0].gradients
        if self.by_node:
            every = backend.node_control(gradients, sample, before, self.eta)
            return Target(version, None, every, own_leaves=True)
        last = self.past[-1]
        sizes = tuple(tree.size for tree in last.trees)
        controlled = backend.leaf_control(gradients, sample, before, self.eta, last.leaves, sizes)
        return Target(version, sample.rows, controlled, own_leaves=True)

    def remember(self, gradients: Gradients, trees: tuple[Tree, ...], leaves: tuple[Array, ...]) -> None:
        self.past.append(_Past(gradients if self.kept is None else self.kept, trees, leaves))
        if len(self.past) > self.lag:
            self.past.popleft()


def targets_of(rule: Sampling, *, own_leaves: bool = False) -> Targets:
    """As the rule's ``variance_control`` asks; exact leaf values if it asks for none, or those of ``own_leaves``."""
    traits = declared(SamplingTraits, rule)
    match traits.variance_control:
        case "none":
            return FromSample(rule, own_leaves=True)
        case "node":
            return Controlled(rule, True, traits.lag, traits.eta)
        case "previous_leaf":
            return Controlled(rule, False, traits.lag, traits.eta)
    return FromSample(rule, own_leaves)


def _drawn(rule: Any, backend: Backend, gradients: Gradients, losses: Losses, key: Key) -> Sample:
    if declared(SamplingTraits, rule).weighs_losses:
        drawn: Sample = rule.draw(backend, gradients, key, losses)
    else:
        drawn = rule.draw(backend, gradients, key)
    return drawn
