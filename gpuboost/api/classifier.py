"""The classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gpuboost import losses
from gpuboost.api.base import GradientBoosting
from gpuboost.api.docstrings import completed
from gpuboost.api.peer_names import explaining_unknown_parameters
from gpuboost.data.columns import FROM_DTYPE
from gpuboost.data.encoding import OrderedTargetStatistics
from gpuboost.data.targets import check_answers
from gpuboost.data.weights import check_weight
from gpuboost.errors import RecipeError
from gpuboost.growth import CategoricalSplits
from gpuboost.langevin import Langevin
from gpuboost.losses.protocol import Loss
from gpuboost.losses.start_values import needs_one_score
from gpuboost.model.answers import decision_answer, labels_answer, probabilities_answer
from gpuboost.model.outputs import probabilities
from gpuboost.predictor import ClassifierPredictor
from gpuboost.scoring.answers import Answer
from gpuboost.training.placement.device_arrays import on_host
from gpuboost.training.rows import LabelledRows, judged_by
from gpuboost.training.targets import TrainingTarget, classification
from gpuboost.types import Array


@completed
@explaining_unknown_parameters
class GradientBoostingClassifier(ClassifierMixin, GradientBoosting):
    """Gradient boosting of trees for classification: two classes, or more with one tree per class in each round.

    Parameters
    ----------
    loss : str or loss object
        "logistic" (softmax if there are more than two classes), "exponential", "softmax", or an object of
        ``gb.losses``, such as ``gb.losses.Logistic(ridge=0.1)``.
    monotonic_cst : None, (d,) of -1, 0 and 1, or mapping from names of columns to these
        The probability of the second class never decreases (1) or never increases (-1) with a column, or is
        unconstrained (0, and columns a mapping leaves out). Holds exactly, whatever the values of other columns;
        missing values are not compared with other values, and go to the side of larger gain. Not for categorical
        columns. For two classes only.
    class_weight : "balanced", mapping from classes, or None
        Multiplies the weights of the rows of a class; "balanced" gives all classes the same total. A product that is
        no whole number equals repeated rows up to rounding, about 1e-8 of a score, and not to the last bit.

    Attributes
    ----------
    classes_ : (K,) ndarray
        The labels, sorted; of several labels their numbers, 0 to K - 1, as of scikit-learn's ``MLPClassifier``.
    evals_result_ : dict
        ``{"validation_0": {"logloss": [...]}}``, one number a round, those after the best round included.
    """

    classes_: NDArray[Any]

    def __init__(
        self,
        loss: str | Loss = "logistic",
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
        class_weight: str | Mapping[Any, float] | None = None,
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
        self.class_weight = class_weight
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(RecipeError):  # of a loss that fit will refuse
            several = self.loss == "logistic" or losses.get(self.loss, 3).n_outputs > 1
            tags.classifier_tags.multi_class = several and not needs_one_score(self.start)
            tags.target_tags.multi_output &= self.class_weight is None
            tags.classifier_tags.multi_label = tags.target_tags.multi_output
        return tags

    def predictor(self, *, n_rounds: Any = None) -> ClassifierPredictor:
        """A lean object that gives the predictions of this model: see ``GradientBoostingRegressor.predictor``.

        It has ``predict``, ``predict_proba`` and ``decision_function``. ``n_rounds`` and errors are those of the other
        estimators.
        """
        made = super().predictor(n_rounds=n_rounds)
        assert isinstance(made, ClassifierPredictor)
        return made

    def _target(self, rows: LabelledRows) -> TrainingTarget:
        return classification(self.loss, self.class_weight, rows)

    def decision_function(self, X: Any, *, init_score: Any = None, n_rounds: Any = None) -> NDArray[np.float64]:
        """(n,) float64 scores for two classes, positive if the second is more probable; (n, K) for K > 2 classes.

        Of k labels (n, k), positive where a label is more probable than not.
        """
        answer: NDArray[np.float64] = self._answer(X, self._decision, init_score=init_score, n_rounds=n_rounds)
        return answer

    def staged_decision_function(
        self, X: Any, *, init_score: Any = None, n_rounds: Any = None
    ) -> Iterator[NDArray[np.float64]]:
        """``decision_function`` after each round."""
        return self._staged_answers(X, self._decision, init_score=init_score, n_rounds=n_rounds)

    def predict_proba(self, X: Any, *, init_score: Any = None, n_rounds: Any = None) -> NDArray[np.float64]:
        """(n, K) float64 probabilities in the order of ``classes_``. Raises InputError if a custom loss has no link.

        Of several labels those of each label, which do not sum to 1.
        """
        answer: NDArray[np.float64] = self._answer(X, self._probabilities, init_score=init_score, n_rounds=n_rounds)
        return answer

    def predict_log_proba(self, X: Any, *, init_score: Any = None, n_rounds: Any = None) -> NDArray[np.float64]:
        """(n, K) float64 logarithms of ``predict_proba``; -inf where a probability is 0."""
        answer: NDArray[np.float64] = self._answer(X, self._log_probabilities, init_score=init_score, n_rounds=n_rounds)
        return answer

    def staged_predict_proba(
        self, X: Any, *, init_score: Any = None, n_rounds: Any = None
    ) -> Iterator[NDArray[np.float64]]:
        """``predict_proba`` after each round."""
        return self._staged_answers(X, self._probabilities, init_score=init_score, n_rounds=n_rounds)

    def predict(self, X: Any, *, init_score: Any = None, n_rounds: Any = None) -> NDArray[Any]:
        """(n,) the class of highest probability; the first one on a tie. Of several labels (n, k) 0 and 1.

        Parameters
        ----------
        init_score : (n,) or (n, K) numbers, or one number, optional
            Offsets that are added to the scores, as in ``fit``. None: those of the Dataset, if X is one, or 0.
        n_rounds : int or (int, int), optional
            The first rounds only, or those from ``begin`` to ``end`` - 1 of a pair (begin, end) (XGBoost:
            ``iteration_range``; LightGBM: ``start_iteration``, ``num_iteration``); the bias is part of each. None: all.
        """
        answer: NDArray[Any] = self._answer(X, self._labels, init_score=init_score, n_rounds=n_rounds)
        return answer

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, init_score: Any = None) -> float:
        """Accuracy: the share of the rows, by weight, whose class is predicted; of several labels, all of them.

        X may be a ``gb.Dataset`` with target and weights.
        """
        from sklearn.metrics import accuracy_score  # slow to import

        check_is_fitted(self)
        y, sample_weight = judged_by(X, y, sample_weight)
        predicted = on_host(self.predict(X, init_score=init_score))
        weight = check_weight(on_host(sample_weight), len(predicted))
        truth = check_answers(on_host(y), predicted)
        return float(accuracy_score(truth, predicted, sample_weight=weight))

    def staged_predict(self, X: Any, *, init_score: Any = None, n_rounds: Any = None) -> Iterator[NDArray[Any]]:
        """``predict`` after each round."""
        return self._staged_answers(X, self._labels, init_score=init_score, n_rounds=n_rounds)

    def _decision(self) -> Answer:
        return decision_answer(self.loss_)

    def _probabilities(self) -> Answer:
        return probabilities_answer(self.loss_)

    def _labels(self) -> Answer:
        return labels_answer(self.loss_, self.classes_)

    def _log_probabilities(self) -> Answer:
        def logarithms(scores: Array) -> NDArray[np.float64]:
            with np.errstate(divide="ignore"):
                return np.log(probabilities(self.loss_, scores))

        return Answer(logarithms)  # on the host, as the logarithms are NumPy's
