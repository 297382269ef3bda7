"""Rules that select the weak learners of a round (RGBM, Lu and Mazumder, SIAM J. Optim. 2020, section 1.2).

Also the built-in families of base learners, for ``base_learner=``: those of ``gpuboost.public``.
"""

from gpuboost._imports.lazy import lazy_names
from gpuboost.learners.by_level import RandomByLevel
from gpuboost.learners.by_node import RandomByNode
from gpuboost.learners.cyclic import CyclicGroups
from gpuboost.learners.feature_costs import FeatureCosts, charged
from gpuboost.learners.gain_noise import GainNoise, gain_noise
from gpuboost.learners.groups import RandomGroup, RandomGroups
from gpuboost.learners.pairs import RandomLearners
from gpuboost.learners.random_cuts import CutRule, cut_rule
from gpuboost.learners.selection import AllLearners, Selection, prepared
from gpuboost.learners.semi_greedy import SemiGreedyGroups
from gpuboost.learners.views import FeatureViews
from gpuboost.learners.weighted import WeightedGroups
from gpuboost.learners.weighted_nodes import WeightedNodes, weighted
from gpuboost.public import FAMILIES, modules_of

_families = modules_of(FAMILIES)
__getattr__, __dir__ = lazy_names(__name__, _families)

__all__ = [
    "AllLearners",
    "CutRule",
    "CyclicGroups",
    "FeatureCosts",
    "FeatureViews",
    "GainNoise",
    "RandomByLevel",
    "RandomByNode",
    "RandomGroup",
    "RandomGroups",
    "RandomLearners",
    "Selection",
    "SemiGreedyGroups",
    "WeightedGroups",
    "WeightedNodes",
    "charged",
    "cut_rule",
    "gain_noise",
    "prepared",
    "weighted",
]
__all__ += list(_families)
