"""The randomized gradient boosting machine."""

from __future__ import annotations

from typing import Any

from gpuboost.learners import RandomGroup, RandomGroups, RandomLearners, Selection
from gpuboost.presets.keywords import PLAIN_TREES, Parameters, check_one_of


def rgbm_paper(
    *,
    selection: int = 3,
    t: int | float = 1,
    groups: Any = "feature",
    step: str = "constant",
    stump: str = "sign",
    n_estimators: int = 100,
) -> Parameters:
    """Randomized gradient boosting machine (Lu and Mazumder, SIAM J. Optim. 2020), algorithm 3, for stumps.

    F_0 = 0; each round draws a set J of stumps, takes the one with the largest |<B_j, r>|, and adds rho B_j with
    rho = <B_j, r> / sigma or by a line search. For the rates of theorem 4.1 the loss must be strongly convex, such as
    ``gb.losses.Logistic(ridge=1e-3)`` or the squared error.

    Parameters
    ----------
    selection : 0, 1, 2 or 3
        Type of the random set: all learners, t learners, one group, t groups.
    t : int or float
        Number or share of learners (type 1) or groups (type 3).
    groups : "feature" or labels of the columns
        Partition of types 2 and 3.
    step : "constant" or "line_search"
        rho = <B_j, r> / sigma, or the minimum along B_j.
    stump : "sign" or "leaf"
        The stump of equation 5, +1 and -1, or that of the paper's program with a value on each side.
    n_estimators : int
        Rounds M.

    Notes
    -----
    Deviations. Cuts are 100 quantiles for any number of rows; the paper takes every value up to 10,000 rows. The ridge
    of the paper's loss is (d / 2) F^2, as here; its program has (d / 2) (F - y)^2. Of equally good stumps the first one
    is taken, where the program's order is random.

    Raises
    ------
    RecipeError
        If selection, step or stump is none of these.
    """
    check_one_of("selection", selection, (0, 1, 2, 3))
    check_one_of("step", step, ("constant", "line_search"))
    check_one_of("stump", stump, ("sign", "leaf"))
    by_type: dict[int, Selection] = {
        1: RandomLearners(t),
        2: RandomGroup(groups),
        3: RandomGroups(t, groups),
    }
    return {
        "n_estimators": n_estimators,
        "learning_rate": 1.0,
        "growth": "sign_stump" if stump == "sign" else "depthwise",
        "max_depth": 1,
        "max_bins": 101,
        "step": step,
        "start": 0.0,
        "learners": by_type.get(selection),
        **PLAIN_TREES,
    }
