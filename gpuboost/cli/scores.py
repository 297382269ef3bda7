"""The table that a person reads after a fit: held-out scores beside those of the simplest possible model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.table import Table

Scores = dict[str, float]


def scores(model: Any, x: Any, y: Any, weight: Any = None) -> Scores:
    """Log loss, accuracy and (two classes) AUC of a fitted classifier; RMSE, MAE and R2 of a regressor."""
    return _of_classifier(model, x, y, weight) if hasattr(model, "classes_") else _of_regressor(model, x, y, weight)


def _of_classifier(model: Any, x: Any, y: Any, weight: Any) -> Scores:
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    classes = np.asarray(model.classes_)
    p = np.asarray(model.predict_proba(x), dtype=np.float64)
    found = {
        "log loss": log_loss(y, p, labels=classes, sample_weight=weight),
        "accuracy": accuracy_score(y, classes[p.argmax(axis=1)], sample_weight=weight),
    }
    if len(classes) == 2 and len(np.unique(y)) == 2:
        found["AUC"] = roc_auc_score(np.asarray(y) == classes[1], p[:, 1], sample_weight=weight)
    return {name: float(value) for name, value in found.items()}


def _of_regressor(model: Any, x: Any, y: Any, weight: Any) -> Scores:
    from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

    p = model.predict(x)
    return {
        "RMSE": float(np.sqrt(mean_squared_error(y, p, sample_weight=weight))),
        "MAE": float(mean_absolute_error(y, p, sample_weight=weight)),
        "R2": float(r2_score(y, p, sample_weight=weight)),
    }


def baseline(y: Any, weight: Any, *, classify: bool) -> Any:
    """A fitted model that ignores the features: the shares of the classes, or the mean."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    model = DummyClassifier(strategy="prior") if classify else DummyRegressor(strategy="mean")
    return model.fit(np.zeros((len(y), 1)), y, sample_weight=weight)


def table(title: str, columns: Mapping[str, Scores]) -> Table:
    """One line per score, one column per model."""
    drawn = Table("score", title=title, title_justify="left")
    for name in columns:
        drawn.add_column(name, justify="right")
    for name in next(iter(columns.values())):
        drawn.add_row(name, *(f"{found[name]:.5g}" for found in columns.values()))
    return drawn
