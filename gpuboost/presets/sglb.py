"""Stochastic gradient Langevin boosting."""

from __future__ import annotations

from gpuboost.langevin import Langevin
from gpuboost.presets.keywords import PLAIN_TREES, Parameters


def sglb_paper(
    *,
    n_estimators: int = 1000,
    learning_rate: float = 0.1,
    max_depth: int = 1,
    inverse_temperature: float = 1e3,
    shrinkage: float = 1e-3,
    sampling: float | None = None,
    max_bins: int = 6,
) -> Parameters:
    """Stochastic gradient Langevin boosting (Ustimenko and Prokhorenkova, ICML 2021), algorithm 2.

    F_0 = 0; the shape of a tree is fitted to g + s zeta', its leaf values are means of -(g + s zeta) with another zeta,
    s = sqrt(2 N / (eps beta)), and F <- (1 - gamma eps) F + eps h. The defaults are those of Table 1; its loss is
    ``gb.losses.SmoothedZeroOne(0.1)``. Borders are those of GreedyLogSum (section 5.1).

    Parameters
    ----------
    n_estimators, learning_rate, max_depth
        Rounds, eps, and the depth of the trees, which are symmetric as those of the paper's program.
    inverse_temperature : float
        beta of the formula, of the mean loss. The paper's program takes the number it prints for beta / N, so that its
        runs are N times as cold: for these pass N times the printed number (Table 1: 1e6).
    shrinkage : float
        gamma.
    sampling : float or None
        Share of the rows drawn for the shape of a tree.
    max_bins : int
        Bins of a feature, one more than its borders.

    Notes
    -----
    Deviations. With ``sampling``, leaf values are means of all rows of a leaf, and in algorithm 2 of those drawn.
    """
    policy = Langevin(inverse_temperature=inverse_temperature, shrinkage=shrinkage, paper=True)
    return {
        "n_estimators": n_estimators,
        "learning_rate": learning_rate,
        "growth": "oblivious",
        "max_depth": max_depth,
        "max_bins": max_bins,
        "binning": "greedy_log_sum",
        "step": "gradient",
        "start": 0.0,
        "sampling": sampling,
        "langevin": policy,
        **PLAIN_TREES,
    }
