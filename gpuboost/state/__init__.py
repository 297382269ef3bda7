"""The state of a training: the scores of its rows, and the model so far."""

from gpuboost.state.growing_ensemble import GrowingEnsemble
from gpuboost.state.repeated_rounds import repeat
from gpuboost.state.scores import RunningScores, started

__all__ = ["GrowingEnsemble", "RunningScores", "repeat", "started"]
