"""The logistic loss of pairs that the user hands in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.losses.averages import constant
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.target import finite, number
from gpuboost.types import Array


@dataclass(frozen=True, slots=True)
class PairLogit(BaseLoss):
    """sum w log(1 + e^(-sigma (f_winner - f_loser))) over the pairs of ``fit(..., pairs=)`` (CatBoost: ``PairLogit``).

    The loss does not depend on the targets; metrics do. The objective is fixed and convex. Derivatives are
    computed by the host, also for a training on a GPU.

    Args:
        sigma: steepness of the logistic function.

    Raises:
        RecipeError: if it is not a positive number.
    """

    sigma: float = 1.0

    name: ClassVar[str] = "pair_logit"
    needs_pairs: ClassVar[bool] = True
    on_host: ClassVar[bool] = True
    truncation: ClassVar[int | None] = None
    uses_ideal: ClassVar[bool] = False
    facts: ClassVar[LossFacts] = LossFacts(task="ranking", default_metric="ndcg")

    def __post_init__(self) -> None:
        sigma = number("PairLogit", "sigma", self.sigma)
        if not sigma > 0.0:
            raise RecipeError(f"sigma: PairLogit needs a positive number; got {self.sigma!r}.")
        object.__setattr__(self, "sigma", sigma)

    @property
    def parameter(self) -> float:
        return self.sigma

    @staticmethod
    def pair_weight(gain: float, discount: float) -> float:
        return 1.0

    def gains(self) -> NDArray[np.float64]:
        return np.empty(0)

    def check_target(self, y: Array) -> None:
        finite(y, "PairLogit")

    def start(self, y: Array, weight: Array) -> Array:
        return constant(0.0)  # only differences of scores matter
