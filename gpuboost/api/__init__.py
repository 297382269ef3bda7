"""The scikit-learn surface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuboost._imports.lazy import lazy_names

if TYPE_CHECKING:
    from gpuboost.api.classifier import GradientBoostingClassifier
    from gpuboost.api.loading import dumps, load_model, loads
    from gpuboost.api.ranker import GradientBoostingRanker
    from gpuboost.api.regressor import GradientBoostingRegressor

_MODULES = {
    "GradientBoostingClassifier": "gpuboost.api.classifier",
    "GradientBoostingRanker": "gpuboost.api.ranker",
    "GradientBoostingRegressor": "gpuboost.api.regressor",
    "dumps": "gpuboost.api.loading",
    "load_model": "gpuboost.api.loading",
    "loads": "gpuboost.api.loading",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = [
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
    "GradientBoostingRegressor",
    "dumps",
    "load_model",
    "loads",
]
