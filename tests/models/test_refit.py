"""Leaf values from new rows: ``model.refit``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost import backends

FEW: dict[str, Any] = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1, "random_state": 0}


def same_trees(one: Any, other: Any) -> bool:
    pairs = zip(one.ensemble_.trees, other.ensemble_.trees, strict=True)
    same = all(a.value.tobytes() == b.value.tobytes() and (a.nodes.left == b.nodes.left).all() for a, b in pairs)
    return bool(same and one.ensemble_.bias.tobytes() == other.ensemble_.bias.tobytes())


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"loss": "absolute_error"},
        {"loss": "huber", "step": "line_search"},
        {"growth": "sign_stump", "max_depth": 1, "step": "gradient"},
        {"growth": "leafwise", "monotonic_cst": [1, 0, 0, -1, 0]},
        {"sampling": 0.5, "learners": 2, "start": 3.0, "reg_lambda": 0.0},
        {"loss": "gaussian_nll"},
    ],
    ids=str,
)
def test_without_memory_the_rows_of_the_fit_give_its_leaf_values_again(params: Any, regression_data: Any) -> None:
    x, y = regression_data
    weight = np.arange(len(y)) % 3
    model = gb.GradientBoostingRegressor(**FEW | params).fit(x, y, weight)
    assert same_trees(model.refit(x, y, 0.0, weight), model)
    assert same_trees(model.refit(x[:50], y[:50] + 9.0, decay=1), model)


def test_classes_and_queries_are_refitted_too(rng: np.random.Generator) -> None:
    x = rng.normal(size=(200, 4))
    labels = np.array(["a", "b", "c"])[np.digitize(x[:, 0] + 0.3 * rng.normal(size=200), [-0.5, 0.5])]
    model = gb.GradientBoostingClassifier(**FEW, class_weight="balanced").fit(x, labels)
    assert same_trees(model.refit(x, labels, 0), model)
    only_b = model.refit(x[labels == "b"], labels[labels == "b"], decay=0.5)
    assert (only_b.predict_proba(x)[:, 1] > model.predict_proba(x)[:, 1]).all()
    with pytest.raises(gb.InputError, match="y: only classes of the training data can be judged; row 0 holds d"):
        model.refit(x, np.full(200, "d"))
    grades, group = np.digitize(x[:, 0], [-0.5, 0.5]), np.repeat(np.arange(20), 10)
    ranker = gb.GradientBoostingRanker(**FEW).fit(x, grades, group=group)
    assert same_trees(ranker.refit(x, grades, 0, group=group), ranker)
    assert ranker.refit(x, 2 - grades, 0, group=group).score(x, 2 - grades, group=group) > 0.9
    with pytest.raises(gb.InputError, match="group: a ranker must know"):
        ranker.refit(x, grades)


def test_rankers_are_refitted_by_pairs_and_positions(rng: np.random.Generator) -> None:
    x, group = rng.normal(size=(200, 4)), np.repeat(np.arange(20), 10)
    clicks, position = (x[:, 0] > 0).astype(int), np.tile(np.arange(10)[::-1], 20)
    pairs = np.column_stack([np.arange(0, 200, 2), np.arange(1, 200, 2)])
    of_clicks = gb.GradientBoostingRanker("unbiased_lambdamart", **FEW).fit(x, clicks, group=group, position=position)
    again = of_clicks.refit(x, clicks, 0, group=group, position=position)
    assert same_trees(again, of_clicks)
    np.testing.assert_array_equal(again.position_bias_, of_clicks.position_bias_)
    in_order = of_clicks.refit(x, clicks, 0, group=group)
    assert not same_trees(in_order, of_clicks)
    assert not np.array_equal(in_order.position_bias_, of_clicks.position_bias_)
    of_pairs = gb.GradientBoostingRanker("pair_logit", **FEW).fit(x, clicks, group=group, pairs=pairs)
    assert same_trees(of_pairs.refit(x, clicks, 0, group=group, pairs=pairs), of_pairs)
    with pytest.raises(gb.InputError, match="pairs: loss 'pair_logit' learns from pairs of rows, and none are given"):
        of_pairs.refit(x, clicks, 0, group=group)


def test_a_leaf_value_is_a_mean_of_old_and_new(regression_data: Any) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(n_estimators=1, max_depth=2, reg_lambda=2.0, learning_rate=0.5).fit(x, y)
    new_x, new_y = x[:40], y[:40] + 3.0
    made = model.refit(new_x, new_y, decay=0.25)
    bias = 0.25 * model.ensemble_.bias[0] + 0.75 * new_y.mean()
    assert made.ensemble_.bias[0] == pytest.approx(bias, abs=1e-6)
    leaf_of_row, (old,) = model.apply(new_x)[:, 0], model.ensemble_.trees
    for leaf in np.flatnonzero(old.nodes.is_leaf):
        residual = new_y[leaf_of_row == leaf] - bias
        expected = 0.25 * old.value[leaf] + 0.75 * residual.sum() / (len(residual) + 2.0)
        assert made.ensemble_.trees[0].value[leaf] == pytest.approx(expected, abs=1e-5)


def test_a_refitted_model_is_a_model(regression_data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(**FEW).fit(x[:150], y[:150], eval_set=(x[150:], y[150:]))
    before = gb.dumps(model)
    made = model.refit(x[150:], y[150:] + 2.0, 0.3)
    assert gb.dumps(model) == before
    assert type(made) is type(model)
    assert made.guarantee_.kind == "not known"
    assert made.score(x, y + 2.0) > model.score(x, y + 2.0)
    np.testing.assert_array_equal(made.feature_importances_, model.feature_importances_)
    made.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert gb.dumps(loaded) == gb.dumps(made)
    assert same_trees(loaded.refit(x, y), made.refit(x, y))
    assert same_trees(model.set_params(n_jobs=2).refit(gb.Dataset(x[150:], y[150:] + 2.0), decay=0.3), made)
    get = backends.get
    monkeypatch.setattr(backends, "get", lambda name, threads: get("reference"))
    assert same_trees(model.refit(x[150:], y[150:] + 2.0, decay=0.3), made)


def test_offsets_and_statistics_of_categories_go_on(rng: np.random.Generator) -> None:
    pd = pytest.importorskip("pandas")
    code = rng.integers(0, 30, 400)
    frame = pd.DataFrame({"c": pd.Categorical([f"c{i}" for i in code]), "x": rng.normal(size=400)})
    y = np.sin(code) + 0.1 * rng.normal(size=400)
    encoding = gb.OrderedTargetStatistics(permutations=2)
    model = gb.GradientBoostingRegressor(**FEW, categorical_encoding=encoding, monotonic_cst={"x": 1}).fit(frame, y)
    assert same_trees(model.refit(frame, y, 1.0), model)
    doubled = model.refit(frame, 2.0 * y, 0.0)
    assert doubled.score(frame, 2.0 * y) > 0.5 > model.score(frame, 2.0 * y) - 0.3
    offset = rng.normal(size=400)
    beside = gb.GradientBoostingRegressor(**FEW).fit(frame[["x"]], y + offset, init_score=offset)
    assert same_trees(beside.refit(frame[["x"]], y + offset, 0, init_score=offset), beside)
    with pytest.raises(gb.InputError, match="init_score: the model to continue was fitted with offsets"):
        beside.refit(frame[["x"]], y)


def test_what_cannot_be_refitted_is_said_before_any_work(regression_data: Any) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(**FEW).fit(x, y)
    for wrong in ("0.5", -0.1, 1.1, True, None, np.nan):
        with pytest.raises(gb.RecipeError, match="decay: must be a number from 0 to 1"):
            model.refit(x, y, wrong)
    with pytest.raises(gb.InputError, match="y: "):
        model.refit(x, y[:10])
    with pytest.raises(ValueError, match="5 features"):
        model.refit(x[:, :3], y)
    chain = gb.GradientBoostingRegressor(**FEW, langevin=gb.Langevin()).fit(x, y)
    with pytest.raises(gb.InputError, match="refit: leaf values of Langevin boosting"):
        chain.refit(x, y)
    lines = gb.GradientBoostingRegressor(n_estimators=3, base_learner=gb.learners.Linear()).fit(x, y)
    with pytest.raises(gb.InputError, match="refit: it is for models of trees"):
        lines.refit(x, y)


def value(y: float, f: float) -> float:
    return (y - f) * (y - f)


def gradient(y: float, f: float) -> float:
    return 2.0 * (f - y)


def hessian(y: float, f: float) -> float:
    return 2.0


def test_a_loaded_custom_loss_needs_its_functions_again(regression_data: Any) -> None:
    x, y = regression_data
    loss = gb.losses.custom(value, gradient, hessian)
    model = gb.GradientBoostingRegressor(loss, **FEW).fit(x, y)
    assert same_trees(model.refit(x, y, 0), model)
    loaded: Any = gb.loads(gb.dumps(model))
    with pytest.raises(gb.RecipeError, match="keeps a custom loss by name only"):
        loaded.refit(x, y)
    assert same_trees(loaded.set_params(loss=loss).refit(x, y, 0), model)
