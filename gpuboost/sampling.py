"""Which rows a tree is fitted to, and with what weight.

A rule is one small class with ``draw``. Rows are kept by independent coin flips q_i ~ Bernoulli(p_i), each flip a
function of (seed, round, row) alone, and weighted by 1 / p_i, so that every sum over rows keeps its expectation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.types import Gradients, Sample


class Sampling(Protocol):
    """A row-sampling rule."""

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample: ...


@dataclass(frozen=True, slots=True)
class EveryRow:
    """q_i = 1."""

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        return Sample()


@dataclass(frozen=True, slots=True)
class UniformSampling:
    """p_i = rate: stochastic gradient boosting (Friedman 2002), with a new draw for each tree.

    Raises:
        RecipeError: if the rate is not in (0, 1].
    """

    rate: float

    def __post_init__(self) -> None:
        if not 0.0 < self.rate <= 1.0:
            raise RecipeError(f"sampling: the rate must be in (0, 1]; got {self.rate!r}.")

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        if self.rate == 1.0:
            return Sample()
        return backend.sample(self.rate, gradients.g.shape[1], key)
