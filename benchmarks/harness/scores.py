"""Scores of held-out predictions. The first score of a task decides, unless the case names another one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuboost.benchmarks.harness.store import Array, Data

HIGHER_IS_BETTER = frozenset({"auc", "accuracy", "ndcg@10", "ndcg@5", "map", "mrr"})


def score(data: Data, predicted: Array) -> dict[str, float]:
    """predicted: (n,) probabilities or values, or (n, classes) probabilities, of the held-out rows."""
    p = np.asarray(predicted, dtype=np.float64)
    if data.task == "ranking":
        return _ranking(data.y_test, p, data.group_test)
    rows = _BY_TASK[data.task](data.y_test, p)
    scores = {name: float(np.average(values, weights=data.weight_test)) for name, values in rows.items()}
    if "rmse" in scores:
        scores["rmse"] **= 0.5
    if data.task == "binary":
        scores["auc"] = _area(data.y_test, p, data.weight_test)
    return scores


def by_row(data: Data, predicted: Array, name: str) -> Array:
    """(n,) values of the held-out rows whose mean is the named score, and whose spread is that of the score.

    To first order: row i holds what the score would be, had all rows moved it as i does. So the mean of the difference
    of two libraries' is the difference of their scores, and its standard error is that of paired rows.
    """
    losses = _BY_TASK[data.task](data.y_test, np.asarray(predicted, dtype=np.float64))[name]
    weight = np.ones(len(losses)) if data.weight_test is None else data.weight_test / np.mean(data.weight_test)
    mean = np.average(losses, weights=weight)
    moved = weight * (losses - mean)
    return np.sqrt(mean) + moved / (2.0 * np.sqrt(mean)) if name == "rmse" else mean + moved


def _area(y: Array, p: Array, weight: Array | None) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, p, sample_weight=weight))


def _binary(y: Array, p: Array) -> dict[str, Array]:
    inside = np.clip(p, 1e-15, 1 - 1e-15)
    return {"logloss": -np.where(y > 0, np.log(inside), np.log1p(-inside)), "accuracy": (p >= 0.5) == (y > 0)}


def _multiclass(y: Array, p: Array) -> dict[str, Array]:
    label = y.astype(np.int64)
    likelihood = np.clip(p[np.arange(len(p)), label], 1e-15, 1.0)
    return {"logloss": -np.log(likelihood), "accuracy": p.argmax(axis=1) == label}


def _regression(y: Array, p: Array) -> dict[str, Array]:
    return {"rmse": (y - p) ** 2, "mae": np.abs(y - p)}


def _poisson(y: Array, p: Array) -> dict[str, Array]:
    p = np.maximum(p, 1e-12)
    surprise = np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / p), 0.0)
    return {"deviance": 2 * (surprise - y + p)}


_BY_TASK: dict[str, Callable[[Array, Array], dict[str, Array]]] = {
    "binary": _binary,
    "multiclass": _multiclass,
    "regression": _regression,
    "poisson": _poisson,
}
"""(y, p) -> (n,) losses by the name of the score that is their mean; of "rmse", that is its root."""


def by_query(data: Data, predicted: Array) -> list[float]:
    """NDCG@10 of each held-out query of a ranking, for the error of a mean and of differences."""
    lists = _lists(data.y_test, np.asarray(predicted, dtype=np.float64), data.group_test)
    return [round(_ndcg(labels, 10), 6) for labels in lists]


def _ranking(y: Array, p: Array, group: Array) -> dict[str, float]:
    """Means over queries; one in which there is nothing to find counts 1. By definition, and not by gpuboost's own
    metrics, so that no library is its own judge."""
    lists = _lists(y, p, group)
    return {
        "ndcg@10": float(np.mean([_ndcg(labels, 10) for labels in lists])),
        "ndcg@5": float(np.mean([_ndcg(labels, 5) for labels in lists])),
        "map": float(np.mean([_average_precision(labels > 0) for labels in lists])),
        "mrr": float(np.mean([1 / (1 + np.argmax(labels > 0)) if labels.any() else 1.0 for labels in lists])),
    }


def _lists(y: Array, p: Array, group: Array) -> list[Array]:
    """The labels of each query, best score first, ties as they stand."""
    starts = np.flatnonzero(np.diff(group)) + 1
    pairs = zip(np.split(y, starts), np.split(p, starts), strict=True)
    return [labels[np.argsort(-scores, kind="stable")] for labels, scores in pairs]


def _ndcg(labels: Array, k: int) -> float:
    discounts = 1 / np.log2(np.arange(2, min(k, len(labels)) + 2))
    dcg, best = ((2.0 ** ranked[:k] - 1) @ discounts for ranked in (labels, np.sort(labels)[::-1]))
    return float(dcg / best) if best > 0 else 1.0


def _average_precision(relevant: Array) -> float:
    places = np.flatnonzero(relevant) + 1
    return float(np.mean(np.arange(1, len(places) + 1) / places)) if len(places) else 1.0
