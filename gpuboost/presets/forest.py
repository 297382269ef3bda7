"""A random forest as averaged boosting."""

from __future__ import annotations

from gpuboost.learners import RandomByNode
from gpuboost.learning_rates import Averaging
from gpuboost.presets.keywords import PLAIN_TREES, Parameters
from gpuboost.sampling import UniformSampling


def random_forest(
    *,
    n_estimators: int = 100,
    rate: float = 0.632,
    learners: float = 1.0 / 3.0,
    max_depth: int = 16,
    min_samples_leaf: int = 1,
) -> Parameters:
    """A random forest (Breiman 2001): the mean of deep trees, each grown on drawn rows, with features drawn by node.

    Parameters
    ----------
    n_estimators, max_depth, min_samples_leaf
        Trees, and their limits. Breiman's trees have no limit of depth.
    rate : float
        Share of the rows that a tree sees; 0.632 is the share of different rows in a bootstrap sample.
    learners : float
        Share of the features that a node may be split by.

    Notes
    -----
    Deviations. Rows are drawn without replacement, as in LightGBM's and XGBoost's forests. Trees of a loss other than
    the squared error are fitted to its gradient at the start, and their mean is a score, as in LightGBM.
    """
    return {
        "n_estimators": n_estimators,
        "learning_rate": Averaging(),
        "max_depth": max_depth,
        "min_samples_leaf": min_samples_leaf,
        "sampling": UniformSampling(rate, variance_control="none"),
        "learners": RandomByNode(learners),
        **PLAIN_TREES,
    }
