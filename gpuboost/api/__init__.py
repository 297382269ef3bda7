"""The scikit-learn surface."""

from gpuboost.api.classifier import GradientBoostingClassifier
from gpuboost.api.loading import load_model
from gpuboost.api.ranker import GradientBoostingRanker
from gpuboost.api.regressor import GradientBoostingRegressor

__all__ = ["GradientBoostingClassifier", "GradientBoostingRanker", "GradientBoostingRegressor", "load_model"]
