"""StochasticRank: 1 - NDCG smoothed by noise on the scores, with an unbiased and bounded estimate of its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, pi, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_integer
from gpuboost.errors import RecipeError
from gpuboost.losses.averages import constant
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.ranking import check_labels, flag, gain_table, gains_of_labels, truncation_of
from gpuboost.losses.target import number
from gpuboost.types import Array

MOST_SAMPLES = 1000


@dataclass(frozen=True, slots=True)
class StochasticRank(BaseLoss):
    """E[1 - NDCG(z - sigma mu y + sigma e)], e normal: the metric itself, smoothed (Ustimenko and Prokhorenkova 2020).

    z are the scores of a list, y its labels. NDCG is that of ``LambdaMART``: gains G of labels, discounts
    D = 1 / log2(1 + rank), the first ``truncation`` places. The gradient is estimated by coordinate conditional
    sampling: each document's own noise is integrated, with the noisy scores of the others as drawn (section 4 of arXiv
    2003.02122). The estimate is unbiased, and at most 0.4 / sigma in size.

    The smoothed metric is a fixed objective, of bounded slope and curvature but not convex. Use it with
    ``gb.Langevin``, whose theory applies. Steps are gradient steps: Newton steps are refused.

    Args:
        sigma: standard deviation of the noise on scores. As it goes to 0 the smoothed metric becomes NDCG.
        truncation: places that count; None for all of them.
        gain: gain of label 0, 1, 2, ..., not decreasing; None for 2^label - 1, labels up to 31.
        mu: relevant documents are lowered by sigma mu y before the noise, so that a tie of scores is judged by its
            worst order as mu grows (consistent smoothing). 0: a tie is judged by the mean over its orders.
        samples: draws of noise that an estimate averages, at most 1000.
        scale_free: remove from a list's estimate its mean and its part along the list's scores, which multiply the
            scores by a number and cannot change an order (scale-free acceptance; CatBoost does so by default). The
            estimate is then no gradient of a fixed objective.

    Raises:
        RecipeError: if one of them is out of its range.
    """

    sigma: float = 1.0
    truncation: int | None = 30
    gain: tuple[float, ...] | None = None
    mu: float = 0.0
    samples: int = 1
    scale_free: bool = False

    name: ClassVar[str] = "stochastic_rank"
    uses_ideal: ClassVar[bool] = True
    facts: ClassVar[LossFacts] = LossFacts(task="ranking", convex=False, has_curvature=False, default_metric="ndcg")

    def __post_init__(self) -> None:
        object.__setattr__(self, "truncation", truncation_of("StochasticRank", self.truncation))
        object.__setattr__(self, "gain", gain_table("StochasticRank", self.gain))
        object.__setattr__(self, "sigma", _in_range("sigma", self.sigma, 1e-6, 1e6))
        object.__setattr__(self, "mu", _in_range("mu", self.mu, 0.0, 1e6))
        if not is_integer(self.samples, 1) or self.samples > MOST_SAMPLES:
            raise RecipeError(
                f"samples: StochasticRank needs a whole number from 1 to {MOST_SAMPLES}; got {self.samples!r}."
            )
        object.__setattr__(self, "samples", int(self.samples))
        object.__setattr__(self, "scale_free", flag("StochasticRank", "scale_free", self.scale_free))

    @property
    def parameter(self) -> float:
        return self.sigma

    @property
    def lipschitz(self) -> float | None:
        """Bound of |g|: the jumps of NDCG as one document rises sum to 1 at most, times the largest density."""
        return None if self.scale_free else 1.0 / (sqrt(2.0 * pi) * self.sigma)

    @property
    def smoothness(self) -> float | None:
        """Bound of the second derivatives of a list: E|e^2 - 1| / (2 sigma^2), as NDCG has a range of 1."""
        return 2.0 * exp(-0.5) / (sqrt(2.0 * pi) * self.sigma * self.sigma)

    @staticmethod
    def pair_weight(gain: float, discount: float) -> float:
        return gain * discount

    def gains(self) -> NDArray[np.float64]:
        return gains_of_labels(self.gain)

    def check_target(self, y: Array) -> None:
        check_labels("StochasticRank", y, len(self.gains()))

    def start(self, y: Array, weight: Array) -> Array:
        return constant(0.0)  # only differences of scores matter


def _in_range(name: str, value: Any, least: float, largest: float) -> float:
    parameter = number("StochasticRank", name, value)
    if not least <= parameter <= largest:
        raise RecipeError(f"{name}: StochasticRank needs a number from {least:g} to {largest:g}; got {value!r}.")
    return parameter
