"""The regressor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from gpuboost.api.base import GradientBoosting
from gpuboost.api.docstrings import completed
from gpuboost.api.peer_names import explaining_unknown_parameters
from gpuboost.arguments import floats, is_one_of
from gpuboost.data.columns import FROM_DTYPE
from gpuboost.data.encoding import OrderedTargetStatistics
from gpuboost.data.targets import check_answers, signed_times
from gpuboost.data.weights import check_weight
from gpuboost.errors import RecipeError
from gpuboost.growth import CategoricalSplits
from gpuboost.langevin import Langevin
from gpuboost.losses.base import BaseLoss, estimates_spread, facts_of
from gpuboost.losses.protocol import Loss
from gpuboost.losses.residual import Quantiles
from gpuboost.model.answers import predictions_answer
from gpuboost.scoring.answers import Answer
from gpuboost.training.placement.device_arrays import on_host
from gpuboost.training.rows import LabelledRows, judged_by
from gpuboost.training.targets import TrainingTarget, regression
from gpuboost.types import Array


@completed
@explaining_unknown_parameters
class GradientBoostingRegressor(RegressorMixin, GradientBoosting):
    """Gradient boosting of trees for regression.

    Parameters
    ----------
    loss : str or loss object
        "squared_error", "huber", "absolute_error", "quantile", "poisson", "gamma", "tweedie", "cross_entropy" (targets
        from 0 to 1), "aft" (times, negative where they are censored), or an object of ``gb.losses`` for another
        parameter, such as ``gb.losses.Quantile(0.9)``. ``gb.losses.Quantile([0.05, 0.5, 0.95])`` trains one model of
        several quantiles that do not cross.
    monotonic_cst : None, (d,) of -1, 0 and 1, or mapping from names of columns to these
        Predictions never decrease (1) or never increase (-1) with a column, or are unconstrained (0, and columns a
        mapping leaves out). Holds exactly, whatever the values of other columns; missing values are not compared with
        other values, and go to the side of larger gain. Not for categorical columns. Not for losses of several scores.
    """

    def __init__(
        self,
        loss: str | Loss = "squared_error",
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
        multi_output: str = "one_tree_per_output",
        sketch: Any = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        eval_metric: Any = None,
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
        self.multi_output = multi_output
        self.sketch = sketch
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.callbacks = callbacks
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start

    def _target(self, rows: LabelledRows) -> TrainingTarget:
        return regression(self.loss, rows)

    def predict(
        self, X: Any, output: str = "mean", *, init_score: Any = None, n_rounds: Any = None
    ) -> NDArray[np.float64]:
        """Predictions of the quantity that the loss estimates: means, medians, quantiles ...

        Parameters
        ----------
        output : "mean", "std" or "all"
            For the losses ``gaussian_nll`` (CatBoost: RMSEWithUncertainty), ``log_normal_nll``, ``gamma_nll`` and
            ``negative_binomial_nll``, which estimate a spread too: the mean, the standard deviation of the target, or
            both. Other losses have "mean" only, whatever they estimate.

        init_score : (n,) or (n, K) numbers, or one number, optional
            Offsets that are added to the scores, as in ``fit``. None: those of the Dataset, if X is one, or 0.
        n_rounds : int or (int, int), optional
            The first rounds only, or those from ``begin`` to ``end`` - 1 of a pair (begin, end) (XGBoost:
            ``iteration_range``; LightGBM: ``start_iteration``, ``num_iteration``); the bias is part of each. None: all.

        Returns
        -------
        (n,) float64, or (n, 2) with the columns mean and standard deviation for "all"; (n, q) in increasing order for a
        loss of q quantiles, (n, k) for k targets

        Raises
        ------
        RecipeError
            If the loss has no such output.
        """
        if is_one_of(output, ("mean",)):
            answer: NDArray[np.float64] = self._answer(X, self._values, init_score=init_score, n_rounds=n_rounds)
            return answer
        check_is_fitted(self)
        if not is_one_of(output, ("std", "all")):
            raise RecipeError(f"output: must be 'mean', 'std' or 'all'; got {output!r}.")
        if not estimates_spread(self.loss_):
            raise RecipeError(
                f"output: {output!r} needs a loss that estimates a spread; this model was trained with "
                f"{self.loss_.name!r}. Train with loss='gaussian_nll', 'log_normal_nll', 'gamma_nll' or "
                "'negative_binomial_nll'."
            )
        both: NDArray[np.float64] = self._answer(X, self._spread, init_score=init_score, n_rounds=n_rounds)
        return both if output == "all" else both[:, 1]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, init_score: Any = None) -> float:
        """R2 of the predictions: 1 for exact ones, 0 for those of the mean.

        Of several targets the mean of theirs. Of several quantiles the D2: 1 less the quantile loss, relative to that
        of the constant quantiles of ``y``. Of censored times ("aft") the concordance index. X may be a ``gb.Dataset``
        with target and weights.
        """
        check_is_fitted(self)
        y, sample_weight = judged_by(X, y, sample_weight)
        if isinstance(self.loss_, Quantiles):
            return self._explained_quantiles(X, y, sample_weight, init_score)
        if facts_of(self.loss_).censored_target:
            return self._concordance(X, y, sample_weight, init_score)
        from sklearn.metrics import r2_score  # slow to import

        predicted = on_host(self.predict(X, init_score=init_score))
        target, weight = _judged(y, sample_weight, predicted)
        return float(r2_score(target, predicted, sample_weight=weight))

    def staged_predict(self, X: Any, *, init_score: Any = None, n_rounds: Any = None) -> Iterator[NDArray[np.float64]]:
        """``predict`` after each round."""
        return self._staged_answers(X, self._values, init_score=init_score, n_rounds=n_rounds)

    def _concordance(self, X: Any, y: Any, sample_weight: Any, init_score: Any) -> float:
        from gpuboost.metrics.concordance import concordance

        predicted = on_host(self.predict(X, init_score=init_score))
        target = signed_times(check_answers(on_host(y), predicted))
        weight = check_weight(on_host(sample_weight), len(predicted))
        columns = zip(np.atleast_2d(target.T), np.atleast_2d(predicted.T), strict=True)
        return float(np.mean([concordance(one, found[None], weight, self.loss_) for one, found in columns]))

    def _explained_quantiles(self, X: Any, y: Any, sample_weight: Any, init_score: Any) -> float:
        from sklearn.metrics import mean_pinball_loss  # slow to import

        assert isinstance(self.loss_, Quantiles)
        predicted = on_host(self.predict(X, init_score=init_score))
        target, weight = _judged(y, sample_weight, predicted[:, 0])  # predicted: a column a level
        constants = self.loss_.start(target, np.ones(len(target)) if weight is None else weight)
        loss = least = 0.0
        for level, column, constant in zip(self.loss_.alpha, predicted.T, constants, strict=True):
            judged = {"sample_weight": weight, "alpha": level}
            loss += float(mean_pinball_loss(target, column, **judged))
            least += float(mean_pinball_loss(target, np.full(len(target), constant), **judged))
        return 1.0 - loss / least if least > 0.0 else float(loss == 0.0)

    def _mean_and_spread(self, scores: Array) -> NDArray[np.float64]:
        assert isinstance(self.loss_, BaseLoss)
        mean = np.asarray(self.loss_.inverse_link(scores))
        variance = self.loss_.noise(scores[None], mean[None], 1.0)
        assert variance is not None  # see estimates_spread
        return np.column_stack([mean, np.sqrt(variance)])

    def _values(self) -> Answer:
        return predictions_answer(self.loss_)

    def _spread(self) -> Answer:
        return Answer(self._mean_and_spread)


def _judged(
    y: Any, sample_weight: Any, predicted: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Targets and weights to judge predictions by; raises InputError as ``fit`` does."""
    return floats("y", check_answers(on_host(y), predicted)), check_weight(on_host(sample_weight), len(predicted))
