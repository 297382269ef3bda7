"""Base learners: trees, or any other functions that can be fitted to a target and added to the model."""

from gpuboost.base_learners.protocol import BaseLearner, RoundState
from gpuboost.base_learners.trees import Trees

__all__ = ["BaseLearner", "RoundState", "Trees"]
