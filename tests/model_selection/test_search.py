"""Search of parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform, randint
from sklearn.model_selection import GridSearchCV, KFold
from support.examples import daily

import gpuboost as gb
from gpuboost.errors import InputError, RecipeError
from gpuboost.model_selection import in_threads

Data = tuple[np.ndarray, np.ndarray]
GRID = {"max_depth": [2, 4], "learning_rate": [0.05, 0.3]}


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**{"n_estimators": 20, "max_depth": 3, "eval_metric": "rmse", **params})


def file_of(model: Any, path: Path) -> bytes:
    model.save_model(path)
    return path.read_bytes()


@pytest.mark.parametrize("sampling", [None, gb.MVS(0.5)])
def test_trials_and_model_are_those_of_a_grid_search(sampling: Any, regression_data: Data, tmp_path: Path) -> None:
    model, folds = regressor(sampling=sampling, random_state=3), KFold(3)
    found = gb.search(model, GRID, *regression_data, cv=folds)
    expected = GridSearchCV(model, GRID, scoring="neg_root_mean_squared_error", cv=folds, refit=False)
    expected.fit(*regression_data)
    scores = {tuple(trial.params.items()): trial.curve[-1] for trial in found.trials}
    for params, score in zip(expected.cv_results_["params"], expected.cv_results_["mean_test_score"], strict=True):
        assert scores[tuple(params.items())] == pytest.approx(-score, rel=1e-12)
    assert found.best.score == min(trial.score for trial in found.trials)
    alone = regressor(sampling=sampling, random_state=3, **found.best_params_).fit(*regression_data)
    assert file_of(found.model, tmp_path / "a.json") == file_of(alone, tmp_path / "b.json")


@pytest.mark.parametrize(
    "space",
    daily(
        [
            {"learning_rate": [0.1, [0.3, 0.2, 0.1]]},
            {"random_state": [0, 1]},
            {"categorical_features": ["from_dtype", [0], None]},
            {"base_learner": [[gb.learners.Spline(), gb.learners.Linear()], None]},
            {"monotonic_cst": [None, [1, 0, 0, 0]]},
            {"interaction_cst": [None, [[0, 1], [2, 3]]]},
        ],
        3,
    ),
    ids=lambda space: next(iter(space)),
)
def test_values_may_be_lists_of_any_shape_and_seeds(space: dict[str, Any], regression_data: Data) -> None:
    x, y = np.c_[np.rint(regression_data[0][:, :1]), regression_data[0][:, :3]], regression_data[1]
    sampling = 0.5 if "random_state" in space else None
    model, folds = gb.GradientBoostingRegressor(n_estimators=3, sampling=sampling, random_state=3), KFold(2)
    found = gb.search(model, space, x, y, cv=folds)
    expected = GridSearchCV(model, space, scoring="neg_root_mean_squared_error", cv=folds, refit=False).fit(x, y)
    by_number = sorted(found.trials, key=lambda trial: trial.number)
    last = [trial.curve[-1] for trial in by_number]
    assert [trial.params for trial in by_number] == expected.cv_results_["params"]
    np.testing.assert_allclose(last, -expected.cv_results_["mean_test_score"], rtol=1e-12)
    assert found.model is not None


def test_a_setting_that_goes_on_has_the_curve_of_one_fit(regression_data: Data) -> None:
    model = regressor(n_estimators=40, sampling=0.5, n_jobs=2, random_state=0)
    whole = gb.search(model, GRID, *regression_data, cv=3, refit=False)
    halved = gb.search(model, GRID, *regression_data, cv=3, refit=False, budget=2.5, reduction=2)
    assert [(rung.settings, rung.rounds) for rung in halved.rungs] == [(4, 10), (2, 20), (1, 40)]
    assert sorted(trial.rounds for trial in halved.trials) == [10, 10, 20, 40]
    curves = {trial.number: trial.curve for trial in whole.trials}
    assert all(trial.curve == curves[trial.number][: trial.rounds] for trial in halved.trials)
    assert whole.model is None


def test_the_number_of_threads_changes_nothing(regression_data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_threads, "LEAST_CELLS", 0)
    space = {"max_depth": randint(2, 6), "learning_rate": loguniform(0.03, 0.3)}
    tables = [gb.search(regressor(n_jobs=n), space, *regression_data, cv=3, budget=3).table for n in (1, 3)]
    assert tables[0] == tables[1]


def test_the_table_makes_a_frame(regression_data: Data) -> None:
    spaces = [{"max_depth": [2]}, {"sampling": [gb.MVS(0.5)], "sampling__rate": [0.2, 0.4]}]
    found = gb.search(regressor(), spaces, *regression_data, cv=2, refit=False)
    frame = pd.DataFrame(found.table)
    assert frame["score"].is_monotonic_increasing
    assert sorted(frame["param_sampling__rate"].dropna()) == [0.2, 0.4]
    assert "3 trials, rmse" in repr(found)


def test_the_model_stays_as_it_was_and_settings_that_stopped_do_not_go_on(regression_data: Data) -> None:
    model = regressor(n_estimators=60, early_stopping_rounds=3)
    before = dict(vars(model))
    x, y = regression_data
    noise = np.random.default_rng(0).normal(size=len(y))  # nothing can be learned: the first rounds are the best
    found = gb.search(model, {"learning_rate": [1.0, 0.95, 0.9]}, x, noise, cv=3, budget=2)
    assert vars(model) == before
    assert [rung.rounds for rung in found.rungs] == [20, 60]
    assert {trial.rounds for trial in found.trials} == {20}


def test_a_metric_that_grows_is_best_at_its_greatest(binary_data: Data) -> None:
    model = gb.GradientBoostingClassifier(n_estimators=10, eval_metric=["auc", "logloss"])
    found = gb.search(model, GRID, *binary_data, cv=3, refit=False)
    assert found.metric == "auc"
    assert found.higher_is_better
    assert found.best.score == max(max(trial.curve) for trial in found.trials)


def test_frames_weights_and_offsets_are_those_of_fit(regression_data: Data) -> None:
    x, y = regression_data
    frame = pd.DataFrame(x).astype({0: "float32"}).rename(columns=str)
    frame["kind"] = pd.Categorical(np.array(["a", "b", "c"])[np.arange(len(y)) % 3])
    weight, offset = np.arange(len(y)) % 3 + 0.5, np.linspace(0.0, 1.0, len(y))
    learn, judge = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    found = gb.search(
        regressor(), {"max_depth": [3]}, frame, y, cv=[(learn, judge)], sample_weight=weight, init_score=offset
    )
    alone = regressor().fit(
        frame.iloc[learn],
        y[learn],
        sample_weight=weight[learn],
        init_score=offset[learn],
        eval_set=(frame.iloc[judge], y[judge], weight[judge], offset[judge]),
    )
    assert list(found.best.curve) == alone.evals_result_["validation_0"]["rmse"]
    assert found.model.feature_names_in_.tolist() == [*frame.columns]


def test_queries_stay_together_in_a_ranking() -> None:
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=(120, 4)), np.repeat(np.arange(12), 10)
    y = (x[:, 0] + rng.normal(size=120) > 0.5).astype(float)
    model = gb.GradientBoostingRanker(n_estimators=5)
    found = gb.search(model, {"max_depth": [2, 3]}, x, y, group=group, cv=3)
    assert found.metric.startswith("ndcg")
    held = gb.search(model, {"max_depth": [2, 3]}, gb.Dataset(x, y, group=group), cv=3)
    assert len(held.trials) == 2
    assert found.model.n_iter_ == found.best.n_estimators


def test_an_automatic_rate_is_that_of_the_most_rounds(regression_data: Data) -> None:
    found = gb.search(regressor(learning_rate="auto"), {"max_depth": [2, 3]}, *regression_data, cv=2)
    assert found.best_params_["learning_rate"] == found.model.learning_rate == 0.3  # 10 / 20, at most 0.3


def test_optuna_spaces(regression_data: Data) -> None:
    distributions = pytest.importorskip("optuna").distributions
    space = {"max_depth": distributions.IntDistribution(2, 5)}
    found = gb.search(regressor(), space, *regression_data, cv=2, budget=3)
    assert all(2 <= trial.params["max_depth"] <= 5 for trial in found.trials)
    assert len(found.trials) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"space": {}}, "space: has no parameter"),
        ({"space": 3}, "space: must be a mapping from parameters"),
        ({"space": {"max_depth": 3}}, "space: max_depth must be a list of values, a distribution"),
        ({"space": {"max_depth": []}}, "space: max_depth must be a list"),
        ({"space": {"max_depth": "34"}}, "space: max_depth must be a list"),
        ({"space": {"n_estimators": [3]}}, "space: n_estimators cannot be searched: the search finds the number"),
        ({"space": {"max_dept": [3]}}, "max_dept"),
        ({"space": {3: [3]}}, "space: names of parameters are text; got 3"),
        ({"space": {"loss": ["huber", "squared_error"]}, "metric": None}, "eval_metric: settings of several losses"),
        ({"budget": 0.5}, "budget: must be a finite number of 1 or more; got 0.5"),
        ({"budget": "3"}, "budget: must be a finite number of 1 or more; got '3'"),
        ({"reduction": 1}, "reduction: must be an integer of at least 2"),
        ({"cv": 1}, "cv: must be an integer of at least 2"),
        ({"cv": 1000}, "cv: each needs one of the 300 rows"),
        ({"random_state": -1}, "random_state: must be an integer"),
        ({"model": 3}, "model: must be an estimator of gpuboost; got int"),
        ({"model": regressor(n_estimators="auto")}, "n_estimators: the search finds the number of rounds from the"),
        ({"y": None}, "y: a target is needed"),
    ],
)
def test_wrong_arguments_are_refused(change: dict[str, Any], words: str, regression_data: Data) -> None:
    given = {"space": GRID, "model": regressor(eval_metric=change.pop("metric", "rmse")), "y": regression_data[1]}
    given |= change
    more = {name: given[name] for name in ("budget", "reduction", "cv", "random_state") if name in given}
    with pytest.raises((ValueError, TypeError), match=words):
        gb.search(given["model"], given["space"], regression_data[0], given["y"], **more)


def test_bins_of_a_dataset_cannot_be_searched(regression_data: Data) -> None:
    with pytest.raises(RecipeError, match="space: max_bins cannot be searched with a Dataset"):
        gb.search(regressor(), {"max_bins": [16, 64]}, gb.Dataset(*regression_data))


def test_bins_are_searched(regression_data: Data) -> None:
    found = gb.search(regressor(), {"max_bins": [4, 64]}, *regression_data, cv=2)
    assert found.trials[0].curve != found.trials[1].curve


@pytest.mark.parametrize("bad", [{"max_depth": [2, 0]}, {"learners": [0.5, 1.0]}, {"loss": ["huber", "no loss"]}])
def test_a_setting_that_no_fit_accepts_is_named_before_any_is_fitted(
    bad: dict[str, Any], regression_data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gb.GradientBoostingRegressor, "fit", lambda *_, **__: pytest.fail("fitted"))
    with pytest.raises(ValueError, match=f"{next(iter(bad))}: ") as error:
        gb.search(regressor(eval_metric="rmse"), bad, *regression_data, cv=2)
    assert error.value.__notes__ == ["The setting is number 1 of the search."]


def test_the_setting_and_the_fold_of_an_error_are_named(regression_data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise InputError("bad")

    monkeypatch.setattr(gb.GradientBoostingRegressor, "fit", fails)
    with pytest.raises(InputError, match="bad") as error:
        gb.search(regressor(), {"max_depth": [2, 3]}, *regression_data, cv=2)
    assert error.value.__notes__ == ["The setting is number 0 of the search, in fold 0."]


def test_a_metric_that_is_never_a_number_is_refused(regression_data: Data) -> None:
    def never(y: Any, predicted: Any) -> float:
        return float("nan")

    with pytest.raises(InputError, match="eval_metric: the mean of never is nan for every setting"):
        gb.search(regressor(eval_metric=never), GRID, *regression_data, cv=2)


def test_sequences_of_trees_have_the_best_number_of_rounds_each() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, (80, 2)).astype(float)
    y = (x[:, 0] % 2) + 0.5 * rng.normal(size=80)
    encoding = gb.OrderedTargetStatistics(permutations=2)
    model = gb.GradientBoostingRegressor(
        n_estimators=30, learning_rate=0.3, max_depth=3, categorical_features=[0], categorical_encoding=encoding,
        n_jobs=1, random_state=0,
    )  # fmt: skip
    result = gb.search(model, {"max_depth": [2, 3, 4], "reg_lambda": [0.0, 1.0, 3.0]}, x, y, cv=2, budget=4)
    assert [rung.rounds for rung in result.rungs] == [10, 30]
    assert {trial.rounds for trial in result.trials} == {10, 30}
    best = result.best
    assert best.n_estimators == 1 + int(np.argmin(best.curve)) < 30
    assert result.model.n_iter_ == 2 * best.n_estimators
    crossed = gb.cv(model, x, y, folds=2, refit=True)
    assert len(crossed.mean["rmse"]) == 60
    assert crossed.model.n_iter_ - 2 < crossed.best_iteration_ + 1 <= crossed.model.n_iter_ < 60
    uneven = model.set_params(sampling=0.3)  # whose curve rises here and there
    curve = gb.cv(uneven, x, y, folds=2).mean["rmse"]
    stops = [best_with_patience(curve, patience) for patience in (1, 2)]
    assert stops[0] != stops[1]
    assert gb.cv(uneven, x, y, folds=2, early_stopping_rounds=1).best_iteration_ == stops[1]


def best_with_patience(curve: list[float], patience: int) -> int:
    """The best place of a curve up to the first ``patience`` places in a row that are no new best."""
    best = 0
    for place, value in enumerate(curve):
        if value < curve[best]:
            best = place
        if place - best >= patience:
            break
    return best
