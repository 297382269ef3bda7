"""The logistic loss of LogitBoost: the score is half of the log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpuboost.elementary import bounded, expit, expit_array, log1pexp
from gpuboost.losses.averages import constant, weighted_mean
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.binary import log_odds, log_odds_beside
from gpuboost.losses.target import zero_or_one
from gpuboost.types import Array


@dataclass(frozen=True, slots=True)
class LogitBoost(BaseLoss):
    """log(1 + e^2t) with t = -f if y = 1, f if y = 0, so that p = expit(2 f) (Friedman, Hastie and Tibshirani 2000).

    SMART and Asynch-SGBDT use it. It is ``Logistic`` in other units, which differ by up to a **factor of four**: with
    phi = |y - p|, |g| = 2 phi and h = 4 phi (1 - phi) are 2 and 4 times as large as those of ``Logistic``. So
    parameters of these papers translate to ``Logistic`` as follows:

        here                           Logistic, the same probabilities
        Newton, reg_lambda = 0         unchanged
        Newton, reg_lambda = L         reg_lambda = L / 4
        min_child_weight = w           min_child_weight = w / 4
        step="gradient", rate v        rate 4 v
        p_i = min(1, rho |g_i|)        2 rho;  by h_i: 4 rho
    """

    name: ClassVar[str] = "logitboost"
    facts: ClassVar[LossFacts] = LossFacts(
        task="binary", smoothness=1.0, lipschitz=2.0, default_metric="logloss", link="logistic", score_scale=2.0
    )

    @property
    def log_loss(self) -> LogitBoost:
        return self

    @staticmethod
    def value(y: float, f: float, a: float) -> float:
        return log1pexp(-2.0 * f if y > 0.5 else 2.0 * f)

    @staticmethod
    def derivatives(y: float, f: float, a: float) -> tuple[float, float]:
        p = expit(bounded(-2.0 * f if y > 0.5 else 2.0 * f))  # of the wrong class
        return (-2.0 * p if y > 0.5 else 2.0 * p), 4.0 * (p * (1.0 - p))

    def check_target(self, y: Array) -> None:
        zero_or_one(y, "LogitBoost")

    def start(self, y: Array, weight: Array) -> Array:
        return constant(0.5 * log_odds(weighted_mean(y, weight)))

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return constant(0.5 * log_odds_beside(y, weight, 2.0 * offset[0]))

    def inverse_link(self, scores: Array) -> Array:
        return expit_array(2.0 * scores[0])
