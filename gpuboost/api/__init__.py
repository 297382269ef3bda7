"""The scikit-learn surface."""

from gpuboost.api.classifier import GradientBoostingClassifier
from gpuboost.api.loading import dumps, load_model, loads
from gpuboost.api.ranker import GradientBoostingRanker
from gpuboost.api.regressor import GradientBoostingRegressor
from gpuboost.api.warm_up import warm_up

__all__ = [
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
    "GradientBoostingRegressor",
    "dumps",
    "load_model",
    "loads",
    "warm_up",
]
