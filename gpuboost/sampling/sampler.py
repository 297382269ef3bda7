"""Samplers: a sampling rule in one run, which draws the rows of each round and makes the target of its trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Protocol

from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.records import dataclass, declared
from gpuboost.sampling.protocol import Losses, Sampling, SamplingTraits
from gpuboost.types import Array, FittedTree, Gradients, Sample, Target


class Sampler(Protocol):
    """Makes the targets of one run, in order of its rounds."""

    @property
    def rule(self) -> Sampling: ...

    @property
    def lag(self) -> int:
        """Number of past rounds that it needs."""
        ...

    def draw(self, backend: Backend, gradients: Gradients, losses: Losses, key: Key) -> Sample: ...

    def target(self, backend: Backend, version: int, gradients: Gradients, sample: Sample) -> Target: ...

    def remember(self, gradients: Gradients, trees: Sequence[FittedTree], leaves: Sequence[Array]) -> None:
        """Store a finished round: its gradients, its trees, and the (n,) leaf of every row in each tree."""
        ...


@dataclass(frozen=True, slots=True)
class PlainSampler:
    """Weighted gradients of the drawn rows. Leaf values are of all rows, or ``own_leaves`` of the sample.

    ``on_all_rows``: gradients of all rows, 1 / p times those of the drawn rows and 0, with the curvature of all rows
    (Horvitz-Thompson).
    """

    rule: Sampling
    own_leaves: bool = False
    on_all_rows: bool = False
    weighs_losses: bool = field(init=False)  # as the rule declares; read once

    def __post_init__(self) -> None:
        object.__setattr__(self, "weighs_losses", declared(SamplingTraits, self.rule).weighs_losses)

    @property
    def lag(self) -> int:
        return 0

    def draw(self, backend: Backend, gradients: Gradients, losses: Losses, key: Key) -> Sample:
        if self.weighs_losses:
            return drawn_by(self.rule, backend, gradients, losses, key)
        return self.rule.draw(backend, gradients, key)

    def target(self, backend: Backend, version: int, gradients: Gradients, sample: Sample) -> Target:
        if not self.on_all_rows:
            return Target(version, sample.rows, backend.weigh(gradients, sample), own_leaves=self.own_leaves)
        drawn = gradients if sample.rows is None else backend.horvitz_thompson(gradients, sample)
        return Target(version, None, drawn, own_leaves=self.own_leaves)

    def remember(self, gradients: Gradients, trees: Sequence[FittedTree], leaves: Sequence[Array]) -> None:
        """Do nothing: no past round is needed."""


def drawn_by(rule: Any, backend: Backend, gradients: Gradients, losses: Losses, key: Key) -> Sample:
    """The sample that the rule draws; rules that ``weighs_losses`` also get the losses."""
    if declared(SamplingTraits, rule).weighs_losses:
        sample: Sample = rule.draw(backend, gradients, key, losses)
    else:
        sample = rule.draw(backend, gradients, key)
    return sample
