"""Every row, and the same probability for every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.sampling.protocol import share
from gpuboost.types import Gradients, Sample

_EVERY = Sample()


@dataclass(frozen=True, slots=True)
class EveryRow:
    """q_i = 1."""

    unbiased: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    follows_gradients: ClassVar[bool] = False

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        return _EVERY


@dataclass(frozen=True, slots=True)
class UniformSampling:
    """p_i = rate: stochastic gradient boosting (Friedman 2002), with a new draw for each tree.

    Raises:
        RecipeError: if the rate is not in (0, 1].
    """

    rate: float

    unbiased: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    follows_gradients: ClassVar[bool] = False

    @property
    def draws_every_row(self) -> bool:
        return self.rate == 1.0

    def __post_init__(self) -> None:
        share("rate", self.rate)

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        if self.rate == 1.0:
            return Sample()
        return backend.sample(self.rate, gradients.g.shape[1], key)
