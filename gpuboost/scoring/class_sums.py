"""Weights of rows by class and predicted class, for metrics of classes: exact sums, the same bits in any order of rows.

Weights are split into integers (``losses.averages.bounded_sum``) by the largest weight of a row, which is known before
the predictions are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.losses.averages import bounded_sum, sum_of_pieces
from gpuboost.records import dataclass
from gpuboost.types import Array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ENTRIES = 4  # of a class and a verdict: the weights' three pieces, and the number of rows


@dataclass(frozen=True, slots=True)
class ClassSums:
    """The weight of rows of each class, of those predicted to be of it, and of those of which both are true."""

    true: Floats  # (classes,)
    predicted: Floats  # (classes,)
    hits: Floats  # (classes,)
    occurs: NDArray[np.bool_]  # (classes,) True for a class of some row, or of some prediction, whatever its weight


def class_sums(y: Array, predicted: Array, weight: Array | None, classes: int) -> ClassSums:
    """The sums of (n,) classes and predicted classes, whole numbers below ``classes``; weight (n,) or None."""
    labels, predictions = (np.asarray(numbers).astype(np.int64) for numbers in (y, predicted))
    groups = labels, predictions, np.where(labels == predictions, labels, classes)
    true, of_predictions, hits = (_sums(group, weight, classes) for group in groups)
    return ClassSums(true, of_predictions, hits, _occurs(labels, classes) | _occurs(predictions, classes))


def known_of_rows(labels: Integers, weight: Array | None, classes: int) -> tuple[Floats, NDArray[np.bool_]]:
    """(classes,) weight of each class, and True for those that some row is of: what no prediction changes."""
    return _sums(labels, weight, classes), _occurs(labels, classes)


def sums_of_pieces(sums: Integers, largest: float, true: Floats, occurs: NDArray[np.bool_]) -> ClassSums:
    """``class_sums`` from what a device adds up.

    Args:
        sums: (classes, 2, ENTRIES) of the rows of each predicted class, first those of another class, then the hits.
        largest: weight of a row.
        true, occurs: of ``known_of_rows``.
    """
    both = sums.sum(axis=1)
    predicted, hits = (
        np.array([sum_of_pieces(pieces, largest) for pieces in part[:, : ENTRIES - 1].tolist()])
        for part in (both, sums[:, 1])
    )
    return ClassSums(true, predicted, hits, occurs | (both[:, ENTRIES - 1] > 0))


def _sums(labels: Integers, weight: Array | None, classes: int) -> Floats:
    """(classes,) weight of the rows of each label; other labels are left out."""
    if weight is None:
        return np.bincount(labels, minlength=classes)[:classes].astype(np.float64)
    largest = float(np.max(weight, initial=0.0))
    return np.array([bounded_sum(np.asarray(weight, np.float64)[labels == c], largest) for c in range(classes)])


def _occurs(labels: Integers, classes: int) -> NDArray[np.bool_]:
    return np.bincount(labels, minlength=classes)[:classes] > 0
