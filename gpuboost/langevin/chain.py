"""Noise and shrinkage in numbers: a policy such as ``Langevin`` after data, learning rate and curvature are known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import log2

from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.langevin.schedule import Schedule, deviation_factor
from gpuboost.records import dataclass
from gpuboost.types import Candidates, Grow, Limits, Noise, NoiseScale, Structure, Target, TrainingSet

MOST_FORGOTTEN = 1000.0  # binary orders that the scale may lose in a run; float64 holds 1,022


@dataclass(frozen=True, slots=True)
class Chain:
    """Noise and shrinkage of one run, for known data, learning rate and curvature. By default there is neither."""

    shrink: float = 1.0  # factor of the model in each round, 1 - gamma eps
    structure: float = 0.0  # standard deviation of the noise on G of a node, over sqrt(H)
    leaves: float = 0.0
    random_from: int | None = None  # the first round whose shapes are drawn at random; None: there is none
    schedule: Schedule | None = None  # factor on the temperature, by round; None: 1
    averages: bool = False  # True: the model is the mean of its rounds
    scale: NoiseScale | None = None  # of the structure's noise on a row's gradient; None: sqrt(h)

    def check(self, rounds: int) -> None:
        """Refuse a shrinkage that reduces the model to nothing, at once or within ``rounds`` rounds.

        Raises:
            RecipeError: if 1 - gamma eps is not above 0, or its power to the number of rounds is below 2**-1000.
        """
        if not self.shrink > 0.0:
            raise RecipeError(
                "shrinkage: a round must leave something of the model, so shrinkage times learning_rate is below 1; "
                f"got {1.0 - self.shrink:g}. Lower either."
            )
        if -log2(self.shrink) * rounds > MOST_FORGOTTEN:
            raise RecipeError(
                f"shrinkage: {rounds} rounds that each keep {self.shrink:g} of the model would leave less than "
                "2**-1000 of its first trees, which float64 cannot hold. Lower shrinkage, learning_rate or rounds."
            )

    def kept(self, round: int) -> float:
        """Share of the model that a round leaves, counted from 0."""
        return round / (round + 1.0) if self.averages and round else self.shrink

    def perturb(self, backend: Backend, target: Target, key: Key) -> Target:
        """The target that a tree's shape is fitted to. key: key of the round."""
        if self.structure == 0.0 or self._draws(key):
            return target
        deviation = self.structure * deviation_factor(self.schedule, key.iteration)
        if deviation == 0.0:
            return target
        gradients = backend.noise(target.gradients, target.rows, Noise(deviation, key, self.scale))
        return replace(target, gradients=gradients, noisy=True)

    def grow(self, search: Grow, limits: Limits, key: Key) -> Grow:
        """``search`` or, in rounds of random shapes, a random draw. key: key of the round."""
        if self.random_from is None or not self._draws(key):
            return search
        return partial(_drawn, limits, key)

    def _draws(self, key: Key) -> bool:
        return self.draws_shapes(key.iteration)

    def draws_shapes(self, round: int) -> bool:
        """True if the shapes of the round's trees are drawn at random, so that no rows are needed for them."""
        return self.random_from is not None and round >= self.random_from

    def leaf_noise(self, key: Key) -> Noise | None:
        """Noise on the gradients of the leaf values, independent of the structure's noise. key: key of the round."""
        if self.leaves == 0.0:
            return None
        deviation = self.leaves * deviation_factor(self.schedule, key.iteration)
        return None if deviation == 0.0 else Noise(deviation, key)


def _drawn(
    limits: Limits, key: Key, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
) -> Structure:
    return backend.grow(data, target, output, candidates, limits, key)
