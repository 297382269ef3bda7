"""Families of base learners that are built in: what ``base_learner=`` takes beside anybody's estimator.

All are functions of the bins of their features, as trees are, so that a round costs one histogram whichever of them
compete. Give one of them or a list; in each round the one that lowers the weighted sum of squares most is taken, each
with the same degrees of freedom, or the flexible ones would always win (Hofner, Hothorn, Kneib and Schmid 2011).
"""

from __future__ import annotations

from gpuboost.learners.families.protocol import Family, SmoothFamily, TreeFamily
from gpuboost.public import SMOOTH_FAMILIES, TREE_FAMILIES, loaded

FAMILIES: tuple[type[Family], ...] = tuple(map(loaded, (*SMOOTH_FAMILIES.values(), *TREE_FAMILIES.values())))

globals().update({family.__name__: family for family in FAMILIES})

__all__ = ["FAMILIES", "Family", "SmoothFamily", "TreeFamily"]
__all__ += [family.__name__ for family in FAMILIES]
