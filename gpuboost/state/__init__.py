"""The state of a training: the scores of its rows, and the model as far as it has grown."""

from gpuboost.state.growing_ensemble import GrowingEnsemble
from gpuboost.state.scores import RunningScores

__all__ = ["GrowingEnsemble", "RunningScores"]
