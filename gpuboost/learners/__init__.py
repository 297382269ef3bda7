"""Which weak learners compete for a round (RGBM, Lu and Mazumder, SIAM J. Optim. 2020, section 1.2).

And the families that are built in beside trees, for ``base_learner=``.
"""

from gpuboost.learners.by_node import RandomByNode
from gpuboost.learners.cyclic import CyclicGroups
from gpuboost.learners.families import CategoricalRidge, Linear, LinearTree, Spline, TensorSpline, Tree
from gpuboost.learners.gain_noise import GainNoise, gain_noise
from gpuboost.learners.groups import RandomGroup, RandomGroups
from gpuboost.learners.pairs import RandomLearners
from gpuboost.learners.selection import AllLearners, Selection, prepared
from gpuboost.learners.weighted import WeightedGroups

__all__ = [
    "AllLearners",
    "CategoricalRidge",
    "CyclicGroups",
    "GainNoise",
    "Linear",
    "LinearTree",
    "RandomByNode",
    "RandomGroup",
    "RandomGroups",
    "RandomLearners",
    "Selection",
    "Spline",
    "TensorSpline",
    "Tree",
    "WeightedGroups",
    "gain_noise",
    "prepared",
]
