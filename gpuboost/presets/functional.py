"""Functional gradient descent."""

from __future__ import annotations

from typing import Any

from gpuboost.presets.keywords import PLAIN_TREES, Parameters


def functional_paper(base_learner: Any = None, *, n_estimators: int = 100) -> Parameters:
    """Functional gradient descent (Friedman 2001, algorithm 1) with any base learner.

    F_0 is the constant of least loss; each round fits h to the negative gradient, finds the rho that makes
    sum l(y, F + rho h) least (a line search), and sets F <- F + rho h.

    Parameters
    ----------
    base_learner : as of the estimators
        None: trees.
    n_estimators : int
        Rounds.

    Notes
    -----
    Deviations. The gradient of the squared error is F - y; the note prints its negative in one place. The factor beta
    of the fit min (r - beta h)^2 has no influence, as rho replaces it. Families of ``gb.learners`` have penalties, so h
    is a smoothed fit. A round whose h does not lower the loss adds nothing. For shrinkage pass ``learning_rate`` below
    1.
    """
    return {
        "n_estimators": n_estimators,
        "learning_rate": 1.0,
        "step": "line_search",
        "base_learner": base_learner,
        **(PLAIN_TREES if base_learner is None else {}),
    }
