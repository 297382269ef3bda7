"""Losses: what a fit makes small. ``get("huber")`` or ``Huber(delta=2.0)``; docs/losses.md has the table."""

from __future__ import annotations

from gpuboost.losses.binary import Exponential, Logistic
from gpuboost.losses.custom import Custom, SavedCustom, custom
from gpuboost.losses.positive import Gamma, Poisson, Tweedie
from gpuboost.losses.protocol import Loss
from gpuboost.losses.registry import NAMES, from_json, get, to_json
from gpuboost.losses.residual import AbsoluteError, Huber, Quantile, SquaredError
from gpuboost.losses.softmax import Softmax

__all__ = [
    "NAMES",
    "AbsoluteError",
    "Custom",
    "Exponential",
    "Gamma",
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "Quantile",
    "SavedCustom",
    "Softmax",
    "SquaredError",
    "Tweedie",
    "custom",
    "from_json",
    "get",
    "to_json",
]
