"""Sums of models, models as dictionaries, and slopes of models of lines."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import gpuboost as gb

SETTINGS: dict[str, Any] = {"n_estimators": 5, "max_depth": 2, "n_jobs": 1}


def test_the_sum_of_models_adds_their_scores(regression_data: Any, tmp_path: Any) -> None:
    result = gb.cv(gb.GradientBoostingRegressor(**SETTINGS), *regression_data, folds=3)
    x = regression_data[0]
    mean = gb.sum_models(result.models, [1 / 3] * 3)
    expected = np.mean([model.predict(x) for model in result.models], axis=0)
    np.testing.assert_allclose(mean.predict(x), expected, rtol=0, atol=1e-12)
    assert mean.n_iter_ == 15
    assert mean.guarantee_.kind == "not known"
    mean.save_model(tmp_path / "mean.json")
    np.testing.assert_array_equal(gb.load_model(tmp_path / "mean.json").predict(x), mean.predict(x))
    np.testing.assert_allclose(
        gb.sum_models(result.models[:2], [1, -1]).predict(x),
        result.models[0].predict(x) - result.models[1].predict(x),
        rtol=0,
        atol=1e-12,
    )


def test_classes_chains_and_effects_are_added_too() -> None:
    x, y = load_iris(return_X_y=True)
    data = gb.Dataset(x, y)
    parts = [gb.GradientBoostingClassifier(**SETTINGS, random_state=i, sampling=0.5).fit(data) for i in range(2)]
    expected = sum(part.decision_function(x) for part in parts)
    np.testing.assert_allclose(gb.sum_models(parts).decision_function(x), expected, rtol=0, atol=1e-12)
    for more in ({"langevin": gb.Langevin(), "random_state": 0}, {"base_learner": gb.learners.Spline()}):
        few = {"n_estimators": 4} | more
        models = [gb.GradientBoostingRegressor(**few, learning_rate=rate).fit(data) for rate in (0.1, 0.2)]
        total = sum(model.predict(x) for model in models)
        np.testing.assert_allclose(gb.sum_models(models).predict(x), total, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::gpuboost.OutsideTheoryWarning")
def test_a_sum_of_chains_has_no_draws(regression_data: Any, tmp_path: Any) -> None:
    data = gb.Dataset(*regression_data)
    settings = SETTINGS | {"langevin": gb.Langevin(), "posterior_samples": 2}
    chains = [gb.GradientBoostingRegressor(**settings, random_state=seed).fit(data) for seed in (0, 1)]
    mean = gb.sum_models(chains, [0.5, 0.5])
    mean.save_model(tmp_path / "mean.json")
    rows = regression_data[0][:3]
    for model in (mean, gb.load_model(tmp_path / "mean.json")):
        for method in ("predict_uncertainty", "predict_interval", "posterior_members"):
            with pytest.raises(gb.RecipeError, match="langevin: the rounds of a sum of models are no draws"):
                getattr(model, method)(rows)
    assert chains[0].predict_uncertainty(rows).mean.shape == (3,)


def test_models_that_do_not_fit_together_are_refused(regression_data: Any) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(**SETTINGS).fit(x, y)
    other = gb.GradientBoostingRegressor("huber", **SETTINGS).fit(x, y)
    with pytest.raises(gb.InputError, match=r"models: they must have the same loss; models\[1\]"):
        gb.sum_models([model, other])
    with pytest.raises(gb.InputError, match=r"same bins; models\[1\]"):
        gb.sum_models([model, gb.GradientBoostingRegressor(**SETTINGS).fit(x[:200], y[:200])])
    with pytest.raises(gb.InputError, match="weights: one finite number for each of 1 models"):
        gb.sum_models([model], [1, 2])
    for wrong in ([], model, [model, 3]):
        with pytest.raises(TypeError, match="models: a list of fitted estimators"):
            gb.sum_models(wrong)


def test_a_model_is_a_dictionary(regression_data: Any) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(**SETTINGS).fit(x, y)
    content = gb.to_dict(model)
    assert content["format"] == "gpuboost"
    assert len(content["trees"]) == 5
    np.testing.assert_array_equal(gb.loads(json.dumps(content)).predict(x), model.predict(x))
    with pytest.raises(TypeError, match="model: a fitted estimator"):
        gb.to_dict(3)


def test_slopes_of_lines_are_those_of_least_squares(rng: np.random.Generator) -> None:
    x = rng.integers(0, 20, size=(400, 3)).astype(float)
    y = 2.0 * x[:, 0] - 0.5 * x[:, 2] + 7.0
    model = gb.GradientBoostingRegressor(n_estimators=300, learning_rate=0.5, base_learner=gb.learners.Linear())
    np.testing.assert_allclose(model.fit(x, y).coef_, [2.0, 0.0, -0.5], atol=1e-4)
    iris, labels = load_iris(return_X_y=True)
    few = gb.GradientBoostingClassifier(n_estimators=4, base_learner=gb.learners.Linear()).fit(iris, labels)
    assert few.coef_.shape == (3, 4)
    assert not hasattr(gb.GradientBoostingRegressor(**SETTINGS).fit(x, y), "coef_")
    spline = gb.GradientBoostingRegressor(n_estimators=2, base_learner=gb.learners.Spline()).fit(x, y)
    with pytest.raises(AttributeError, match="coef_: it is of models of straight lines, and this one holds spline"):
        _ = spline.coef_
