"""The regressor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from gpuboost.api.base import GradientBoosting
from gpuboost.data.columns import FROM_DTYPE
from gpuboost.langevin import Langevin
from gpuboost.losses.protocol import Loss
from gpuboost.training.devices import on_host
from gpuboost.training.rows import Labelled
from gpuboost.training.targets import Goal, regression
from gpuboost.types import Array


class GradientBoostingRegressor(RegressorMixin, GradientBoosting):
    """Gradient boosting of trees, for numbers.

    Parameters
    ----------
    loss : str or loss object
        "squared_error", "huber", "absolute_error", "quantile", "poisson", "gamma", "tweedie", or an object of
        ``gb.losses`` for another parameter, such as ``gb.losses.Quantile(0.9)``.
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
    monotonic_cst : None, (d,) of -1, 0 and 1, or mapping from names of columns to these
        Whether predictions may only rise with a column (1), only fall (-1), or are free (0, and columns a
        mapping leaves out). Holds exactly, whatever the other columns are; a missing value is compared with none, and
        goes where it gains most. Not for categorical columns. Not for losses of several scores.
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

    Attributes
    ----------
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

    def __init__(
        self,
        loss: str | Loss = "squared_error",
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        growth: str = "depthwise",
        max_depth: int | None = 6,
        max_leaves: int | None = None,
        min_samples_leaf: int = 1,
        min_child_weight: float = 1.0,
        reg_lambda: float | None = None,
        min_split_gain: float = 0.0,
        random_strength: float = 0.0,
        max_bins: int = 255,
        categorical_features: Any = FROM_DTYPE,
        monotonic_cst: Any = None,
        sampling: Any = None,
        learners: Any = None,
        langevin: Langevin | None = None,
        posterior_samples: int | None = None,
        step: Any = "auto",
        execution: Any = None,
        base_learner: Any = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        eval_metric: Any = None,
        callbacks: Sequence[Callable[..., Any]] = (),
        device: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.growth = growth
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.min_split_gain = min_split_gain
        self.random_strength = random_strength
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.sampling = sampling
        self.learners = learners
        self.langevin = langevin
        self.posterior_samples = posterior_samples
        self.step = step
        self.execution = execution
        self.base_learner = base_learner
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.callbacks = callbacks
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _goal(self, rows: Labelled) -> Goal:
        return regression(self.loss, rows)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """(n,) what the loss predicts: means, medians, quantiles ..."""
        answer: NDArray[np.float64] = self._answer(X, self._values)
        return answer

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 of the predictions: 1 if they are right, 0 for those of the mean."""
        from sklearn.metrics import r2_score  # slow to import

        return float(r2_score(on_host(y), on_host(self.predict(X)), sample_weight=on_host(sample_weight)))

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """``predict`` after each round."""
        return self._staged_answers(X, self._values)

    def _values(self, scores: Array) -> NDArray[np.float64]:
        return np.asarray(self.loss_.inverse_link(scores))
