"""Cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

import gpuboost as gb

Data = tuple[np.ndarray, np.ndarray]


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**{"n_estimators": 20, "max_depth": 3, **params})


def test_each_row_is_judged_by_a_model_that_has_not_seen_it(regression_data: Data) -> None:
    x, y = regression_data
    result = gb.cv(regressor(), x, y, folds=3)
    assert np.bincount(result.fold).tolist() == [100, 100, 100]
    for number, model in enumerate(result.models):
        own = result.fold == number
        assert model.fit_report_.rows == 200
        np.testing.assert_array_equal(result.predictions[own], model.predict(x[own]))


def test_the_curves_are_the_mean_of_the_folds(regression_data: Data) -> None:
    result = gb.cv(regressor(eval_metric=["mae", "rmse"]), *regression_data, folds=4)
    each = np.array([model.evals_result_["validation"]["mae"] for model in result.models])
    np.testing.assert_allclose(result.mean["mae"], each.mean(axis=0))
    np.testing.assert_allclose(result.std["mae"], each.std(axis=0))
    assert list(result.mean) == ["mae", "rmse"]
    assert result.best_iteration_ == int(np.argmin(result.mean["mae"]))
    assert "4 folds" in repr(result)


def test_it_is_repeatable_and_leaves_the_model_alone(regression_data: Data) -> None:
    model = regressor()
    first, second = (gb.cv(model, *regression_data) for _ in range(2))
    other = gb.cv(model, *regression_data, random_state=1)
    np.testing.assert_array_equal(first.predictions, second.predictions)
    assert (first.fold != other.fold).any()
    assert vars(model) == vars(regressor())


def test_classes_are_spread_evenly(multiclass_data: Data) -> None:
    x, y = multiclass_data
    result = gb.cv(gb.GradientBoostingClassifier(n_estimators=5), x, y, folds=5)
    assert result.predictions.shape == (300, 3)
    np.testing.assert_allclose(result.predictions.sum(axis=1), 1.0)
    for label in np.unique(y):
        counts = np.bincount(result.fold[y == label])
        assert counts.max() - counts.min() <= 1


def test_a_metric_that_grows_is_best_at_its_greatest(binary_data: Data) -> None:
    model = gb.GradientBoostingClassifier(n_estimators=20, eval_metric="auc")
    result = gb.cv(model, *binary_data, folds=3)
    assert result.best_iteration_ == int(np.argmax(result.mean["auc"]))


def test_early_stopping_ends_the_curves_and_refit_takes_the_best_round(binary_data: Data) -> None:
    rule = gb.callbacks.EarlyStopping(5)
    for params in ({"early_stopping_rounds": 5}, {"callbacks": [rule]}):
        model = gb.GradientBoostingClassifier(n_estimators=300, learning_rate=0.3, **params)
        result = gb.cv(model, *binary_data, folds=3, refit=True)
        rounds = [len(one.evals_result_["validation"]["logloss"]) for one in result.models]
        assert len(result.mean["logloss"]) == min(rounds) < 300
        assert result.model.n_iter_ == result.best_iteration_ + 1
        assert result.model.fit_report_.rows == 300
        assert result.model.evals_result_ == {}


def test_a_dataset_brings_target_weights_and_groups(regression_data: Data) -> None:
    x, y = regression_data
    weight = np.arange(300) % 2
    group = np.repeat(np.arange(30), 10)
    result = gb.cv(regressor(), gb.Dataset(x, y, weight=weight, group=group), folds=3)
    assert all(len(set(result.fold[group == one])) == 1 for one in range(30))
    assert [model.fit_report_.rows for model in result.models] == [100, 100, 100]
    arrays = gb.cv(regressor(), x, y, sample_weight=weight, folds=KFold(3))
    data = gb.cv(regressor(), gb.Dataset(x, y, weight=weight), folds=KFold(3))
    np.testing.assert_array_equal(arrays.predictions, data.predictions)


def test_categorical_features_of_the_model_are_those_of_the_folds(regression_data: Data) -> None:
    x, y = np.c_[np.rint(regression_data[0][:, :1]), regression_data[0]], regression_data[1]
    model = gb.GradientBoostingRegressor(n_estimators=2, categorical_features=[0], random_state=0)
    result = gb.cv(model, x, y, folds=2, refit=True)
    assert result.model.columns_.is_categorical.tolist() == [True, *[False] * regression_data[0].shape[1]]
    same = gb.Dataset(x, y, categorical_features=[0])
    assert gb.dumps(model.fit(same)) == gb.dumps(model.fit(x, y))
    with pytest.raises(gb.RecipeError, match="categorical_features: a Dataset has its columns decided"):
        model.fit(gb.Dataset(x, y))


def test_folds_of_ones_own(regression_data: Data) -> None:
    x, y = regression_data
    result = gb.cv(regressor(), x, y, folds=TimeSeriesSplit(3))
    assert np.isnan(result.predictions[:75]).all()
    assert np.isfinite(result.predictions[75:]).all()
    assert (result.fold[:75] == -1).all()
    one = gb.cv(regressor(), x, y, folds=[(np.arange(200), np.arange(200, 300))])
    assert one.std["rmse"] == [0.0] * 20


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, y: gb.cv("model", x, y), "model"),
        (lambda x, y: gb.cv(regressor(), x), "y: a target"),
        (lambda x, y: gb.cv(regressor(), gb.Dataset(x, y), y), "data: a Dataset"),
        (lambda x, y: gb.cv(regressor(), x, y, folds=1), "folds"),
        (lambda x, y: gb.cv(regressor(), x, y, folds=[]), "folds"),
        (lambda x, y: gb.cv(regressor(), x, y, folds=None), "folds"),
        (lambda x, y: gb.cv(regressor(n_estimators=0), x, y), "n_estimators"),
        (lambda x, y: gb.cv(regressor(validation_fraction=0.1), x, y), "validation_fraction"),
    ],
)
def test_contradictions_are_refused(regression_data: Data, call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(*regression_data)


@pytest.mark.parametrize("part", [np.arange(250, 350), np.arange(-1, 50), np.arange(300) < 50, np.array([], np.intp)])
def test_folds_are_of_rows_that_there_are(part: np.ndarray, regression_data: Data) -> None:
    with pytest.raises(gb.RecipeError, match=r"^folds: row numbers are whole, from 0 to 299, .* fold 0 are not"):
        gb.cv(regressor(), *regression_data, folds=[(np.arange(100, 200), part)])


def test_what_a_splitter_refuses_is_said_with_the_way_out(regression_data: Data) -> None:
    x, y = regression_data
    with pytest.raises(gb.RecipeError, match=r"^folds: GroupKFold says: .*'groups'.*\. Pass group=: the group of each"):
        gb.cv(regressor(), x, y, folds=GroupKFold(3))
    with pytest.raises(gb.RecipeError, match=r"^cv: StratifiedKFold says: Supported target types"):
        gb.search(regressor(), {"max_depth": [2]}, x, y, cv=StratifiedKFold(3))
    group = np.arange(300) // 10
    by_group = gb.cv(regressor(), x, y, folds=GroupKFold(3), group=group)
    assert all(len(np.unique(by_group.fold[group == one])) == 1 for one in range(30))


@pytest.mark.parametrize("labels", [np.array([0, 1, 2]), np.array(["no", "yes", "late"])], ids=["numbers", "text"])
def test_a_class_that_a_fold_cannot_learn_is_named(labels: np.ndarray) -> None:
    x = np.arange(80.0)[:, None]
    y = labels[np.where(np.arange(80) >= 70, 2, np.arange(80) % 2)]  # the last class comes late
    model = gb.GradientBoostingClassifier(n_estimators=2, n_jobs=1)
    told = f"the training rows of each fold must .*; those of fold 0 have none of the 10 of class {labels[2]}"
    with pytest.raises(gb.InputError, match=f"^folds: {told}"):
        gb.cv(model, x, y, folds=TimeSeriesSplit(3))
    with pytest.raises(gb.InputError, match=f"^cv: {told}"):
        gb.search(model, {"max_depth": [1, 2]}, x, y, cv=TimeSeriesSplit(3))
    within = [(np.arange(40), np.arange(40, 60)), (np.arange(60), np.arange(60, 70))]  # no fold has that class
    assert gb.cv(model, x, y, folds=within).predictions.shape[0] == 80
