"""Which weak learners compete for a round (RGBM, Lu and Mazumder, SIAM J. Optim. 2020, section 1.2)."""

from gpuboost.learners.selection import AllLearners, RandomGroups, Selection

__all__ = ["AllLearners", "RandomGroups", "Selection"]
