"""Published algorithms as keyword arguments of the estimators, as their papers print them; and ``best``.

A preset is a dict: ``gb.GradientBoostingClassifier(**gb.presets.rgbm_paper(t=10))``. Its entries may be replaced, as by
``{**gb.presets.rgbm_paper(t=10), "n_estimators": 50}``. What a paper leaves open has the estimator's default, and each
deviation is named with the equation that it concerns.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from gpuboost.arguments import is_integer
from gpuboost.errors import RecipeError
from gpuboost.execution import Asynchronous, Execution, SimulatedWorkers
from gpuboost.langevin import Langevin
from gpuboost.learners import RandomByNode, RandomGroup, RandomGroups, RandomLearners, Selection
from gpuboost.learning_rates import Averaging
from gpuboost.sampling import ImportanceSampling, UniformSampling, smart_first_order, smart_second_order

Parameters = dict[str, Any]
"""Keyword arguments of an estimator"""

PLAIN_TREES: Parameters = {"reg_lambda": 0.0, "min_child_weight": 0.0}
"""Leaves without a ridge or a least weight, as in the papers."""


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


SMALL = 10_000
"""Rows below which ``best`` has oblivious trees"""

MANY_CLASSES = 5
"""Classes from which on ``best`` has one tree for all of them"""


def best(n_rows: int | None = None, n_classes: int | None = None) -> Parameters:
    """The settings that did best on seven real sets; no paper's.

    ``n_estimators="auto"`` and ``learning_rate="auto"``, and each tree grown on 80 % of the rows and 70 % of the
    features. Ten other sets show what it is worth: ``defaults`` in benchmarks/README.md. A fit takes several times as
    long as one of 100 rounds, and of data almost without noise up to 50 times.

    Parameters
    ----------
    n_rows : int or None
        Rows of the training data. Of fewer than 10,000, trees are oblivious, as CatBoost's: better on small data, and
        on larger ones as good in more time. None: depth-wise trees.
    n_classes : int or None
        Classes of a classification. Of five or more, each round has one depth-wise tree for all of them, without a
        least curvature of leaves. None: not known.
    """
    if n_rows is not None and not is_integer(n_rows, 1):
        raise RecipeError(f"n_rows: must be None or an integer of at least 1; got {n_rows!r}.")
    if n_classes is not None and not is_integer(n_classes, 2):
        raise RecipeError(f"n_classes: must be None or an integer of at least 2; got {n_classes!r}.")
    shared = n_classes is not None and n_classes >= MANY_CLASSES
    return {
        "n_estimators": "auto",
        "learning_rate": "auto",
        "growth": "oblivious" if n_rows is not None and n_rows < SMALL and not shared else "depthwise",
        "sampling": 0.8,
        "learners": 0.7,
        **({"multi_output": "one_tree", "min_child_weight": 0.0} if shared else {}),
    }


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
    _one_of("selection", selection, (0, 1, 2, 3))
    _one_of("step", step, ("constant", "line_search"))
    _one_of("stump", stump, ("sign", "leaf"))
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


def smart_paper(
    order: int = 1,
    *,
    rho: float = 1.0,
    loss: str | None = "logitboost",
    n_estimators: int = 100,
    learning_rate: float = 0.1,
    variance_control: str | None = None,
) -> Parameters:
    """SMART: importance-sampled boosting, algorithm 2 (order 1) or 3 (order 2).

    F_0 = 0; rows are drawn with p = min(1, rho |g|) or min(1, rho h) and weighted by 1 / p; splits and leaf values
    -sum g / sum h are of the drawn rows.

    Parameters
    ----------
    order : 1 or 2
        Probabilities by first or second derivatives.
    rho : float
        The tuning parameter, fixed for the whole run, so that the sample shrinks with the gradients.
    loss : str or None
        Logistic loss in half log-odds. None for the estimator's own, as for rankings.
    n_estimators, learning_rate
        Rounds, and nu, which the paper does not state.
    variance_control : "none", "node", "previous_leaf" or None
        Order 2 only: the reading of the mean l'(y) over a leaf in algorithm 3. None is "node", the leaf being built,
        the only consistent reading; it costs a pass over all rows at each node, which the paper's times exclude.

    Notes
    -----
    Deviations. Number of leaves, nu and rho are not stated, and are the estimator's defaults and these. Rows of g = 0
    have weight 0 and are never drawn (q / p is 0 / 0 in algorithm 2). Scores are not clapped as psi is in Lemma A.2:
    ``loss="logitboost"`` bounds g and h by itself. With neither a ridge nor a least weight, single leaves may be long.

    Raises
    ------
    RecipeError
        If the order is neither 1 nor 2, or variance_control is given for order 1.
    """
    _one_of("order", order, (1, 2))
    if order == 1 and variance_control is not None:
        raise RecipeError(f"variance_control: is for order=2; got {variance_control!r}.")
    sampling: ImportanceSampling = (
        smart_first_order(rho=rho, paper=True)
        if order == 1
        else smart_second_order(rho=rho, paper=True, variance_control=variance_control or "node")
    )
    loss_parameter = {} if loss is None else {"loss": loss}
    return {
        **loss_parameter,
        "n_estimators": n_estimators,
        "learning_rate": learning_rate,
        "step": "newton",
        "start": 0.0,
        "sampling": sampling,
        **PLAIN_TREES,
    }


def asynch_sgbdt_paper(
    workers: int = 16,
    *,
    rate: float = 0.8,
    n_estimators: int = 400,
    max_leaves: int = 100,
    learning_rate: float = 0.01,
    loss: str | None = "logitboost",
    start: str | float = "mean",
    build_time: Any = None,
    server_time: Any = None,
) -> Parameters:
    """Asynchronous stochastic gradient boosting on a parameter server (Asynch-SGBDT), algorithm 3.

    F_0 is the mean label; a worker pulls sampled gradients of a version, builds a tree of at most ``max_leaves`` leaves
    on 80 % of the features with leaf values V (V'V)^-1 V' L'_random (equation 14, gradient step), and the server adds v
    times that tree, however old it is. The defaults are those of figure 6 (real-sim); figure 5 (Higgs): 1,000 trees of
    20 leaves.

    Parameters
    ----------
    workers : int
        Number of workers.
    rate : float
        Sampling rate R; the figures have 0.2, 0.4, 0.6, 0.8 and 5e-6.
    n_estimators, max_leaves, learning_rate
        Trees, leaves, and v.
    loss : str or None
        Logistic loss in half log-odds, on whose scale v = 0.01 is meant (0.04 in log-odds). None: the estimator's own.
    start : str or float
        F_0. "half_log_odds" is the constant of least loss, which the mean label is not.
    build_time, server_time : as of ``gb.SimulatedWorkers``, or None
        If one is given, the cluster is simulated with these times, to the same model every time.

    Notes
    -----
    Deviations. Trees are fitted to -g, the sign of equation 14 and not of algorithm 3. They see all rows, a row that
    was not drawn with a gradient of 0, as equation 14 has it (Horvitz-Thompson); for means of the drawn rows replace
    ``sampling`` by ``gb.UniformSampling(rate)``. Rows are drawn once per version, as printed
    (``sample_at="version"``). Above the stability limit of delayed gradients ``fit`` refuses; the bound of
    proposition 1 is far smaller than any step the paper runs.
    """
    rules: Parameters = {"leaf_values": "worker", "sample_at": "version"}
    execution: Execution = Asynchronous(workers, **rules)
    if build_time is not None or server_time is not None:
        times = {"build_time": build_time, "server_time": server_time}
        execution = SimulatedWorkers(
            workers, **{name: value for name, value in times.items() if value is not None}, **rules
        )
    loss_parameter = {} if loss is None else {"loss": loss}
    return {
        **loss_parameter,
        "n_estimators": n_estimators,
        "learning_rate": learning_rate,
        "growth": "leafwise",
        "max_depth": None,
        "max_leaves": max_leaves,
        "step": "gradient",
        "start": start,
        "sampling": UniformSampling(rate, variance_control="horvitz_thompson"),
        "learners": 0.8,
        "execution": execution,
        **PLAIN_TREES,
    }


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


def _one_of(name: str, value: Any, options: tuple[Any, ...]) -> None:
    comparable = value is None or isinstance(value, (str, Real))  # an array has no one answer
    if not comparable or isinstance(value, bool) or value not in options:
        raise RecipeError(f"{name}: must be one of {', '.join(map(repr, options))}; got {value!r}.")
