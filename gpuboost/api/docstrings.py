"""The docstrings of the estimators: one table of what they share, and in each class what differs."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

C = TypeVar("C", bound=type[Any])

PARAMETERS = """\
n_estimators : int
    Rounds of boosting at most; 0 gives the best constant.
learning_rate : float
    Share of each tree's values that is added.
growth : "depthwise", "leafwise", "oblivious" or "sign_stump"
    Level by level, the leaf that gains most first, one split for all nodes of a level, or a single split with one
    value, that is taken on one side and its negative on the other.
max_depth : int or None
    None: as deep as ``max_leaves`` allows.
max_leaves : int or None
    None: as many as ``max_depth`` allows.
min_samples_leaf : int
    Rows that a leaf holds at least.
min_child_weight : float
    Sum of second derivatives that a leaf holds at least.
reg_lambda : float or None
    L2 term in the leaf value -G / (H + lambda) and in the gain. None: 3, and 0 with ``langevin``, whose leaves are
    plain averages.
min_split_gain : float
    A split that gains less is not made.
random_strength : float
    Noise on the gains of the features when the one that splits a node is chosen: Gaussian, its standard deviation
    in units of the mean gain of the node's features (of CatBoost's parameter of this name it is that of the root
    mean square gradient, and fades as the model grows). 0: the feature that gains most.
max_bins : int, 2 to 255
    Bins of a feature, the one for missing values not counted.
categorical_features : "from_dtype", None, mask, indices or names
    "from_dtype" takes the pandas columns of dtype ``category``. They are split by sets; a category that was not
    there in training counts as missing.
sampling : None, float, or policy
    Rows of each tree: all, a share drawn uniformly, or an object such as ``gb.UniformSampling(0.5)``. Leaf values
    are always those of all rows.
learners : None, int, float, or policy
    What competes in each tree: all features, a number or a share of them drawn at random, or a rule such as
    ``gb.RandomGroups(10)``, ``gb.RandomLearners(500)`` (pairs of feature and cut, for stumps) or
    ``gb.WeightedGroups(10, weights)``.
langevin : None or gb.Langevin
    Noise on the gradient and shrinkage of the model: leaves local optima of losses that are not convex, and
    samples from a posterior. "auto" steps are gradient steps then.
posterior_samples : int or None
    How many iterates of the chain stand for draws in ``predict_uncertainty``: ``n_estimators`` must be at least
    twice as many, since half are burn-in. Needs ``langevin``, and no early stopping.
step : "auto", "newton", "gradient", "constant", "line_search", or policy
    What a leaf's -G is divided by: the sum of second derivatives, the weight, or the weight times the loss's
    smoothness; or as far along the tree as lowers a convex loss most (``gb.LineSearchStep``). "auto" is Newton;
    the exact quantile for losses that are quantiles; the gradient where there is no
    curvature.
base_learner : None, family of ``gb.learners``, list of families, or regressor
    What is boosted: trees; splines, straight lines, effects of categories ... that compete in each round, see
    ``gb.learners``; or any regressor in scikit-learn's manner, cloned in each round. Such regressors
    and ``LinearTree`` are fitted on the CPU, all others where ``device`` says.
execution : None or policy
    Who builds the trees: None is one worker with all threads; ``gb.Asynchronous(4)`` several at once, each on the
    newest gradients when it began; ``gb.SimulatedWorkers(32)`` the same, simulated; ``gb.Replay(log)`` a run again.
early_stopping_rounds : int or None
    Stop after that many rounds in a row without a new best of the first metric of the last eval set, and keep the
    trees up to the best round. ``gb.callbacks.EarlyStopping`` in ``callbacks`` has a ``min_delta`` too.
validation_fraction : float or None
    Share of the training rows to set aside as the eval set.
eval_metric : str, callable, list of these, or None
    What to watch on the eval sets, see ``gb.metrics``; None is the metric that goes with the loss.
callbacks : list of callables
    Each is called after each round with one ``gb.callbacks.Round``, and stops the fit by returning True.
device : "auto", "cpu", "cuda" or "cuda:N"
    See ``gb.devices()``. ``fit_report_`` says which was taken, and why.
random_state : int, RandomState or None
    Seed of row and feature sampling and of ``validation_fraction``; nothing else is random.
n_jobs : int or None
    Threads; None and -1 for all. The model does not depend on it, to the last bit.
verbose : int
    0 is silent. Otherwise a live progress bar in a terminal or notebook; elsewhere a line every ``verbose`` rounds.
"""
"""Parameters that two estimators or more have, in numpydoc's form."""

ATTRIBUTES = """\
n_features_in_ : int
feature_names_in_ : (d,) ndarray of str
    Only if the training data had names.
n_iter_ : int
    Rounds of the model.
evals_result_ : dict
    ``{"validation_0": {"rmse": [...]}}``, one number a round, those after the best round included.
best_iteration_ : int or None
    The best round, 0 for the first; None without early stopping. The model ends with it.
best_score_ : float or None
    The metric there.
feature_importances_ : (d,) ndarray
    Share of each feature in the gain of all splits; see ``feature_importance`` for other kinds.
fit_report_ : FitReport
    Device and why, threads, rows, rounds, seconds, seed, and what theory says of the composition.
ensemble_, columns_, loss_
    The model itself: trees and cuts, names and categories, loss.
"""
"""Attributes of every fitted estimator, in the same form."""


def completed(estimator: C) -> C:
    """The class with a docstring of all its parameters and attributes: its own, and the shared ones that it lacks.

    Parameters stand in the order of the constructor's signature.

    Raises:
        TypeError: if a parameter of the constructor is documented neither there nor here.
    """
    if estimator.__doc__ is None:  # python -OO
        return estimator
    head, rest = inspect.cleandoc(estimator.__doc__).split("Parameters\n----------\n")
    parameters, _, attributes = rest.partition("\n\nAttributes\n----------\n")
    described = _entries(PARAMETERS) | _entries(parameters)
    names = list(inspect.signature(estimator).parameters)
    if missing := [name for name in names if name not in described]:
        raise TypeError(f"{estimator.__name__}: the docstring lacks the parameter {missing[0]!r}.")
    shared, own = _entries(ATTRIBUTES), _entries(attributes)
    of_fit = {name: text for name, text in own.items() if name not in shared} | shared | own
    parameters = "\n".join(described[name] for name in names)
    attributes = "\n".join(of_fit.values())
    estimator.__doc__ = f"{head}Parameters\n----------\n{parameters}\n\nAttributes\n----------\n{attributes}\n"
    return estimator


def _entries(section: str) -> dict[str, str]:
    """The text of each entry, by name: a line that is not indented, and those below it that are."""
    entries: dict[str, str] = {}
    name = ""
    for line in section.strip().splitlines():
        if line.startswith(" "):
            entries[name] += f"\n{line}"
        else:
            name = line.split(" : ")[0]
            entries[name] = line
    return entries
