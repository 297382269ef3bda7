"""The records by which a device computes metrics: all that does not change from round to round, for an eval set.

Functions (y, weight, loss, query_start) -> record, or None where the host computes the metric by its formula. They
raise the errors of the formulas. y (n,), weight (n,) or None, query_start (queries + 1,) or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from gpuboost.losses.averages import SAFE, exact_sum
from gpuboost.losses.base import link_of
from gpuboost.losses.protocol import Loss
from gpuboost.losses.residual import Quantiles
from gpuboost.losses.softmax import Softmax
from gpuboost.losses.target import zero_or_one
from gpuboost.metrics import ranking
from gpuboost.metrics.classification import (
    balanced_accuracy_of,
    check_ones,
    classes_of,
    f1_macro_of,
    f1_of,
    mcc_of,
    mean_area,
    of_no_rows,
)
from gpuboost.metrics.formulas import check_domain, of_one_class, r2_of, variance
from gpuboost.metrics.metric import MakeScoreMetric, same
from gpuboost.scoring import curves
from gpuboost.scoring.class_sums import ClassSums, known_of_rows
from gpuboost.scoring.device_metrics import (
    AreasOfClasses,
    ClassScore,
    CurveArea,
    HitShare,
    Link,
    ListMean,
    ListRule,
    ScoreMetric,
    TermMean,
    TermRule,
)
from gpuboost.types import Array


def hit_share(
    y: Array, weight: Array | None, loss: Loss, query_start: Array | None, *, places: int = 1, later_leads: bool = False
) -> ScoreMetric | None:
    """Accuracy, and accuracy of the first ``places`` classes."""
    labels = np.asarray(y, np.float64)
    if not _are_classes(labels, loss):
        return None
    weight = _uneven(weight)
    largest = 1.0 if weight is None else float(np.max(weight))
    if not 0.0 < largest < SAFE:
        return None
    total = float(len(labels)) if weight is None else exact_sum(weight)
    return HitShare(labels, weight, places, later_leads, largest, total)


def class_score(
    y: Array, weight: Array | None, loss: Loss, query_start: Array | None, *, of: Callable[[ClassSums], float]
) -> ScoreMetric | None:
    """A metric that is a function of the weights of rows by class and predicted class."""
    labels = np.asarray(y, np.float64)
    if loss.task == "binary":
        zero_or_one(labels, "a metric of two classes")
    if not _are_classes(labels, loss):
        return None
    weight = _uneven(weight)
    largest = 1.0 if weight is None else float(np.max(weight))
    known = known_of_rows(labels.astype(np.int64), weight, classes_of(loss))
    return ClassScore(labels, weight, largest, *known, of)


def _rest(share: float) -> float:
    return 1.0 - share


def _are_classes(labels: Array, loss: Loss) -> bool:
    """True if labels (n,) are numbers of classes of the loss."""
    if loss.task not in ("binary", "multiclass") or labels.ndim != 1 or not len(labels):
        return False
    return bool(np.all((labels >= 0.0) & (labels < classes_of(loss)) & (labels == np.rint(labels))))


def _uneven(weight: Array | None) -> Array | None:
    """The weights; None if all are 1."""
    return None if weight is None or np.all(weight == 1.0) else weight


def curve_area(
    y: Array, weight: Array | None, loss: Loss, query_start: Array | None, *, curve: curves.Curve
) -> ScoreMetric | None:
    """Area under the ROC or the precision-recall curve."""
    zero_or_one(y, "auc") if curve == "roc" else check_ones(y)
    units = curves.weight_units(weight, len(y))
    positive = int(units[y > 0.5].sum())
    negative = int(units.sum()) - positive
    if curve == "roc" and not (positive and negative):
        raise of_one_class(y)
    ones = np.ascontiguousarray(y > 0.5).view(np.uint8)
    return CurveArea(curve, ones, None if weight is None else units, positive, negative)


def areas_of_classes(
    y: Array, weight: Array | None, loss: Loss, query_start: Array | None, *, by_prevalence: bool
) -> ScoreMetric | None:
    """Mean over classes of the area under the ROC curve of one class against the rest."""
    labels = np.asarray(y, np.float64)
    if not isinstance(loss, Softmax) or not _are_classes(labels, loss):
        return None
    units = curves.weight_units(weight, len(y))
    positive = tuple(int(units[labels == number].sum()) for number in range(loss.n_outputs))
    negative = tuple(int(units.sum()) - class_units for class_units in positive)
    for number, both in enumerate(zip(positive, negative, strict=True)):
        if not all(both):
            raise of_no_rows(number)
    areas = partial(mean_area, y=labels, weight=weight, by_prevalence=by_prevalence)
    return AreasOfClasses(labels, None if weight is None else units, positive, negative, areas)


def term_mean(
    y: Array, weight: Array | None, loss: Loss, query_start: Array | None, *, metric: str, a: float = 0.0
) -> ScoreMetric | None:
    """A function of the mean of a term of each row. a: parameter of the metric."""
    target, link = np.asarray(y, np.float64), _link_of(loss, metric)
    if link is None or target.ndim != 1 or not len(target):
        return None
    rule, of = _TERMS[metric]
    if metric == "brier" and loss.task != "multiclass":
        zero_or_one(target, "brier")
    check_domain(target, metric)
    if metric == "r2":
        of = partial(r2_of, spread=variance(target, weight))
    weight = _uneven(weight)
    heaviest = 1.0 if weight is None else float(np.max(weight))
    if not 0.0 < heaviest < SAFE:
        return None
    total = float(len(target)) if weight is None else exact_sum(weight)
    return TermMean(rule, *link, a, target, weight, heaviest, total, of)


def _link_of(loss: Loss, metric: str) -> tuple[Link, float] | None:
    """The link by which the first score, or those of all classes, become predictions, and the factor in front of it;
    None if a device has no such function."""
    if metric in ("coverage", "interval_width"):
        return ("identity", 1.0) if isinstance(loss, Quantiles) else None
    link, scale = link_of(loss)
    if link == "other" or (link == "softmax" and metric != "brier"):
        return None
    return None if link == "identity" and loss.task != "regression" else (link, scale)


def _twice(mean: float) -> float:
    return 2.0 * mean


_TERMS: dict[str, tuple[TermRule, Callable[[float], float]]] = {
    "brier": ("squared", same),
    "mse": ("squared", same),
    "rmse": ("squared", math.sqrt),
    "r2": ("squared", same),
    "mae": ("absolute", same),
    "mape": ("relative", same),
    "smape": ("symmetric", same),
    "rmsle": ("logarithmic", math.sqrt),
    "poisson_deviance": ("poisson", _twice),
    "gamma_deviance": ("gamma", _twice),
    "tweedie_deviance": ("tweedie", _twice),
    "quantile": ("quantile", same),
    "expectile": ("expectile", same),
    "huber": ("huber", same),
    "coverage": ("coverage", same),
    "interval_width": ("width", same),
}
"""Rule of the term of each metric that is a mean of such, and the function of the mean that the metric is."""


def list_mean(
    y: Array, weight: Array | None, loss: Loss, query_start: Array, *, rule: ListRule, k: int | None,
    empty: float | None, gain: tuple[float, ...] | None = None,
) -> ScoreMetric | None:  # fmt: skip
    """A metric of rankings."""
    lengths = np.diff(query_start)
    longest = int(lengths.max(initial=0))
    if not longest:
        return None
    places = longest if k is None else min(k, longest)
    relevant = np.add.reduceat(np.append(y > 0.0, False).astype(np.int64), query_start[:-1]) * (lengths > 0)
    gains, worth = (y > 0.0).astype(np.float64), np.zeros(1)
    if rule == "ndcg":
        table = ranking.gains_of(y, loss, gain)
        gains, worth = table[y.astype(np.int64)], ranking.worth_of_places(longest)
        divisors = ranking.values_by_query(partial(ranking.ideal, gains=table), y, y, query_start, k)
        divisors = np.where(np.isnan(divisors), 0.0, divisors)
    elif rule == "map":
        divisors = np.minimum(relevant, places)
    elif rule == "precision":
        divisors = np.where(relevant > 0, lengths if k is None else k, 0)
    elif rule == "recall":
        divisors = relevant
    else:
        divisors = relevant > 0
    of_lists = None if weight is None else weight[query_start[:-1]]
    mean = partial(ranking.mean_of_values, weight=of_lists, empty=empty)
    start = np.ascontiguousarray(query_start, np.int64)
    return ListMean(rule, gains, start, places, worth, np.ascontiguousarray(divisors, np.float64), mean)


DEVICE_METRICS: dict[str, tuple[MakeScoreMetric, Callable[[float], float]]] = {
    "accuracy": (hit_share, same),
    "error": (hit_share, _rest),
    "f1": (partial(class_score, of=f1_of), same),
    "f1_macro": (partial(class_score, of=f1_macro_of), same),
    "balanced_accuracy": (partial(class_score, of=balanced_accuracy_of), same),
    "mcc": (partial(class_score, of=mcc_of), same),
    "auc": (partial(curve_area, curve="roc"), same),
    "average_precision": (partial(curve_area, curve="precision_recall"), same),
    "auc_ovr": (partial(areas_of_classes, by_prevalence=False), same),
    "auc_ovr_weighted": (partial(areas_of_classes, by_prevalence=True), same),
    **{name: (partial(term_mean, metric=name), same) for name in _TERMS},
}
"""Name of a metric -> the function that makes its record, and the function of the record's value that the metric is."""
