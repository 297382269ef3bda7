"""The ranker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import nan
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpuboost.api.base import GradientBoosting
from gpuboost.api.docstrings import completed
from gpuboost.api.peer_names import explaining_unknown_parameters
from gpuboost.api.position_bias import position_bias
from gpuboost.data.columns import FROM_DTYPE
from gpuboost.data.dataset import Dataset
from gpuboost.data.encoding import OrderedTargetStatistics
from gpuboost.data.queries import check_group, query_start
from gpuboost.data.query_column import without_group
from gpuboost.growth import CategoricalSplits
from gpuboost.langevin import Langevin
from gpuboost.losses.protocol import Loss, debiases
from gpuboost.model.answers import FIRST_SCORE
from gpuboost.posterior import Uncertainty, uncertainty
from gpuboost.reports.report import Verdict
from gpuboost.scoring.answers import Answer
from gpuboost.training.monitoring import metrics_of
from gpuboost.training.placement.device_arrays import on_host
from gpuboost.training.rows import LabelledRows, check_columns, judged_by, labelled, with_list_facts
from gpuboost.training.targets import TrainingTarget, checked_queries, ranking


@completed
@explaining_unknown_parameters
class GradientBoostingRanker(GradientBoosting):
    """Gradient boosting of trees for learning to rank.

    A row is a document, a query a list of adjacent rows; y is the relevance of a document to its query, 0 for an
    irrelevant one. Predictions are scores, to be compared within a query.

    Parameters
    ----------
    loss : str or loss object
        "lambdamart" (NDCG), "pairwise_logistic" (RankNet), "pair_logit" (pairs of your own), "unbiased_lambdamart"
        (clicks), "xendcg" (LightGBM: ``rank_xendcg``), "stochastic_rank" (smoothed NDCG, for ``langevin``), or an
        object such as ``gb.losses.LambdaMART(truncation=10)``.
    n_estimators : int or "auto"
        Number of boosting rounds, at most. "auto": chosen on whole queries that are set aside, then all are fitted for
        so many, as of ``GradientBoostingRegressor``.
    min_child_weight : float
        Minimum sum of second derivatives in a leaf. Those of a query sum to a few units, whatever its length.
    reg_lambda : float or None
        L2 regularisation lambda in the leaf value -G / (H + lambda) and in the gain. None: 1, and 0 with ``langevin``,
        whose leaves are plain averages.
    monotonic_cst : None, (d,) of -1, 0 and 1, or mapping from names of columns to these
        Scores never decrease (1) or never increase (-1) with a column, or are unconstrained (0, and columns a mapping
        leaves out). Holds exactly, whatever the values of other columns; missing values are not compared with other
        values, and go to the side of larger gain. Not for categorical columns.
    sampling : None, float, or policy
        Sampling of documents per tree: all, a share drawn uniformly, or an object such as ``gb.QuerySampling(0.5)``,
        which draws whole queries.
        Gradients are computed on complete lists, and leaf values on all documents unless its ``variance_control`` says
        otherwise.
    langevin : None or gb.Langevin
        Noise on the gradient and shrinkage of the model.
    step : "auto", "newton", "gradient", or policy
        Leaf values: Newton (-G / H), or mean gradient (-G / n, n being the weight). "auto" is Newton.
    validation_fraction : float or None
        Share of the training queries to set aside as the eval set.
    eval_metric : str, callable, list of these, or None
        Metrics evaluated on the eval sets: "ndcg", "map", "mrr", see ``gb.metrics``; None is "ndcg".
    eval_at : int, list of ints, or None
        Places k of metrics whose names give none: for [5, 10], "ndcg" means "ndcg@5" and "ndcg@10". None: the whole
        list.

    Attributes
    ----------
    evals_result_ : dict
        ``{"validation_0": {"ndcg@10": [...]}}``, one number a round, those after the best round included.
    position_bias_ : (plus, minus)
        With ``loss="unbiased_lambdamart"``: the estimates t+ and t- of each position, at the scores of the model on the
        rows of ``fit``. Not in model files.
    """

    def __init__(
        self,
        loss: str | Loss = "lambdamart",
        n_estimators: int | str = 100,
        learning_rate: Any = 0.1,
        growth: str = "depthwise",
        max_depth: int | None = 6,
        max_leaves: int | None = None,
        min_samples_leaf: int = 1,
        min_child_weight: float = 1.0,
        reg_lambda: float | None = None,
        reg_alpha: float = 0.0,
        max_delta_step: float = 0.0,
        path_smooth: float = 0.0,
        min_split_gain: float = 0.0,
        random_strength: float = 0.0,
        extra_trees: bool = False,
        max_bins: int = 255,
        binning: str = "quantile",
        categorical_features: Any = FROM_DTYPE,
        missing: float = nan,
        categorical_splits: CategoricalSplits | None = None,
        categorical_encoding: str | OrderedTargetStatistics = "auto",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        forced_splits: Any = None,
        feature_costs: Any = None,
        feature_weights: Any = None,
        sampling: Any = None,
        learners: Any = None,
        langevin: Langevin | None = None,
        posterior_samples: int | None = None,
        step: Any = "auto",
        start: str | float = "optimum",
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
        warm_start: bool = False,
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
        self.reg_alpha = reg_alpha
        self.max_delta_step = max_delta_step
        self.path_smooth = path_smooth
        self.min_split_gain = min_split_gain
        self.random_strength = random_strength
        self.extra_trees = extra_trees
        self.max_bins = max_bins
        self.binning = binning
        self.categorical_features = categorical_features
        self.missing = missing
        self.categorical_splits = categorical_splits
        self.categorical_encoding = categorical_encoding
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.forced_splits = forced_splits
        self.feature_costs = feature_costs
        self.feature_weights = feature_weights
        self.sampling = sampling
        self.learners = learners
        self.langevin = langevin
        self.posterior_samples = posterior_samples
        self.step = step
        self.start = start
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
        self.warm_start = warm_start

    def _target(self, rows: LabelledRows) -> TrainingTarget:
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
        init_score: Any = None,
        resume_from: Any = None,
        pairs: Any = None,
        pairs_weight: Any = None,
        position: Any = None,
    ) -> Self:
        """Fit the model to queries.

        Parameters
        ----------
        X : (n, d) array, list of rows, pandas frame, scipy sparse matrix, Arrow or polars table, or a ``gb.Dataset``
            NaN is missing; entries that a sparse matrix does not store are 0. A Dataset provides its bins, and its
            target, weights and queries if it holds them.
        y : (n,) whole numbers, 0 or more
            Relevance label of each document.
        sample_weight : (queries,) or (n,) not negative, optional
            A query of weight 3 is three equal queries; one of weight 0 is ignored. All rows of a query have the same
            weight.
        eval_set : (X, y, group), (X, y, group, weight), a ``gb.Dataset``, a list of these, or a mapping, optional
            Also (X, y, group, weight, init_score). Evaluated by ``eval_metric`` after each round, see
            ``evals_result_``. Entries of a list are named ``validation_0``, ``validation_1`` ... Early
            stopping uses the last one.
        init_model : fitted ranker, or path of a saved one, optional
            A model to continue with ``n_estimators`` more rounds, in its own bins.
        group : (n,) query ids or (queries,) sizes
            The id of each row's query, with equal ids adjacent; or the sizes of the queries in the order of the rows.
            An array with one entry per row holds ids. Text names a column of X that has the ids and is then no feature
            (XGBoost: a column ``qid``); an eval set may name it too.
        init_score : (n,) numbers, or one number, optional
            Offsets: the score of a document is that of the model plus this (LightGBM: ``init_score``; XGBoost:
            ``base_margin``).
        resume_from : path of a checkpoint, optional
            Continue an interrupted fit: with the same data and parameters the model is byte-identical to that of an
            uninterrupted fit, rounds before the interruption included. Written by ``gb.callbacks.Checkpoint``.

        pairs : (m, 2) row numbers, optional
            A winner and a loser of one query each, for ``loss="pair_logit"``, which needs them (CatBoost: ``pairs``).
            Rows are numbered from 0, and y is for the metrics only.
        pairs_weight : (m,) not negative, optional
            Weights of the pairs (CatBoost: ``pairs_weight``).
        position : (n,) whole numbers, 0 or more, optional
            Where each document was shown, 0 being the top, for ``loss="unbiased_lambdamart"`` (LightGBM: ``position``).
            None: the order of a query's rows.

        Returns
        -------
        self
            Unchanged if the fit fails.

        Raises
        ------
        InputError
            If the data cannot be learned from.
        RecipeError
            If a parameter is out of its range, or two contradict each other.
        DeviceError
            If the device is not available.
        """
        facts = _ListFacts(pairs, pairs_weight, position)
        self._fit(
            X, y, sample_weight, eval_set, init_model, resume_from,
            group=group, init_score=init_score, add_facts=facts.added_to,
        )  # fmt: skip
        self._estimate_position_bias(facts, X, group, init_score)
        return self

    def refit(
        self,
        X: Any,
        y: Any = None,
        decay: float = 0.9,
        sample_weight: Any = None,
        *,
        group: Any = None,
        init_score: Any = None,
        pairs: Any = None,
        pairs_weight: Any = None,
        position: Any = None,
    ) -> Self:
        """A new fitted ranker with the same trees, whose leaf values follow new queries.

        As ``GradientBoostingRegressor.refit``; ``group``, ``pairs``, ``pairs_weight`` and ``position`` are those of
        ``fit``.
        """
        facts = _ListFacts(pairs, pairs_weight, position)
        made = self._refit(X, y, decay, sample_weight, group, init_score, add_facts=facts.added_to)
        made._estimate_position_bias(facts, X, group, init_score)
        return made

    def _estimate_position_bias(self, facts: _ListFacts, X: Any, group: Any, init_score: Any) -> None:
        """Set ``position_bias_`` from the scores of the training rows, if the loss estimates it."""
        if debiases(self.loss_):
            assert facts.rows is not None
            scores = self.predict(without_group(X, group)[0], init_score=init_score)
            self.position_bias_ = position_bias(self.loss_, facts.rows, scores)

    def check(self, X: Any, y: Any = None, sample_weight: Any = None, group: Any = None) -> Verdict:
        """The verdict of theory on this composition and these data, before any work; as for the other estimators."""
        return self._check(X, y, sample_weight, group)

    def predict(self, X: Any, *, init_score: Any = None, n_rounds: Any = None) -> NDArray[np.float64]:
        """(n,) float64 scores; within a query, documents of higher scores rank first.

        Parameters
        ----------
        init_score : (n,) or (n, K) numbers, or one number, optional
            Offsets that are added to the scores, as in ``fit``. None: those of the Dataset, if X is one, or 0.
        n_rounds : int or (int, int), optional
            The first rounds only, or those from ``begin`` to ``end`` - 1 of a pair (begin, end) (XGBoost:
            ``iteration_range``; LightGBM: ``start_iteration``, ``num_iteration``); the bias is part of each. None: all.
        """
        answer: NDArray[np.float64] = self._answer(X, _values, init_score=init_score, n_rounds=n_rounds)
        return answer

    def staged_predict(self, X: Any, *, init_score: Any = None, n_rounds: Any = None) -> Iterator[NDArray[np.float64]]:
        """``predict`` after each round."""
        return self._staged_answers(X, _values, init_score=init_score, n_rounds=n_rounds)

    def predict_uncertainty(
        self, X: Any, samples: int | None = None, burn_in: float = 0.5, group: Any = None
    ) -> Uncertainty:
        """Mean and variance of each document's score over draws from the posterior; see ``posterior_members``.

        Parameters
        ----------
        group : (n,) query ids or (queries,) sizes, optional
            The queries of X. Scores of a draw are then relative to the mean of their query, so that ``knowledge`` has
            no part of what moves all documents of a query alike, which changes no order.

        Returns
        -------
        Uncertainty
            ``mean`` of the draws; ``knowledge``, their variance; ``data`` and ``total`` are NaN, as a loss of lists has
            no model of noise.
        """
        X, group = without_group(X, group)
        members = self.posterior_members(X, samples, burn_in)
        queries = check_group(group, members.shape[2])
        if queries is not None:
            start = query_start(queries)
            means = np.add.reduceat(members, start[:-1], axis=2) / np.diff(start)
            members = members - np.repeat(means, np.diff(start), axis=2)
        return uncertainty(self.loss_, members, self._temperature())

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, group: Any = None, init_score: Any = None
    ) -> float:
        """The first metric of ``eval_metric``; if it is None, NDCG at the first place of ``eval_at``.

        X may be a ``gb.Dataset`` with target and queries. Raises InputError if the queries are not given.
        """
        X, group = without_group(X, group)
        check_is_fitted(self)
        y, sample_weight = judged_by(X, y, sample_weight)
        group = X.group if group is None and isinstance(X, Dataset) else group
        scores, y, sample_weight = on_host(self.predict(X, init_score=init_score)), on_host(y), on_host(sample_weight)
        rows = labelled(X, y, sample_weight, len(scores), group)
        check_columns(rows.y, self.loss_)
        start = query_start(checked_queries(rows.metadata))
        first = metrics_of(self.eval_metric, self.loss_, self.eval_at)[0]
        return first(rows.y.astype(np.float64), scores[None], rows.metadata.weight, self.loss_, start)


def _values() -> Answer:
    return FIRST_SCORE


class _ListFacts:
    """Pairs and positions of a ranking's rows, and the training rows once they are added to them."""

    def __init__(self, pairs: Any, pairs_weight: Any, position: Any) -> None:
        self._given = pairs, pairs_weight, position
        self.rows: LabelledRows | None = None

    def added_to(self, rows: LabelledRows) -> LabelledRows:
        """The rows with the facts, checked."""
        self.rows = with_list_facts(rows, *self._given)
        return self.rows
