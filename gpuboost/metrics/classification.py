"""The formulas of metrics of classes beyond accuracy: weights of classes and predictions, areas, squared differences.

As in ``formulas``: (y, scores, weight, loss) -> value, y (n,), scores (k, n), weight (n,) or None; the definitions are
scikit-learn's. Sums are exact, so the value depends neither on the order of rows nor on the machine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.losses.averages import exact_sum
from gpuboost.losses.protocol import Loss
from gpuboost.losses.target import zero_or_one
from gpuboost.metrics.formulas import area_under_roc, mean, predicted_class, probabilities
from gpuboost.scoring import curves
from gpuboost.scoring.class_sums import ClassSums, class_sums
from gpuboost.types import Array


def average_precision(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Area under the precision-recall curve, as the sum of precision times the increase of recall."""
    check_ones(y)
    return area_under_precision_recall(y > 0.5, scores[0], weight)


def check_ones(y: Array) -> None:
    """Raise InputError unless y is 0 or 1, and 1 somewhere."""
    zero_or_one(y, "average_precision")
    if not (y > 0.5).any():
        raise InputError("eval_metric: average_precision needs rows of class 1; all hold 0.0. Use logloss.")


def area_under_precision_recall(ones: Array, score: Array, weight: Array | None) -> float:
    """Sum of precision times the increase of recall, threshold by threshold. ones (n,) bool, some true; score (n,)."""
    steps = curves.threshold_steps(ones, score, curves.weight_units(weight, len(ones)))
    return curves.area("precision_recall", *steps)


def f1(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Harmonic mean of precision and recall of class 1; 0 if there is neither a prediction nor a row of it."""
    return f1_of(_class_sums(y, scores, weight, loss))


def f1_macro(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Mean of the F1 scores of the classes that occur among the rows or the predictions."""
    return f1_macro_of(_class_sums(y, scores, weight, loss))


def balanced_accuracy(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Mean of the recalls of the classes that occur."""
    return balanced_accuracy_of(_class_sums(y, scores, weight, loss))


def mcc(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Matthews' correlation coefficient of classes and predictions; 0 if one of them is constant."""
    return mcc_of(_class_sums(y, scores, weight, loss))


def f1_of(sums: ClassSums) -> float:
    """``f1`` of the weights of two classes."""
    return float(_f1_of_classes(sums)[1])


def f1_macro_of(sums: ClassSums) -> float:
    """``f1_macro`` of the weights of classes."""
    return exact_sum(_f1_of_classes(sums)[sums.occurs]) / int(sums.occurs.sum())


def balanced_accuracy_of(sums: ClassSums) -> float:
    """``balanced_accuracy`` of the weights of classes."""
    has_rows = sums.true > 0.0
    recall = sums.hits[has_rows] / sums.true[has_rows]
    return exact_sum(recall) / len(recall)


def mcc_of(sums: ClassSums) -> float:
    """``mcc`` of the weights of classes."""
    true, predicted, total = sums.true, sums.predicted, exact_sum(sums.true)
    covariance = exact_sum(sums.hits) * total - exact_sum(true * predicted)
    spread = (total * total - exact_sum(predicted * predicted)) * (total * total - exact_sum(true * true))
    return float(covariance / math.sqrt(spread)) if spread > 0.0 else 0.0


def brier(y: Array, scores: Array, weight: Array | None, loss: Loss) -> float:
    """Mean squared difference of the probability of class 1 and y; over several classes, of the sum over classes."""
    if loss.task != "multiclass":
        zero_or_one(y, "brier")
        return mean(np.square(probabilities(loss, scores) - y), weight)
    p = loss.inverse_link(scores)  # (n, classes)
    hit = np.arange(p.shape[1]) == y[:, None]
    return mean(np.cumsum(np.square(p - hit), axis=1)[:, -1], weight)


def top_k_accuracy(y: Array, scores: Array, weight: Array | None, loss: Loss, *, k: int) -> float:
    """Share of the weight of rows whose class is among the k of largest score; the later class leads among equals."""
    label_scores = np.take_along_axis(scores, y.astype(np.int64)[None, :], axis=0)
    later = np.arange(len(scores))[:, None] > y
    ahead = (scores > label_scores) | ((scores == label_scores) & later)
    return mean((ahead.sum(axis=0) < k).astype(np.float64), weight)


def auc_ovr(y: Array, scores: Array, weight: Array | None, loss: Loss, *, by_prevalence: bool) -> float:
    """Mean over classes of the area under the ROC curve of one class against the rest, by its probability.

    by_prevalence: weighted by the classes' shares of the rows' weight.
    """
    areas = []
    for number, probability in enumerate(loss.inverse_link(scores).T):
        areas.append(area_under_roc(y == number, probability, weight))
        if math.isnan(areas[-1]):
            raise of_no_rows(number)
    return mean_area(np.array(areas), y, weight, by_prevalence=by_prevalence)


def of_no_rows(number: int) -> InputError:
    """Error of a class that has no rows, or has all of them."""
    return InputError(f"eval_metric: auc_ovr needs rows of every class; class {number} has none. Use mlogloss.")


def mean_area(areas: Array, y: Array, weight: Array | None, *, by_prevalence: bool) -> float:
    """``auc_ovr`` of the (classes,) areas."""
    if not by_prevalence:
        return mean(areas, None)
    return mean(areas, np.array([mean((y == number).astype(np.float64), weight) for number in range(len(areas))]))


def classes_of(loss: Loss) -> int:
    """Number of classes of a loss of classes."""
    return loss.n_outputs if loss.task == "multiclass" else 2


def _class_sums(y: Array, scores: Array, weight: Array | None, loss: Loss) -> ClassSums:
    if loss.task != "multiclass":
        zero_or_one(y, "a metric of two classes")
    return class_sums(y, predicted_class(scores, loss), weight, classes_of(loss))


def _f1_of_classes(sums: ClassSums) -> NDArray[np.float64]:
    twice, both = 2.0 * sums.hits, sums.predicted + sums.true
    ratio: NDArray[np.float64] = np.divide(twice, both, out=np.zeros(len(both)), where=both > 0.0)
    return ratio
