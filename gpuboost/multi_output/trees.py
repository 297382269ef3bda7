"""One tree for each output, or one for all."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

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
    """All outputs share the shape of one tree in each round, and each has its own leaf values.

    units: factors that bring the gradients of the outputs to one unit, by which their gains are added; () for none.
    """

    sketch: Sketch = field(default_factory=EveryOutput)
    units: tuple[float, ...] = ()

    def grow(
        self, backend: Backend, data: TrainingSet, target: Target, candidates: Candidates, alone: Grow, limits: Limits,
        key: Key,
    ) -> tuple[Structure, ...]:  # fmt: skip
        machine = cast(OneTreeGrower, backend)  # which the composition check sees to
        of_search = target.gradients
        if self.units:
            of_search = machine.chosen_outputs(of_search, *_in_units(self.units))
        searched = self.sketch.of(machine, of_search, key)
        return machine.grow_together(data, target, searched, candidates, limits)


@lru_cache(maxsize=64)  # equal arguments of a verb are the same objects, or a GPU would record each round anew
def _in_units(units: tuple[float, ...]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All outputs, and the factors of their gradients."""
    return np.arange(len(units)), np.array(units)
