"""Rows that a metric has a value for: what an eval set is held to before the first tree, whatever its scores are."""

from __future__ import annotations

from functools import partial

import numpy as np

from gpuboost.losses.protocol import Loss
from gpuboost.losses.target import zero_or_one
from gpuboost.metrics.classification import check_ones, classes_of, of_no_rows
from gpuboost.metrics.concordance import of_no_pair
from gpuboost.metrics.formulas import of_one_class
from gpuboost.metrics.metric import Check
from gpuboost.types import Array


def check_of(name: str, loss: Loss) -> Check | None:
    """The check of a named metric; None if it has a value for all rows that the loss accepts."""
    if name in ("auc_ovr", "auc_ovr_weighted"):
        return partial(_check_every_class, classes=classes_of(loss))
    return _CHECKS.get(name)


def check_comparable(y: Array, weight: Array | None) -> None:
    """Raise InputError unless two rows of positive weight are comparable. y and weight as of ``concordance``."""
    counted = _counted(y, weight)
    time, is_event = np.abs(counted), counted > 0.0
    first = np.min(time[is_event], initial=np.inf)
    if not ((time > first) | ((time == first) & np.logical_not(is_event))).any():
        raise of_no_pair()


def _check_both_classes(y: Array, weight: Array | None) -> None:
    zero_or_one(y, "auc")
    counted = _counted(y, weight)
    if len(np.unique(counted)) < 2:
        raise of_one_class(counted)


def _check_every_class(y: Array, weight: Array | None, *, classes: int) -> None:
    rows = np.bincount(_counted(y, weight).astype(np.int64), minlength=classes)
    if not rows.all():
        raise of_no_rows(int(np.argmin(rows)))


def _check_ones(y: Array, weight: Array | None) -> None:
    check_ones(y)


def _counted(y: Array, weight: Array | None) -> Array:
    """The targets of the rows that have weight."""
    return np.asarray(y) if weight is None else np.asarray(y)[np.asarray(weight) > 0.0]


_CHECKS: dict[str, Check] = {
    "auc": _check_both_classes,
    "average_precision": _check_ones,
    "concordance": check_comparable,
}
