"""Losses: what a fit makes small. ``get("huber")`` or ``Huber(delta=2.0)``; docs/losses.md has the table."""

from __future__ import annotations

from gpuboost.losses.binary import Exponential, Logistic
from gpuboost.losses.custom import Custom, SavedCustom, custom
from gpuboost.losses.distribution import GaussianNLL
from gpuboost.losses.logitboost import LogitBoost
from gpuboost.losses.positive import Gamma, Poisson, Tweedie
from gpuboost.losses.protocol import Loss
from gpuboost.losses.ranking import LambdaMART, PairwiseLogistic
from gpuboost.losses.registry import NAMES, from_json, get, to_json
from gpuboost.losses.residual import AbsoluteError, Huber, Quantile, SquaredError
from gpuboost.losses.softmax import Softmax
from gpuboost.losses.zero_one import SmoothedZeroOne

__all__ = [
    "NAMES",
    "AbsoluteError",
    "Custom",
    "Exponential",
    "Gamma",
    "GaussianNLL",
    "Huber",
    "LambdaMART",
    "Logistic",
    "LogitBoost",
    "Loss",
    "PairwiseLogistic",
    "Poisson",
    "Quantile",
    "SavedCustom",
    "SmoothedZeroOne",
    "Softmax",
    "SquaredError",
    "Tweedie",
    "custom",
    "from_json",
    "get",
    "to_json",
]
