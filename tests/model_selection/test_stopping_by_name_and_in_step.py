"""Early stopping by a named metric on a named set, and of all folds of a cross-validation together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import gpuboost as gb

EarlyStopping = gb.callbacks.EarlyStopping
SETTINGS: dict[str, Any] = {"n_estimators": 40, "max_depth": 4, "learning_rate": 0.4, "n_jobs": 1, "random_state": 0}


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**SETTINGS | params)


def test_a_named_metric_of_a_named_set_stops_the_fit(regression_data: Any) -> None:
    x, y = regression_data
    rng = np.random.default_rng(0)
    sets = {"first": (x[:80], y[:80] + rng.normal(size=80)), "second": (x[80:160], y[80:160])}
    rule = EarlyStopping(3, 0.001, metric="mae", data="first")
    assert repr(rule) == "EarlyStopping(rounds=3, min_delta=0.001, metric='mae', data='first')"
    model = regressor(eval_metric=["rmse", "mae"], callbacks=[rule]).fit(x[160:], y[160:], eval_set=sets)
    curve = model.evals_result_["first"]["mae"]
    assert len(curve) < 40
    best = model.best_iteration_
    assert model.best_score_ == curve[best]
    assert len(curve) == best + 4
    assert all(value > curve[best] - 0.001 for value in curve[best:])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "metric",
            r"metric: early stopping by 'auc', of which the fit has none; "
            r"it has \['rmse'\]",
        ),
        ("data", r"data: .* it has \['validation_0'\]"),
    ],
)
def test_names_that_the_fit_lacks_are_refused(regression_data: Any, name: str, words: str) -> None:
    x, y = regression_data
    model = regressor(callbacks=[EarlyStopping(3, **{name: "auc"})])
    with pytest.raises(gb.RecipeError, match=words):
        model.fit(x, y, eval_set=(x, y))
    with pytest.raises(gb.RecipeError, match=f"{name}: must be a name or None; got 3"):
        EarlyStopping(3, **{name: 3})


def test_all_folds_stop_where_their_mean_is_best(regression_data: Any) -> None:
    x, y = regression_data
    y = y + np.random.default_rng(0).normal(size=len(y))
    whole = gb.cv(regressor(), x, y, folds=3)
    mean = np.array(whole.mean["rmse"])
    records = [i for i in range(40) if mean[i] == mean[: i + 1].min()]
    best = next(i for i in records if (mean[i + 1 : i + 6] >= mean[i]).all())
    assert 0 < best < 30
    result = gb.cv(regressor(), x, y, folds=3, early_stopping_rounds=5, train_curve=True, refit=True)
    assert result.best_iteration_ == best
    np.testing.assert_array_equal(result.mean["rmse"], mean[: best + 1])
    for fold_model, other in zip(result.models, whole.models, strict=True):
        assert fold_model.n_iter_ == best + 1
        np.testing.assert_array_equal(fold_model.predict(x), other.predict(x, n_rounds=best + 1))
    assert result.model.n_iter_ == best + 1
    training = [np.sqrt(np.mean((y[own] - m.predict(x[own])) ** 2)) for m, own in _training(result)]
    assert result.train_mean["rmse"][-1] == pytest.approx(np.mean(training), rel=1e-12)
    assert len(result.train_std["rmse"]) == best + 1
    assert whole.train_mean == {}


def _training(result: Any) -> Any:
    return [(model, result.fold != number) for number, model in enumerate(result.models)]


@pytest.mark.slow
def test_parts_of_fits_in_step_are_those_of_one_fit(regression_data: Any) -> None:
    x, y = regression_data
    model = regressor(n_estimators=120, learning_rate=0.05, sampling=0.7)
    parts = gb.cv(model, x, y, folds=2, early_stopping_rounds=3)
    for fold_model, other in zip(parts.models, gb.cv(model, x, y, folds=2).models, strict=True):
        rounds = fold_model.n_iter_
        assert rounds > 50
        np.testing.assert_array_equal(fold_model.predict(x), other.predict(x, n_rounds=rounds))


def test_a_rule_of_the_callbacks_names_the_metric_in_step(binary_data: Any) -> None:
    x, y = binary_data
    rule = EarlyStopping(1, metric="auc")
    model = gb.GradientBoostingClassifier(**SETTINGS, eval_metric=["logloss", "auc"], callbacks=[rule])
    result = gb.cv(model, x, y, folds=2, early_stopping_rounds=4)
    assert result.best_iteration_ == int(np.argmax(result.mean["auc"]))
    with pytest.raises(gb.InputError, match="metric: early stopping by 'f2'"):
        gb.cv(model.set_params(callbacks=[EarlyStopping(1, metric="f2")]), x, y, early_stopping_rounds=4)


def test_areas_within_queries_are_means_of_scikit_learns(rng: np.random.Generator) -> None:
    sizes = rng.integers(1, 12, 30)
    group = np.repeat(np.arange(30), sizes)
    x, y = rng.normal(size=(len(group), 3)), rng.integers(0, 3, len(group))
    weight = rng.integers(1, 4, 30)[group].astype(float)
    ranker = gb.GradientBoostingRanker(n_estimators=3, max_depth=2, eval_metric=["auc", "average_precision", "ndcg@3"])
    ranker.fit(x, y, group=group, eval_set=(x, y, group, weight))
    scores = ranker.predict(x)
    own = [(y[group == q] > 0, scores[group == q], weight[group == q][0]) for q in range(30)]
    areas = [(roc_auc_score(labels, f), w) for labels, f, w in own if 0 < labels.sum() < len(labels)]
    precisions = [(average_precision_score(labels, f), w) for labels, f, w in own if labels.any()]
    seen = ranker.evals_result_["validation_0"]
    expected = np.average(np.transpose(areas)[0], weights=np.transpose(areas)[1])
    assert seen["auc"][-1] == pytest.approx(expected, rel=1e-12)
    expected = np.average(np.transpose(precisions)[0], weights=np.transpose(precisions)[1])
    assert seen["average_precision"][-1] == pytest.approx(expected, rel=1e-12)
    assert sorted(seen) == ["auc", "average_precision", "ndcg@3"]
