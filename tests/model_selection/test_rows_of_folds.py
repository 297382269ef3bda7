"""Sampling rules of one number for each row, in folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold

import gpuboost as gb

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Y = X[:, 0] + 0.3 * rng.normal(size=120)
NUMBERS = rng.uniform(0.2, 1.0, 120)
RULES = [gb.RowProbabilities(NUMBERS), gb.ImportanceSampling(0.5, factor=NUMBERS)]


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**{"n_estimators": 6, "max_depth": 2, "n_jobs": 1, "random_state": 0, **params})


def of_fold(rule: Any, learn: np.ndarray) -> Any:
    if isinstance(rule, gb.RowProbabilities):
        return gb.RowProbabilities(NUMBERS[learn])
    return gb.ImportanceSampling(0.5, factor=NUMBERS[learn])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("early_stopping_rounds", [None, 50])
def test_each_fold_of_cv_has_the_numbers_of_its_rows(rule: Any, early_stopping_rounds: int | None) -> None:
    model = regressor(sampling=rule)
    data = gb.Dataset(X, Y)
    found = gb.cv(model, data, folds=KFold(3), refit=True, early_stopping_rounds=early_stopping_rounds)
    for fold_model, (learn, _) in zip(found.models, KFold(3).split(X), strict=True):
        alone = regressor(sampling=of_fold(rule, learn)).fit(data.take(learn))
        np.testing.assert_array_equal(fold_model.predict(X), alone[: fold_model.n_iter_].predict(X))
        assert fold_model.sampling.n_rows == len(learn)
    assert found.model is not None
    assert found.model.sampling.n_rows == model.sampling.n_rows == 120


@pytest.mark.parametrize("given", [(X, Y), (gb.Dataset(X, Y),)])
def test_each_fold_of_a_search_has_the_numbers_of_its_rows(given: tuple[Any, ...]) -> None:
    model = regressor(eval_metric="rmse")
    found = gb.search(model, {"sampling": RULES}, *given, cv=KFold(3))
    for trial in found.trials:
        curves = []
        for learn, judge in KFold(3).split(X):
            rows = (X[learn], Y[learn]) if len(given) == 2 else (given[0].take(learn),)
            judged = (X[judge], Y[judge]) if len(given) == 2 else given[0].take(judge)
            alone = regressor(eval_metric="rmse", sampling=of_fold(trial.params["sampling"], learn))
            curves.append(alone.fit(*rows, eval_set=judged).evals_result_["validation_0"]["rmse"])
        assert trial.curve == pytest.approx(np.mean(curves, axis=0).tolist(), rel=1e-12)
    assert found.model is not None
    assert found.model.sampling.n_rows == 120


def test_a_posterior_is_chosen_on_the_numbers_of_the_rows_that_it_learns_from() -> None:
    model = regressor(
        sampling=gb.RowProbabilities(NUMBERS), langevin=gb.Langevin(noise_scale="weight"), n_estimators=40
    )
    with pytest.warns(gb.OutsideTheoryWarning, match="the chain"):
        fit = gb.fit_posterior(model, X, Y, temperatures=[1.0], prior_variances=[1.0])
    assert fit.model.sampling.n_rows == 120


def test_another_number_of_rows_is_that_of_all_rows() -> None:
    model = regressor(sampling=gb.RowProbabilities(NUMBERS[:90]))
    for call in (lambda: gb.cv(model, X, Y), lambda: gb.search(model, {"max_depth": [1]}, X, Y)):
        with pytest.raises(ValueError, match=r"numbers for 90 rows; X has 120\.(?! In cross)"):
            call()


def test_a_grid_search_of_scikit_learn_names_the_functions_that_take_the_numbers() -> None:
    model = regressor(sampling=gb.RowProbabilities(NUMBERS))
    search = GridSearchCV(model, {"max_depth": [1]}, error_score="raise")
    with pytest.raises(ValueError, match=r"X has 96\. In cross-validation use gb\.cv or gb\.search"):
        search.fit(X, Y)
