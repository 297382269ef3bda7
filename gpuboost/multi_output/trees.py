"""One tree for each output, or one for all."""

from __future__ import annotations

from dataclasses import field
from typing import cast

from gpuboost.backends.optional_verbs import OneTreeGrower
from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.multi_output.protocol import Sketch
from gpuboost.records import dataclass
from gpuboost.types import Candidates, Gradients, Grow, Limits, Structure, Target, TrainingSet


@dataclass(frozen=True, slots=True)
class OneTreePerOutput:
    """Each output has trees of its own, of the limits of its own gradients."""

    def grow(
        self, backend: Backend, data: TrainingSet, target: Target, candidates: Candidates, alone: Grow, limits: Limits,
        key: Key,
    ) -> tuple[Structure, ...]:  # fmt: skip
        return tuple(alone(backend, data, target, output, candidates) for output in range(target.gradients.g.shape[0]))


@dataclass(frozen=True, slots=True)
class EveryOutput:
    """No sketch: the gradients of all outputs."""

    def of(self, machine: OneTreeGrower, gradients: Gradients, key: Key) -> Gradients:
        return gradients


@dataclass(frozen=True, slots=True)
class OneTree:
    """All outputs share the shape of one tree in each round, and each has its own leaf values."""

    sketch: Sketch = field(default_factory=EveryOutput)

    def grow(
        self, backend: Backend, data: TrainingSet, target: Target, candidates: Candidates, alone: Grow, limits: Limits,
        key: Key,
    ) -> tuple[Structure, ...]:  # fmt: skip
        machine = cast(OneTreeGrower, backend)  # which the composition check sees to
        searched = self.sketch.of(machine, target.gradients, key)
        return machine.grow_together(data, target, searched, candidates, limits)
