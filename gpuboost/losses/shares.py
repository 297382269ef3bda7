"""Loss of shares: y lies between 0 and 1, as a proportion, a probability or a soft label does."""

from __future__ import annotations

from typing import ClassVar

from gpuboost.elementary import bounded, expit, expit_array, log1pexp
from gpuboost.losses.averages import constant, weighted_mean
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.binary import log_odds, log_odds_beside
from gpuboost.losses.target import finite, require
from gpuboost.records import dataclass
from gpuboost.types import Array


@dataclass(frozen=True, slots=True)
class CrossEntropy(BaseLoss):
    """y log(1 + e^-f) + (1 - y) log(1 + e^f): the cross entropy of a share y and the share p = 1 / (1 + e^-f).

    The score f is the log-odds of p. Its gradient is p - y, and its minimum over the distributions of y is at p = E[y]
    (Papke and Wooldridge 1996). For y of 0 and 1 it is the logistic loss; a share y of weight w is worth a row of class
    1 of weight w y and one of class 0 of weight w (1 - y). (LightGBM: cross_entropy; XGBoost: reg:logistic; CatBoost:
    CrossEntropy.)
    """

    name: ClassVar[str] = "cross_entropy"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression",
        smoothness=0.25,
        lipschitz=1.0,
        curvature_change=1.0,
        link="logistic",
        xgboost_objective="reg:logistic",
    )

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        t, rest = -abs(f), 1.0 - y if f > 0.0 else y
        return log1pexp(t) - rest * t

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        p, rest = expit(bounded(-abs(f))), 1.0 - y if f > 0.0 else y  # p <= 1/2, so that no digits of h cancel
        return rest - p if f > 0.0 else p - rest, p * (1.0 - p)

    def check_target(self, y: Array) -> None:
        y = finite(y, "CrossEntropy")
        advice = "Divide counts by their totals, and give the totals as sample_weight."
        require((y >= 0.0) & (y <= 1.0), y, "CrossEntropy needs shares between 0 and 1", advice)

    def start(self, y: Array, weight: Array) -> Array:
        return constant(log_odds(weighted_mean(y, weight)))

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return constant(log_odds_beside(y, weight, offset[0]))

    def inverse_link(self, scores: Array) -> Array:
        return expit_array(scores[0])
