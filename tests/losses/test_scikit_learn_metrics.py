"""Metric functions and scorers of scikit-learn as ``eval_metric``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn import metrics
from sklearn.metrics import get_scorer, make_scorer

import gpuboost as gb
from gpuboost.errors import InputError

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
TWO = np.where(X[:, 0] + rng.normal(size=300) > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + rng.normal(size=300), [-0.5, 0.5])
WEIGHT = rng.uniform(0.5, 2.0, 100)


def watched(kind: Any, y: Any, metric: Any) -> tuple[Any, str, float, tuple[Any, Any]]:
    """The fitted model, the metric's name, its value in the last round, and the rows it was evaluated on."""
    held_out = X[200:], y[200:]
    model = kind(n_estimators=4, n_jobs=1, eval_metric=metric, early_stopping_rounds=50, learning_rate=0.3)
    model.fit(X[:200], y[:200], eval_set=[(*held_out, WEIGHT)])
    ((name, values),) = model.evals_result_["validation_0"].items()
    best = model.best_iteration_
    return model, name, values[best], held_out


@pytest.mark.parametrize(
    ("function", "name", "y"),
    [
        (partial(metrics.f1_score, pos_label=1), "f1_score", TWO),
        (metrics.f1_score, "f1_score", TWO),
        (metrics.matthews_corrcoef, "matthews_corrcoef", THREE),
        (metrics.zero_one_loss, "zero_one_loss", THREE),
        (partial(metrics.fbeta_score, beta=2, average="macro"), "fbeta_score(beta=2, average=macro)", THREE),
    ],
)
def test_functions_of_labels_get_labels(function: Any, name: str, y: Any) -> None:
    model, called, value, (x, true) = watched(gb.GradientBoostingClassifier, y, function)
    assert called == name
    codes = np.searchsorted(model.classes_, true), np.searchsorted(model.classes_, model.predict(x))
    assert value == pytest.approx(function(*codes, sample_weight=WEIGHT), abs=1e-12)


def test_more_is_better_by_the_metric() -> None:
    for metric, best in ((metrics.matthews_corrcoef, max), (metrics.zero_one_loss, min), (metrics.log_loss, min)):
        model = gb.GradientBoostingClassifier(n_estimators=8, n_jobs=1, eval_metric=metric, early_stopping_rounds=50)
        model.fit(X[:200], TWO[:200], eval_set=[(X[200:], TWO[200:])])
        ((_, values),) = model.evals_result_["validation_0"].items()
        assert model.best_score_ == best(values)


@pytest.mark.parametrize("scorer", ["roc_auc", "neg_log_loss", "accuracy", "average_precision", "neg_brier_score"])
def test_scorers_of_two_classes(scorer: str) -> None:
    numbers = (TWO == "yes").astype(int)
    model, _, value, (x, true) = watched(gb.GradientBoostingClassifier, numbers, get_scorer(scorer))
    assert value == pytest.approx(get_scorer(scorer)(model, x, true, sample_weight=WEIGHT), abs=1e-9)


@pytest.mark.parametrize("scorer", ["roc_auc_ovr", "f1_macro", "balanced_accuracy"])
def test_scorers_of_several_classes(scorer: str) -> None:
    model, _, value, (x, true) = watched(gb.GradientBoostingClassifier, THREE, get_scorer(scorer))
    assert value == pytest.approx(get_scorer(scorer)(model, x, true, sample_weight=WEIGHT), abs=1e-9)


@pytest.mark.parametrize("scorer", [get_scorer("r2"), make_scorer(metrics.max_error, greater_is_better=False)])
def test_scorers_of_regressions(scorer: Any) -> None:
    y = X[:, 0] + rng.normal(size=300)
    model, name, value, (x, true) = watched(gb.GradientBoostingRegressor, y, scorer)
    weights = {"sample_weight": WEIGHT} if name == "r2_score" else {}
    assert name in ("r2_score", "neg_max_error")
    assert value == pytest.approx(scorer(model, x, true, **weights), abs=1e-9)


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"eval_metric: f1_score judges predicted classes"):
        watched(gb.GradientBoostingRegressor, X[:, 0], metrics.f1_score)
    with pytest.raises(InputError, match=r"eval_metric: f1_score cannot judge these predictions: Target is multiclass"):
        watched(gb.GradientBoostingClassifier, THREE, metrics.f1_score)
    with pytest.raises(InputError, match=r"roc_auc_score cannot judge"):
        watched(gb.GradientBoostingClassifier, THREE, get_scorer("roc_auc"))


def test_two_scorers_of_one_function_have_two_names_and_the_model_is_saved(tmp_path: Any) -> None:
    both = [make_scorer(metrics.f1_score), make_scorer(metrics.f1_score, average="macro")]
    model = gb.GradientBoostingClassifier(n_estimators=2, n_jobs=1, eval_metric=both)
    model.fit(X, TWO, eval_set=[(X, TWO)])
    assert list(model.evals_result_["validation_0"]) == ["f1_score", "f1_score(average=macro)"]
    model.save_model(tmp_path / "m.json")
    assert (gb.load_model(tmp_path / "m.json").predict(X) == model.predict(X)).all()
