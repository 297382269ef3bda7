"""Built-in families of base learners: the values of ``base_learner=`` other than a user's estimator.

All are functions of the bins of their features, as trees are, so a round costs one histogram, whatever the families.
Give one of them or a list; each round takes the one that lowers the weighted sum of squares most. All have the same
degrees of freedom, or the flexible ones would always win (Hofner, Hothorn, Kneib and Schmid 2011).
"""

from __future__ import annotations

from gpuboost._imports.lazy import lazy_names
from gpuboost.learners.families.protocol import Family, SmoothFamily, TreeFamily
from gpuboost.public import FAMILIES, modules_of

_families = modules_of(FAMILIES)
__getattr__, __dir__ = lazy_names(__name__, _families)

__all__ = ["Family", "SmoothFamily", "TreeFamily"]
__all__ += list(_families)
