"""The table that a person reads after a fit: held-out scores beside those of the simplest possible model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from gpuboost.errors import InputError

Scores = dict[str, float]

PLACES = (1, 5, 10)


def scores(model: Any, x: Any, y: Any, weight: Any = None, group: Any = None, **offset: Any) -> Scores:
    """Log loss, accuracy and (two classes) AUC of a fitted classifier; RMSE, MAE and R2, or D2, of a regressor; the
    concordance index of one of censored times.

    Of several targets, y (n, k), means over them.
    With a group, (n,) query ids: NDCG, MAP and MRR of the order that the predictions give. offset: ``init_score``.
    """
    if group is not None:
        return _of_ranker(model, x, y, weight, group, **offset)
    of_classes = _of_labels if np.ndim(y) == 2 else _of_classifier
    judge = of_classes if hasattr(model, "classes_") else _of_regressor
    return judge(model, x, y, weight, **offset)


def _of_ranker(model: Any, x: Any, y: Any, weight: Any, group: Any, **offset: Any) -> Scores:
    from gpuboost import metrics
    from gpuboost.data.queries import query_start
    from gpuboost.losses.ranking import MOST_LABEL, LambdaMART

    asked = [metrics.mean_average_precision(), metrics.mean_reciprocal_rank()]
    if np.max(y) <= MOST_LABEL:
        asked = [*(metrics.ndcg(k) for k in PLACES), *asked]
    scores, start = np.asarray(model.predict(x, **offset), dtype=np.float64)[None], query_start(np.asarray(group))
    labels, weights = np.asarray(y, dtype=np.float64), None if weight is None else np.asarray(weight, dtype=np.float64)
    return {metric.name.upper(): metric(labels, scores, weights, LambdaMART(), start) for metric in asked}


def _of_classifier(model: Any, x: Any, y: Any, weight: Any, **offset: Any) -> Scores:
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    classes = np.asarray(model.classes_)
    p = np.asarray(model.predict_proba(x, **offset), dtype=np.float64)
    values = {
        "log loss": log_loss(y, p, labels=classes, sample_weight=weight),
        "accuracy": accuracy_score(y, classes[p.argmax(axis=1)], sample_weight=weight),
    }
    if len(classes) == 2 and len(np.unique(y)) == 2:
        values["AUC"] = roc_auc_score(np.asarray(y) == classes[1], p[:, 1], sample_weight=weight)
    return {name: float(value) for name, value in values.items()}


def _of_labels(model: Any, x: Any, y: Any, weight: Any, **offset: Any) -> Scores:
    """Means over the labels; accuracy is the share of rows of which all are right."""
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    p = np.asarray(model.predict_proba(x, **offset), dtype=np.float64)
    pairs = list(zip(y.T, p.T, strict=True))
    losses = [log_loss(label, chance, labels=[0, 1], sample_weight=weight) for label, chance in pairs]
    values = {"log loss": np.mean(losses), "accuracy": accuracy_score(y, p > 0.5, sample_weight=weight)}
    if all(len(np.unique(label)) == 2 for label in y.T):
        values["AUC"] = np.mean([roc_auc_score(label, chance, sample_weight=weight) for label, chance in pairs])
    return {name: float(value) for name, value in values.items()}


def _of_regressor(model: Any, x: Any, y: Any, weight: Any, **offset: Any) -> Scores:
    from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

    from gpuboost.losses.base import facts_of

    loss: Any = getattr(model, "loss_", None)
    if facts_of(loss).censored_target:
        return _of_times(model, x, y, weight, **offset)
    p = model.predict(x, **offset)
    if p.ndim > np.ndim(y):
        return {"D2 of the quantile loss": float(model.score(x, y, sample_weight=weight, **offset))}
    r2 = {"R2": float(r2_score(y, p, sample_weight=weight))} if len(p) > 1 else {}  # of one row there is none
    return {
        "RMSE": float(np.sqrt(mean_squared_error(y, p, sample_weight=weight))),
        "MAE": float(mean_absolute_error(y, p, sample_weight=weight)),
        **r2,
    }


def _of_times(model: Any, x: Any, y: Any, weight: Any, **offset: Any) -> Scores:
    """The concordance index; nothing where no two rows are comparable."""
    from gpuboost.metrics.checks import check_comparable

    try:
        for times in np.atleast_2d(np.asarray(y).T):
            check_comparable(times, weight)
    except InputError:
        return {}
    return {"concordance": float(model.score(x, y, sample_weight=weight, **offset))}


def baseline(y: Any, weight: Any, *, classify: bool) -> Any:
    """A fitted model that ignores the features: the shares of classes or labels, or the mean, which leaves documents in
    the order they come in."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    if classify and np.ndim(y) == 2:
        return SharesOfLabels(np.average(y, axis=0, weights=weight))
    model = DummyClassifier(strategy="prior") if classify else DummyRegressor(strategy="mean")
    return model.fit(np.zeros((len(y), 1)), y, sample_weight=weight)


@dataclass(frozen=True)
class SharesOfLabels:
    """A classifier of several labels by their shares in the training data, (k,)."""

    shares: NDArray[np.float64]

    @property
    def classes_(self) -> NDArray[np.intp]:
        return np.arange(len(self.shares))

    def predict_proba(self, x: Any) -> NDArray[np.float64]:
        return np.tile(self.shares, (x.shape[0], 1))


def table(title: str, columns: Mapping[str, Scores]) -> Table:
    """One line per score, one column per model."""
    drawn = Table("score", title=title, title_justify="left")
    for name in columns:
        drawn.add_column(name, justify="right")
    for name in next(iter(columns.values())):
        drawn.add_row(name, *(f"{column[name]:.5g}" for column in columns.values()))
    return drawn
