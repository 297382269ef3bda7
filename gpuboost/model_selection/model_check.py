"""The check of ``model``: an estimator of this library."""

from __future__ import annotations

from typing import Any

from gpuboost.api.base import GradientBoosting
from gpuboost.errors import RecipeError


def check_model(model: Any) -> None:
    """Raise RecipeError unless it is an estimator of this library."""
    if not isinstance(model, GradientBoosting):
        raise RecipeError(f"model: must be an estimator of gpuboost; got {type(model).__name__}.")
