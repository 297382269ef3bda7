"""What is boosted: trees, or any other base learner. How it is fitted to a target, and joined to the model."""

from gpuboost.base_learners.protocol import BaseLearner, Now
from gpuboost.base_learners.trees import Trees

__all__ = ["BaseLearner", "Now", "Trees"]
