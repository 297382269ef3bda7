"""Docstrings of the estimators: one table of shared entries, completed by the entries of each class."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

C = TypeVar("C", bound=type[Any])

PARAMETERS = """\
n_estimators : int or "auto"
    Number of boosting rounds, at most; 0 gives the best constant. "auto": chosen on rows that are set aside, then all
    rows are fitted for so many, ``n_iter_``. A fifth of the rows (of each class; of the queries) is set aside, or
    ``validation_fraction`` of them; one to three times, more often for small data; ``early_stopping_rounds`` is the
    patience there, and ``callbacks`` see the last fit only. With an eval set that set decides instead, without another
    fit. Not with ``langevin``, nor to continue a model without an eval set.
learning_rate : float, "auto", list, function, ``gb.CosineDecay`` or ``gb.ExponentialDecay``
    Shrinkage: factor by which each tree's leaf values are multiplied. A list has a rate for each round of the model, a
    function takes the number of the round, 0 for the model's first (LightGBM: ``reset_parameter``; XGBoost:
    ``LearningRateScheduler``). With ``langevin`` a number. "auto": 0.03 for 1,000 rows to 0.1 for 400,000 if the rounds
    are chosen; for a given number of rounds 10 / ``n_estimators``, and more above 10,000 rows, at most 0.3. The number
    is ``learning_rate_``.
growth : "depthwise", "leafwise", "oblivious" or "sign_stump"
    Level by level; best-first, the leaf of largest gain; one split for all nodes of a level; or a stump that predicts
    +v on one side of its split and -v on the other.
max_depth : int or None
    Maximum depth of a tree. None: limited by ``max_leaves`` only.
max_leaves : int or None
    Maximum number of leaves of a tree, LightGBM's ``num_leaves``. None: 31 in leaf-wise trees, as there; limited by
    ``max_depth`` only in others.
min_samples_leaf : int
    Minimum number of rows in a leaf.
min_child_weight : float
    Minimum sum of second derivatives (hessians) in a leaf.
reg_lambda : float or None
    L2 regularisation lambda in the leaf value -G / (H + lambda) and in the gain. None: 3, 1 with
    ``multi_output="one_tree"`` without a ``sketch``, and 0 with ``langevin``, whose leaves are plain averages.
reg_alpha : float
    L1 regularisation alpha of leaf values (XGBoost's and LightGBM's ``reg_alpha``): G is brought nearer to 0 by alpha
    in the leaf value and in the gain, so a leaf with abs(G) <= alpha is 0.
max_delta_step : float
    Largest leaf value, before the learning rate, on either side of 0 (XGBoost's and LightGBM's ``max_delta_step``);
    gains are those of the clipped values. Helps where classes are rare and h is small. 0: no limit.
path_smooth : float
    Rows s of the node above that the value of a node is computed with (LightGBM's ``path_smooth``): it is
    n / (n + s) times its own value and s / (n + s) times that of the node above, from the root down, in leaf values and
    gains. The n rows are the node's share of H times the rows of the tree: with squared error their number. 0: own
    values.
min_split_gain : float
    Minimum gain of a split.
random_strength : float
    Standard deviation of the Gaussian noise added to each feature's split gain, relative to the mean gain of the
    node's features (CatBoost's parameter of this name is relative to the root mean square gradient, and decreases as
    the model grows). 0: no noise.
extra_trees : bool
    True: in each node one random cut of each feature competes, as in extremely randomised trees (LightGBM's parameter
    of this name). A numeric cut lies between the bins of the node's rows; of a categorical feature it is one category
    against the rest, or a random number of the first or last ones in their order.
max_bins : int, 2 to 65,535
    Maximum number of bins of a column, without the bin for missing values. A column of more than 255 bins is read by
    several features of the trees, one for each 254 thresholds, on every machine; a round takes as many times the time
    for it. 1,017 are four such features.
binning : "quantile" or "greedy_log_sum"
    Choice of the bins of a numeric feature: about the same weight in each, or CatBoost's GreedyLogSum, which halves the
    heaviest stretch of values time and again.
categorical_features : "from_dtype", None, mask, indices or names
    "from_dtype" takes the columns of text and of dtype ``category`` (pandas, polars and others). They are split by sets
    of categories; a category that does not occur in training counts as missing. Text that reads as numbers, and free
    text, are refused.
missing : float
    Number in X that stands for missing values beside NaN, in ``fit``, ``predict`` and eval sets (XGBoost's parameter of
    this name), such as -999.0.
categorical_splits : None or gb.CategoricalSplits
    Regularisation of splits of categorical columns: ``cat_smooth``, ``cat_l2`` and ``min_data_per_group`` of LightGBM.
    None: ``gb.CategoricalSplits()``, whose limits of rows grow with the number of training rows up to LightGBM's.
categorical_encoding : "auto", "partition", "ordered", "one_hot" or gb.OrderedTargetStatistics
    "partition": splits by sets of categories. "ordered": the mean target of a category as a number, for combinations
    of columns too (CatBoost); ``gb.OrderedTargetStatistics(permutations=, combinations=...)`` has the settings. The
    model is then the mean of several sequences of trees that grow in turn, so ``n_iter_`` is ``n_estimators`` times
    their number. "one_hot": one category against all others. "auto": "ordered" if a column has more than 255
    categories and the other parameters allow it, otherwise "partition".
interaction_cst : None, "pairwise", "no_interactions", or sets of columns by name or index
    Columns that may interact, as in scikit-learn (``interaction_constraints`` of XGBoost and LightGBM): the splits from
    the root to a leaf are on columns of one set. Columns of no set are one more set. "pairwise": on two columns at
    most; "no_interactions": on one, so the model is a sum of functions of one column. A combination of categorical
    columns (``categorical_encoding``) is in the sets that hold all of them, and is not used with the two words.
forced_splits : None, dict or path
    First splits of every tree, as a nested dict or a JSON file of it: ``{"feature": name or index, "threshold": 3.5,
    "left": {...}, "right": {...}}``, where a side may be left out (LightGBM's ``forcedsplits_filename``). The cut is
    the column's lowest one that is not below the threshold; values up to it go left, missing ones to the side of the
    larger gain. A split that gains nothing, or leaves a side with too few rows, is left out with those below it, as in
    LightGBM. Growth then goes on as usual. For depth-wise and leaf-wise trees, on the CPU.
feature_costs : None or ``gb.FeatureCosts``
    Costs of features and of splits that gains must exceed, such as ``gb.FeatureCosts(feature={"scan": 40.0})``
    (LightGBM's ``cegb_*``). On the CPU.
feature_weights : None, (d,) numbers, or mapping from names of columns to numbers
    Chances of columns where ``learners`` draws them: for each tree, level or node they are drawn without replacement,
    one after the other in proportion to their weights (XGBoost's ``feature_weights``). A column of weight 0 is never
    drawn; those that a mapping leaves out have weight 1.
sampling : None, float, or policy
    Row sampling per tree: all, a share drawn uniformly, or an object such as ``gb.UniformSampling(0.5)``. Leaf values
    are those of all rows, unless the object's ``variance_control`` says otherwise or workers compute them
    (``leaf_values="worker"``).
learners : None, int, float, or policy
    Features sampled for each tree, like ``colsample_bytree``: all (None), a number above 1, a share below 1, or a rule
    such as ``gb.RandomGroups(10)``, ``gb.RandomLearners(500)`` (pairs of feature and cut, for stumps) or
    ``gb.WeightedGroups(10, weights)``.
langevin : None or gb.Langevin
    Noise on the gradient and shrinkage of the model: escapes local optima of losses that are not convex, and samples
    from a posterior. ``step="auto"`` then means gradient steps.
posterior_samples : int or None
    Number of posterior draws for ``predict_uncertainty``: ``n_estimators`` must be at least twice as large, since half
    of the rounds are burn-in. Needs ``langevin``, and no early stopping. A fit warns if the chain is too short to
    forget its start, with the number of rounds that would do.
step : "auto", "newton", "gradient", "constant", "line_search", or policy
    Leaf values: Newton (-G / H), mean gradient (-G / n, n being the weight), constant step (-G / (sigma n), sigma being
    the loss's smoothness), or a line search along the tree for convex losses (``gb.LineSearchStep``). "auto" is Newton;
    the exact quantile for quantile losses; the gradient step for losses without curvature.
start : "optimum", "mean", "half_log_odds" or float
    Score F_0 of every row before the first tree. "optimum": the constant of least loss (the median
    for Huber's; 0 for ``gb.Langevin(paper=True)``). "mean": the mean target (the mean label of Asynch-SGBDT).
    "half_log_odds": half the log-odds of two classes (Friedman 2001). Not of use with ``init_model``, which
    has a start of its own.
base_learner : None, family of ``gb.learners``, list of families, or regressor
    Base learner: trees; splines, straight lines, effects of categories ... that compete in each round, see
    ``gb.learners``; or any regressor with scikit-learn's interface, cloned in each round. Such regressors and
    ``LinearTree`` are fitted on the CPU, all others on ``device``.
multi_output : "one_tree_per_output" or "one_tree"
    With several scores a row (y of several columns, classes, quantiles): a tree for each in every round, or one tree
    for all, whose splits maximise the sum of their gains and whose leaves have a value for each (XGBoost:
    ``multi_strategy="multi_output_tree"``). For ``growth`` "depthwise" and "leafwise".
sketch : None or policy
    Gradients that the splits of ``multi_output="one_tree"`` are searched by: those of all outputs (None), or few
    in their place, ``gb.TopOutputs(5)``, ``gb.RandomOutputs(5)`` or ``gb.RandomProjection(5)``, which is faster with
    many outputs. Leaf values are of all outputs in any case.
execution : None or policy
    None: one worker with all threads. ``gb.Asynchronous(4)``: several workers, each of which starts a tree on
    the newest gradients. ``gb.SimulatedWorkers(32)``: the same, simulated. ``gb.Replay(log)``: replay of a run.
early_stopping_rounds : int or None
    Stop after that many rounds in a row without a new best of the first metric of the last eval set, and keep the
    trees up to the best round. ``gb.callbacks.EarlyStopping`` in ``callbacks`` has a ``min_delta`` too.
validation_fraction : float or None
    Share of the training rows to set aside as the eval set.
eval_metric : str, callable, list of these, or None
    Metrics evaluated on the eval sets, see ``gb.metrics``; None is the default metric of the loss.
callbacks : list of callables
    Each is called after each round with one ``gb.callbacks.Round``, and stops the fit by returning True.
device : "auto", "cpu", "cuda" or "cuda:N"
    See ``gb.devices()``. ``fit_report_`` holds the device used, and the reason.
random_state : int, RandomState or None
    Seed of everything random: ``sampling``, ``learners``, ``validation_fraction``, the noise and random shapes of
    ``langevin``, ``random_strength``, ``extra_trees``, and each ``random_state`` among the parameters of another
    library's ``base_learner``, whose own values are replaced. The arrival of asynchronous workers' trees is not drawn
    from it.
n_jobs : int or None
    Threads; None and -1 for all. No more are started than there are processors, or than a container's quota feeds, and
    small data are fitted by fewer.
    The model does not depend on it, to the last bit.
verbose : int
    0 is silent. Otherwise a live progress bar in a terminal or notebook; elsewhere a line every ``verbose`` rounds.
warm_start : bool
    True: a further ``fit`` goes on with the trees of the one before, up to ``n_estimators`` in all, as in scikit-learn:
    with the same data, parameters and integer ``random_state`` the trees of one worker are those of one long fit, byte
    for byte. Other parameters may change in between, and hold for the new trees; columns and bins stay.
"""
"""Parameters that two estimators or more have, in numpydoc's form."""

ATTRIBUTES = """\
n_features_in_ : int
feature_names_in_ : (d,) ndarray of str
    Only if the training data had names.
n_iter_ : int
    Number of rounds of the model.
learning_rate_ : float
    The learning rate of the fit.
evals_result_ : dict
    ``{"validation_0": {"rmse": [...]}}``, one number a round, those after the best round included. Of rounds chosen by
    ``n_estimators="auto"``: means over the splits, up to the chosen round.
best_iteration_ : int or None
    The best round, 0 for the first; None without early stopping. It is the model's last round.
best_score_ : float or None
    Value of the metric in the best round.
feature_importances_ : (d,) ndarray
    Share of each feature in the gain of all splits; see ``feature_importance`` for other kinds.
fit_report_ : FitReport
    Device and the reason for it, threads, rows, rounds, seconds, seed, and the verdict of theory on the composition;
    its text names the verdict where a parameter chooses a piece that theory is about.
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
    shared, class_entries = _entries(ATTRIBUTES), _entries(attributes)
    of_fit = {name: text for name, text in class_entries.items() if name not in shared} | shared | class_entries
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
