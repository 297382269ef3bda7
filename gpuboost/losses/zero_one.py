"""The smoothed 0-1 loss, for Langevin boosting."""

from __future__ import annotations

from math import sqrt
from typing import ClassVar

import numpy as np

from gpuboost.elementary import bounded, exp, expit, expit_array
from gpuboost.errors import RecipeError
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.target import number, zero_or_one
from gpuboost.records import dataclass
from gpuboost.types import Array


@dataclass(frozen=True, slots=True)
class SmoothedZeroOne(BaseLoss):
    """expit(t / scale) with t = -f if y = 1, f if y = 0: the 0-1 loss of sign f, which it becomes as scale goes to 0.

    (SGLB, section 5.1.) It has local optima, so use it with ``gb.Langevin``. Its slope is at most 1 / (4 scale), and
    vanishes if |f| is many times the scale: the start is 0, and shrinkage keeps scores where the gradient does not
    vanish. The second derivative is negative on the wrong side, so Newton steps are refused; h is its bound,
    1 / (6 sqrt(3) scale^2). A learning rate of about 10 scale^2 makes gradient steps as long as 1 / bound.

    ``predict_proba`` returns expit(f / scale), which orders the rows but is not calibrated.

    Raises:
        RecipeError: if scale is not between 1e-6 and 1e6.
    """

    scale: float = 0.1

    name: ClassVar[str] = "smoothed_zero_one"
    facts: ClassVar[LossFacts] = LossFacts(
        task="binary", convex=False, has_curvature=False, default_metric="error", link="logistic"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", number("SmoothedZeroOne", "scale", self.scale))
        if not 1e-6 <= self.scale <= 1e6:
            raise RecipeError(f"scale: SmoothedZeroOne needs a number from 1e-6 to 1e6; got {self.scale!r}.")

    @property
    def parameter(self) -> float:
        return self.scale

    @property
    def smoothness(self) -> float | None:
        return 1.0 / (6.0 * sqrt(3.0) * self.scale * self.scale)

    @property
    def lipschitz(self) -> float | None:
        return 0.25 / self.scale

    @property
    def link_scale(self) -> float:
        return 1.0 / self.scale

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        return expit((-f if y > 0.5 else f) / a)

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        e = exp(-abs(bounded(f / a)))  # p (1 - p) = e / (1 + e)^2, without overflow or cancellation
        slope = e / ((1.0 + e) * (1.0 + e)) / a
        return (-slope if y > 0.5 else slope), 0.09622504486493764 / (a * a)

    def log_odds(self, score: Array) -> Array:
        return score / self.scale

    def check_target(self, y: Array) -> None:
        zero_or_one(y, "SmoothedZeroOne")

    def start(self, y: Array, weight: Array) -> Array:
        return np.zeros(1)

    def inverse_link(self, scores: Array) -> Array:
        return expit_array(scores[0] / self.scale)
