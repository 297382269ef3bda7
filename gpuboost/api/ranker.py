"""The ranker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.api.base import GradientBoosting
from gpuboost.data.columns import FROM_DTYPE
from gpuboost.data.dataset import Dataset
from gpuboost.data.queries import query_start
from gpuboost.langevin import Langevin
from gpuboost.losses.protocol import Loss
from gpuboost.reports.report import Verdict
from gpuboost.training.callbacks import metrics_of
from gpuboost.training.devices import on_host
from gpuboost.training.rows import Labelled, labelled
from gpuboost.training.targets import Goal, queries_of, ranking
from gpuboost.types import Array


class GradientBoostingRanker(GradientBoosting):
    """Gradient boosting of trees, for the order of documents: learning to rank.

    A row is a document, a query a list of rows that stand together; y is how good a document is for its query, 0 for
    what is of no use. Predictions are scores, to be compared within a query.

    Parameters
    ----------
    loss : str or loss object
        "lambdamart" (NDCG), "pairwise_logistic" (RankNet), or an object such as
        ``gb.losses.LambdaMART(truncation=10)``.
    n_estimators : int
        Rounds of boosting at most.
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
        Sum of second derivatives that a leaf holds at least. Those of a query sum to a few units, however long it is.
    reg_lambda : float or None
        L2 term in the leaf value -G / (H + lambda) and in the gain. None: 1, and 0 with ``langevin``, whose leaves are
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
        Whether scores may only rise with a column (1), only fall (-1), or are free (0, and columns a
        mapping leaves out). Holds exactly, whatever the other columns are; a missing value is compared with none, and
        goes where it gains most. Not for categorical columns.
    sampling : None, float, or policy
        Documents of each tree: all, a share drawn uniformly, or an object such as ``gb.UniformSampling(0.5)``.
        Gradients are those of complete lists, and leaf values those of all documents.
    learners : None, int, float, or policy
        What competes in each tree: all features, a number or a share of them drawn at random, or a rule such as
        ``gb.RandomGroups(10)``, ``gb.RandomLearners(500)`` (pairs of feature and cut, for stumps) or
        ``gb.WeightedGroups(10, weights)``.
    langevin : None or gb.Langevin
        Noise on the gradient and shrinkage of the model.
    step : "auto", "newton", "gradient", or policy
        What a leaf's -G is divided by: the sum of second derivatives, or the weight. "auto" is Newton.
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
        Share of the training queries to set aside as the eval set.
    eval_metric : str, callable, list of these, or None
        What to watch on the eval sets: "ndcg", "map", "mrr", see ``gb.metrics``; None is "ndcg".
    eval_at : int, list of ints, or None
        Places at which a metric is taken whose name says none: "ndcg" is then "ndcg@5" and "ndcg@10". None: the whole
        list.
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
        ``{"validation_0": {"ndcg@10": [...]}}``, one number a round, those after the best round included.
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
        loss: str | Loss = "lambdamart",
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
        step: Any = "auto",
        execution: Any = None,
        base_learner: Any = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        eval_metric: Any = None,
        eval_at: int | Sequence[int] | None = 10,
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
        self.step = step
        self.execution = execution
        self.base_learner = base_learner
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.eval_at = eval_at
        self.callbacks = callbacks
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _goal(self, rows: Labelled) -> Goal:
        return ranking(self.loss, rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        init_model: Any = None,
        group: Any = None,
        *,
        resume_from: Any = None,
    ) -> Self:
        """Learn from lists.

        Parameters
        ----------
        X : (n, d) array, list of rows, pandas frame, scipy sparse matrix, Arrow or polars table, or a ``gb.Dataset``
            NaN is missing; what a sparse matrix does not store is 0. A Dataset brings its bins, and its target,
            weights and queries if it holds them.
        y : (n,) whole numbers, 0 or more
            How good each document is.
        sample_weight : (queries,) or (n,) not negative, optional
            A query of weight 3 is three equal queries; one of weight 0 is not there. The rows of a query have one
            weight.
        eval_set : (X, y, group), (X, y, group, weight), a ``gb.Dataset``, a list of these, or a mapping, optional
            Judged after each round by ``eval_metric``, see ``evals_result_``. In a list they are called
            ``validation_0``, ``validation_1`` ... Early stopping looks at the last one.
        init_model : fitted ranker, or path of a saved one, optional
            A model to continue with ``n_estimators`` more rounds, in its own bins.
        group : (n,) query ids or (queries,) sizes
            The id of each row's query, equal ids side by side; or the sizes of the queries in the order of the rows.
            As many entries as there are rows are ids.
        resume_from : path of a checkpoint, optional
            Go on with a fit that was interrupted, as if it had not been: the same data and parameters come to the same
            model, to the last bit, rounds before the interruption included. Written by ``gb.callbacks.Checkpoint``.

        Returns
        -------
        self
            As it was before, if the fit fails.

        Raises
        ------
        InputError
            If the data cannot be learned from.
        RecipeError
            If a parameter is out of its range, or two contradict each other.
        DeviceError
            If the device is not there.
        """
        return self._fit(X, y, sample_weight, eval_set, init_model, resume_from, group)

    def check(self, X: Any, y: Any = None, sample_weight: Any = None, group: Any = None) -> Verdict:
        """What theory says of this composition on these data, before any work; as for the other estimators."""
        return self._check(X, y, sample_weight, group)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """(n,) scores: within a query, the higher the better."""
        answer: NDArray[np.float64] = self._answer(X, _values)
        return answer

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """``predict`` after each round."""
        return self._staged_answers(X, _values)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, group: Any = None) -> float:
        """The first metric of ``eval_metric``, NDCG at the first place of ``eval_at`` if nothing else is asked for.

        X may be a ``gb.Dataset`` with target and queries. Raises InputError if the queries are not known.
        """
        scores, y, sample_weight = on_host(self.predict(X)), on_host(y), on_host(sample_weight)
        if isinstance(X, Dataset):
            y, group = X.y if y is None else y, X.group if group is None else group
            sample_weight = X.weight if sample_weight is None else sample_weight
        rows = labelled(X, y, sample_weight, len(scores), group)
        start = query_start(queries_of(rows))
        first = metrics_of(self.eval_metric, self.loss_, self.eval_at)[0]
        return first(rows.y.astype(np.float64), scores[None], rows.weight, self.loss_, start)


def _values(scores: Array) -> NDArray[np.float64]:
    return np.asarray(scores[0])
