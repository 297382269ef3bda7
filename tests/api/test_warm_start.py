"""Fits that go on: ``warm_start=True`` as scikit-learn means it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gpuboost as gb

FEW: dict[str, Any] = {"max_depth": 3, "n_jobs": 1, "random_state": 0}


def model_bytes(model: Any) -> str:
    """The model file without the facts of its fits."""
    content = gb.to_dict(model)
    for name in ("guarantee", "chain"):
        content["extra"].pop(name, None)
    return str(content)


def fitted_in_steps(model: Any, steps: list[int], *data: Any, **more: Any) -> Any:
    for rounds in steps:
        model.set_params(n_estimators=rounds).fit(*data, **more)
    return model


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"sampling": gb.MVS(0.5), "learners": 2, "random_strength": 1.0},
        {"sampling": gb.ImportanceSampling(0.5, variance_control="node"), "loss": "huber"},
        {"langevin": gb.Langevin(), "learning_rate": 0.01},
    ],
    ids=["plain", "random", "control variates", "langevin"],
)
@pytest.mark.filterwarnings("ignore::gpuboost.OutsideTheoryWarning")
def test_steps_of_a_fit_are_one_long_fit(params: Any, regression_data: Any) -> None:
    model = gb.GradientBoostingRegressor(**FEW | params, warm_start=True)
    fitted_in_steps(model, [4, 4, 7, 12], *regression_data)
    assert model.n_iter_ == 12
    whole = gb.GradientBoostingRegressor(**FEW | params, n_estimators=12).fit(*regression_data)
    assert model_bytes(model) == model_bytes(whole)


def test_classes_queries_and_statistics_go_on(rng: np.random.Generator) -> None:
    pd = pytest.importorskip("pandas")
    code = rng.integers(0, 20, 200)
    frame = pd.DataFrame({"c": pd.Categorical([f"c{i}" for i in code]), "x": rng.normal(size=200)})
    labels, group = code % 3, np.repeat(np.arange(20), 10)
    encoding = gb.OrderedTargetStatistics(permutations=2)
    classifier = gb.GradientBoostingClassifier(**FEW, categorical_encoding=encoding)
    ranker = gb.GradientBoostingRanker(**FEW)
    for model, more in ((classifier, {}), (ranker, {"group": group})):
        whole = clone(model).set_params(n_estimators=6).fit(frame, labels, **more)
        warm = fitted_in_steps(clone(model).set_params(warm_start=True), [2, 6], frame, labels, **more)
        assert model_bytes(warm) == model_bytes(whole)


def test_watched_rounds_are_those_of_the_whole_fit(regression_data: Any) -> None:
    x, y = regression_data
    data: Any = (x[:200], y[:200], None, (x[200:], y[200:]))
    warm = fitted_in_steps(gb.GradientBoostingRegressor(**FEW, warm_start=True), [3, 8], *data)
    whole = gb.GradientBoostingRegressor(**FEW, n_estimators=8).fit(*data)
    assert warm.evals_result_ == whole.evals_result_
    warm.set_params(n_estimators=300, early_stopping_rounds=3).fit(*data)
    assert len(warm.evals_result_["validation_0"]["rmse"]) == warm.best_iteration_ + 4
    assert warm.n_iter_ == warm.best_iteration_ + 1 > 8


def test_the_same_number_does_nothing_and_fewer_is_an_error(regression_data: Any) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(n_estimators=5, **FEW, warm_start=True).fit(x, y)
    trees = model.ensemble_
    assert model.fit(x, y + 1.0) is model
    assert model.ensemble_ is trees
    with pytest.raises(gb.InputError, match="y: "):
        model.fit(x, y[:3])
    with pytest.raises(ValueError, match=r"n_estimators: with warm_start=True .* it has 5, and 3 are asked for"):
        model.set_params(n_estimators=3).fit(x, y)
    assert model.ensemble_ is trees
    model.set_params(warm_start=False).fit(x, y)
    assert model.n_iter_ == 3
    assert gb.loads(gb.dumps(model)).warm_start is False


def test_changed_parameters_hold_for_the_new_trees(regression_data: Any) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(n_estimators=3, **FEW, warm_start=True).fit(x, y)
    model.set_params(n_estimators=4, max_depth=1, learning_rate=0.5).fit(x, y)
    sizes = [len(tree.nodes.feature) for tree in model.ensemble_.trees]
    assert min(sizes[:3]) > 3 == sizes[3]
    assert model.ensemble_.factors == (0.1, 0.1, 0.1, 0.5)


@pytest.mark.filterwarnings("ignore::gpuboost.OutsideTheoryWarning")
@pytest.mark.parametrize("through", ["estimator", "file", "slice", "pickle"])
def test_parameters_that_change_after_a_fit_do_not_change_what_it_made(regression_data: Any, through: str) -> None:
    x, y = regression_data[0][:60], regression_data[1][:60]

    def passed(model: Any) -> Any:
        ways = {
            "file": lambda: gb.loads(gb.dumps(model)),
            "slice": lambda: model[:3],
            "pickle": lambda: pickle.loads(pickle.dumps(model)),
        }
        return ways.get(through, lambda: model)().set_params(n_jobs=1, warm_start=True)

    chain = gb.GradientBoostingRegressor("huber", n_estimators=3, **FEW, langevin=gb.Langevin(temperature=1.0))
    for temperature, start in ((1.0, 0), (100.0, 3)):
        changed = passed(clone(chain).fit(x, y)).set_params(langevin=gb.Langevin(temperature=temperature))
        assert gb.to_dict(changed.set_params(n_estimators=6).fit(x, y))["extra"]["chain"]["start"] == start
    boosted = passed(gb.GradientBoostingRegressor(n_estimators=3, **FEW).fit(x, y))
    boosted.set_params(learning_rate=gb.Averaging(), n_estimators=5)
    with pytest.raises(gb.RecipeError, match="the model to continue is a sum"):
        boosted.fit(x, y)
    forest = gb.GradientBoostingRegressor(n_estimators=3, **FEW, learning_rate=gb.Averaging(), sampling=0.5).fit(x, y)
    with pytest.raises(gb.InputError, match=r"the trees of gb.Averaging\(\) are all fitted at the start"):
        passed(forest).set_params(learning_rate=0.1).refit(x, y)


def test_no_file_is_written_that_could_not_be_read(regression_data: Any, tmp_path: Any) -> None:
    x, y = regression_data
    path = tmp_path / "model.json"
    model = gb.GradientBoostingRegressor(n_estimators=1, **FEW).fit(x, y)
    model.set_params(learning_rate=gb.Averaging(), posterior_samples=3)
    for write in (model.save_model, lambda _: gb.dumps(model)):
        with pytest.raises(gb.InputError, match=r"posterior_samples: draws come from .* as they were for the fit"):
            write(path)
    assert not path.exists()
    model.set_params(posterior_samples=None).save_model(path)
    np.testing.assert_array_equal(gb.load_model(path).predict(x), model.predict(x))


def test_intervals_are_those_of_the_fit_whatever_langevin_is_set_to_later(regression_data: Any) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor("gaussian_nll", n_estimators=2, **FEW).fit(x[:80], y[:80])
    before, calibrated = model.predict_interval(x), gb.conformal(model, x[80:], y[80:]).predict_interval(x)
    model.set_params(langevin=gb.Langevin())
    np.testing.assert_array_equal(model.predict_interval(x), before)
    np.testing.assert_array_equal(gb.conformal(model, x[80:], y[80:]).predict_interval(x), calibrated)


def test_contradictions_are_named(regression_data: Any, tmp_path: Any) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(n_estimators=3, **FEW, warm_start=True).fit(x, y)
    with pytest.raises(gb.RecipeError, match="init_model: with warm_start=True a fitted estimator goes on with its"):
        model.fit(x, y, init_model=clone(model).fit(x, y))
    with pytest.raises(gb.RecipeError, match="warm_start: must be True or False; got 3"):
        clone(model).set_params(warm_start=3).fit(x, y)
    with pytest.raises(gb.InputError, match="warm_start: was trained for the loss"):
        model.set_params(loss="huber", n_estimators=5).fit(x, y)
    with pytest.raises(gb.InputError, match=r"^warm_start: X: must have the"):
        model.set_params(loss="squared_error").fit(x[:, :2], y)
    path = tmp_path / "run.json"
    model.set_params(loss="squared_error", callbacks=[gb.callbacks.Checkpoint(path, every=1)]).fit(x, y)
    with pytest.raises(gb.RecipeError, match="resume_from: the interrupted fit went on with a model of 3 rounds"):
        clone(model).fit(x, y, resume_from=path)
    resumed = clone(model).set_params(warm_start=False, n_estimators=2).fit(x, y, resume_from=path)
    np.testing.assert_array_equal(resumed.predict(x), model.predict(x))


def test_categories_that_the_model_to_continue_does_not_know_are_named(regression_data: Any) -> None:
    x, y = regression_data[0][:60], regression_data[1][:60]
    shops = np.array(["Bonn", "Kiel"])[np.arange(60) % 2]
    known = pd.Categorical(shops, categories=["Bonn", "Kiel", "Oslo"])  # of which no row is in Oslo
    before = gb.GradientBoostingRegressor(n_estimators=2, **FEW).fit(pd.DataFrame({"shop": shops, "x": x[:, 0]}), y)
    again = gb.GradientBoostingRegressor(n_estimators=2, **FEW)
    again.fit(pd.DataFrame({"shop": known, "x": x[:, 0]}), y, init_model=before)
    opened = np.where(np.arange(60) < 30, shops, "Ulm")
    with pytest.warns(UserWarning, match="^init_model: column 'shop' has categories that the model .* missing: 'Ulm'"):
        again.fit(pd.DataFrame({"shop": opened, "x": x[:, 0]}), y, init_model=before)
