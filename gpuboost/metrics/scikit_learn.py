"""Metrics of scikit-learn: functions of ``sklearn.metrics``, and scorers.

A classifier's targets here are the numbers of the classes, 0 to K - 1, in the order of ``classes_``.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import GpuBoostError, InputError
from gpuboost.losses.protocol import Loss, LossTraits
from gpuboost.metrics.formulas import predicted_class
from gpuboost.metrics.metric import number
from gpuboost.records import declared
from gpuboost.types import Array

OF_LABELS = frozenset(
    {
        "accuracy_score",
        "balanced_accuracy_score",
        "cohen_kappa_score",
        "f1_score",
        "fbeta_score",
        "hamming_loss",
        "jaccard_score",
        "matthews_corrcoef",
        "precision_score",
        "recall_score",
        "zero_one_loss",
    }
)
"""Functions of ``sklearn.metrics`` that judge predicted labels, not probabilities."""

HIGHER = frozenset({"matthews_corrcoef"})
"""Functions of which more is better, though their names do not end in ``_score``."""


def is_scorer(metric: Any) -> bool:
    """True for what ``make_scorer`` and ``get_scorer`` of scikit-learn return."""
    return hasattr(metric, "_score_func") and hasattr(metric, "_sign")


def is_function(metric: Any) -> bool:
    """True for a function of ``sklearn.metrics``, or a ``functools.partial`` of one."""
    return str(getattr(_unwrapped(metric), "__module__", "")).startswith("sklearn.metrics")


def name_of(metric: Any) -> str:
    """Name with the arguments that differ from the defaults, as in ``f1_score(average=macro)``."""
    function: Any = metric._score_func if is_scorer(metric) else _unwrapped(metric)
    arguments = metric._kwargs if is_scorer(metric) else getattr(metric, "keywords", {})
    defaults = inspect.signature(function).parameters
    shown = [f"{k}={v}" for k, v in arguments.items() if k not in defaults or defaults[k].default != v]
    negative = "neg_" if is_scorer(metric) and metric._sign < 0 else ""
    name = f"{negative}{getattr(function, '__name__', type(function).__name__)}"
    return f"{name}({', '.join(shown)})" if shown else name


def higher_is_better(metric: Any) -> bool:
    """True for scorers, whose sign makes it so, and by scikit-learn's convention for names that end in ``_score``."""
    if is_scorer(metric):
        return True
    name = getattr(_unwrapped(metric), "__name__", "")
    return name in HIGHER or name.endswith("_score")


def function_of(metric: Any, loss: Loss) -> Callable[[Array, Array, Array | None, Loss], float]:
    """(y, scores, weight, loss) -> value of a scorer or a function of ``sklearn.metrics``.

    Raises:
        InputError: if it judges labels, and the loss is of a regression.
    """
    if is_scorer(metric):
        return partial(_scored, metric)
    labels = getattr(_unwrapped(metric), "__name__", "") in OF_LABELS
    if labels and loss.task == "regression":
        raise InputError(
            f"eval_metric: {name_of(metric)} judges predicted classes, and loss {loss.name!r} is of a regression."
        )
    return partial(_value, metric, labels)


def _unwrapped(metric: Any) -> Any:
    """The function of a ``functools.partial``; anything else as it is."""
    while isinstance(metric, partial):
        metric = metric.func
    return metric


def _value(metric: Any, labels: bool, y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Value of a function of ``sklearn.metrics``, of labels or of what ``inverse_link`` returns."""
    true, prediction = (
        (_numbers(y), _numbers(predicted_class(scores, loss))) if labels else (y, loss.inverse_link(scores))
    )
    weights = {"sample_weight": weight} if _takes_weights(_unwrapped(metric)) else {}
    return _number(metric, lambda: metric(true, prediction, **weights))


def _scored(scorer: Any, y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Value of a scorer, which calls an estimator for the labels, probabilities or decisions that it needs."""
    classify = loss.task != "regression" and declared(LossTraits, loss).link != "identity"
    estimator = (_Classes if classify else _Values)(scores, loss)
    weights = {"sample_weight": weight} if _takes_weights(scorer._score_func) else {}
    rows = np.empty((len(y), 0))
    return _number(scorer, lambda: scorer(estimator, rows, _numbers(y) if classify else y, **weights))


def _number(metric: Any, compute: Callable[[], Any]) -> float:
    """Result of ``compute`` as a float; InputError if it raises an error of values, or returns something else."""
    try:
        result = compute()
    except GpuBoostError:
        raise
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"eval_metric: {name_of(metric)} cannot judge these predictions: {error} (Classes are numbered from 0 in "
            "the order of classes_.)"
        ) from error
    return number(name_of(metric), result)


def _takes_weights(function: Any) -> bool:
    return "sample_weight" in inspect.signature(function).parameters


def _numbers(labels: Array) -> NDArray[np.int64]:
    return np.asarray(labels).astype(np.int64)


class _Known(ABC):
    """Estimator of given scores, with the methods that scikit-learn's scorers call."""

    _estimator_type: ClassVar[str]

    def __init__(self, scores: Array, loss: Loss) -> None:
        self.scores = scores
        self.loss = loss

    def fit(self) -> _Known:
        """The estimator: a scorer takes fitted ones only."""
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        classify = self._estimator_type == "classifier"
        kinds = {"classifier_tags": ClassifierTags() if classify else None}
        kinds |= {"regressor_tags": None if classify else RegressorTags()}
        return Tags(self._estimator_type, TargetTags(required=True), input_tags=InputTags(), **kinds)

    @abstractmethod
    def predict(self, rows: Any) -> Array: ...


class _Values(_Known):
    """Estimator of a regression."""

    _estimator_type = "regressor"

    def predict(self, rows: Any) -> Array:
        return self.loss.inverse_link(self.scores)


class _Classes(_Known):
    """Estimator of a classification."""

    _estimator_type = "classifier"

    @property
    def classes_(self) -> NDArray[np.int64]:
        return np.arange(max(2, len(self.scores)))

    def predict(self, rows: Any) -> Array:
        return _numbers(predicted_class(self.scores, self.loss))

    def predict_proba(self, rows: Any) -> Array:
        p = self.loss.inverse_link(self.scores)
        return p if p.ndim == 2 else np.column_stack([1.0 - p, p])

    def decision_function(self, rows: Any) -> Array:
        return self.scores[0] if len(self.scores) == 1 else np.ascontiguousarray(self.scores.T)
