"""How good held-out predictions are. The first score of a task is the one that decides unless a case says otherwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuboost.benchmarks.store import Array, Data

HIGHER_IS_BETTER = frozenset({"auc", "accuracy"})


def score(data: Data, predicted: Array) -> dict[str, float]:
    """predicted: (n,) probabilities or values, or (n, classes) probabilities, of the held-out rows."""
    p = np.asarray(predicted, dtype=np.float64)
    found = _BY_TASK[data.task](data.y_test, p, data.weight_test)
    return {name: float(value) for name, value in found.items()}


def _binary(y: Array, p: Array, weight: Array | None) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    p = np.clip(p, 1e-15, 1 - 1e-15)
    return {
        "logloss": np.average(-np.where(y > 0, np.log(p), np.log1p(-p)), weights=weight),
        "auc": roc_auc_score(y, p, sample_weight=weight),
        "accuracy": np.average((p >= 0.5) == (y > 0), weights=weight),
    }


def _multiclass(y: Array, p: Array, weight: Array | None) -> dict[str, float]:
    label = y.astype(np.int64)
    own = np.clip(p[np.arange(len(p)), label], 1e-15, 1.0)
    return {
        "logloss": np.average(-np.log(own), weights=weight),
        "accuracy": np.average(p.argmax(axis=1) == label, weights=weight),
    }


def _regression(y: Array, p: Array, weight: Array | None) -> dict[str, float]:
    return {
        "rmse": np.sqrt(np.average((y - p) ** 2, weights=weight)),
        "mae": np.average(np.abs(y - p), weights=weight),
    }


def _poisson(y: Array, p: Array, weight: Array | None) -> dict[str, float]:
    p = np.maximum(p, 1e-12)
    surprise = np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / p), 0.0)
    return {"deviance": np.average(2 * (surprise - y + p), weights=weight)}


_BY_TASK: dict[str, Callable[[Array, Array, Array | None], dict[str, float]]] = {
    "binary": _binary,
    "multiclass": _multiclass,
    "regression": _regression,
    "poisson": _poisson,
}
