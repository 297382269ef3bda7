"""Weight trimming (Friedman, Hastie and Tibshirani 2000): rows of small weight are left out."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from gpuboost.arguments import is_one_of
from gpuboost.backends.numerics.probabilities import TrimmingRule
from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.sampling.protocol import explaining_leaf_values, leaves_from, share
from gpuboost.types import Gradients, Sample


@explaining_leaf_values
@dataclass(frozen=True, slots=True)
class WeightTrimming:
    """The rows with the largest weights, as many as it takes to hold ``mass`` of the sum of all; chosen in each round.

    A row's weight is its curvature h, as in LogitBoost, or |g| for ``score="gradient"``. There is no compensation for
    rows left out, so sums are biased; leaf values are of all rows, unless ``variance_control`` is "none". ``mass`` is
    1 - beta of the paper, which takes beta from 0.01 to 0.1.

    Raises:
        RecipeError: if mass is not in (0, 1], or the score is neither of the two.
    """

    mass: float = 0.9
    score: str = "hessian"
    variance_control: str = "leaf_refit"

    unbiased: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    repeatable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        share("mass", self.mass)
        leaves_from(self.variance_control, ("leaf_refit", "none"))
        if not is_one_of(self.score, ("hessian", "gradient")):
            raise RecipeError(f"sampling: the score must be 'hessian' or 'gradient'; got {self.score!r}.")

    @property
    def draws_every_row(self) -> bool:
        """True if it equals no sampling: no row is left out, and leaf values are of all rows."""
        return self.mass == 1.0 and self.variance_control == "leaf_refit"

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        if self.mass == 1.0:
            return Sample()
        return backend.draw(gradients, inf if self.score == "hessian" else 0.0, TrimmingRule(float(self.mass)), key)
