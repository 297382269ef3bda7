"""reg_alpha, max_delta_step and path_smooth through the estimators, as XGBoost and LightGBM mean them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.errors import RecipeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 4))
Y = X[:, 0] + np.where(X[:, 1] > 1.0, 3.0, 0.0) + 0.5 * RNG.normal(size=500)
SAME = {"reg_lambda": 1.0, "max_depth": 3, "min_child_weight": 0.0, "n_estimators": 20, "learning_rate": 0.3}


def test_max_delta_step_is_the_largest_leaf_value() -> None:
    model = gb.GradientBoostingRegressor(max_delta_step=0.2, n_estimators=8, n_jobs=1).fit(X, Y)
    values = np.concatenate([tree.value for tree in model.ensemble_.trees])
    assert np.abs(values).max() == 0.2
    assert np.abs(model.predict(X) - model.ensemble_.bias[0]).max() <= 8 * 0.1 * 0.2 + 1e-12


def test_reg_alpha_takes_small_leaves_to_0_and_large_enough_all() -> None:
    def leaves(alpha: float) -> np.ndarray:
        model = gb.GradientBoostingRegressor(reg_alpha=alpha, n_estimators=8, n_jobs=1).fit(X, Y)
        return np.concatenate([tree.value[tree.nodes.is_leaf] for tree in model.ensemble_.trees])

    assert (leaves(0.0) != 0.0).all()
    assert (leaves(5.0) == 0.0).any()
    assert not leaves(1e6).any()
    assert np.abs(leaves(5.0)).sum() < np.abs(leaves(0.0)).sum()


@pytest.mark.parametrize("given", [{"reg_alpha": 3.0}, {"max_delta_step": 0.3}, {"reg_alpha": 1.0}])
def test_xgboost_predicts_the_same(given: dict[str, float]) -> None:
    """Columns of few values, so that both have the same cuts. XGBoost's gains of both at once add alpha |value|."""
    xgboost = pytest.importorskip("xgboost")
    x = np.round(2.0 * X) / 2.0
    ours = gb.GradientBoostingRegressor(**SAME, **given, n_jobs=1).fit(x, Y)
    theirs = xgboost.XGBRegressor(**SAME, **given, tree_method="hist", base_score=float(Y.mean()), n_jobs=1).fit(x, Y)
    assert ours.predict(x) == pytest.approx(theirs.predict(x), abs=2e-4)


def test_lightgbm_predicts_the_same_with_both() -> None:
    """But for a few rows: clipped values give splits of one gain, of which each library takes another."""
    lightgbm = pytest.importorskip("lightgbm")
    x = np.round(2.0 * X) / 2.0
    both = {"reg_alpha": 2.0, "max_delta_step": 0.4}
    ours = gb.GradientBoostingRegressor(**SAME, **both, growth="leafwise", max_leaves=8, n_jobs=1).fit(x, Y)
    theirs = lightgbm.LGBMRegressor(
        **SAME, **both, num_leaves=8, min_child_samples=1, min_data_in_bin=1, n_jobs=1, verbose=-1
    ).fit(x, Y)
    assert (np.abs(ours.predict(x) - theirs.predict(x)) < 1e-3).mean() > 0.95


@pytest.mark.parametrize("path_smooth", [1.0, 20.0, 300.0])
def test_lightgbm_smooths_the_same(path_smooth: float) -> None:
    """Of two columns, since LightGBM does not try a column again below a node where it gains nothing."""
    lightgbm = pytest.importorskip("lightgbm")
    x = np.round(2.0 * X[:, :2]) / 2.0
    params = {**SAME, "path_smooth": path_smooth, "n_estimators": 5}
    ours = gb.GradientBoostingRegressor(**params, growth="leafwise", max_leaves=8, n_jobs=1).fit(x, Y)
    theirs = lightgbm.LGBMRegressor(
        **params, num_leaves=8, min_child_samples=1, min_data_in_bin=1, n_jobs=1, verbose=-1
    ).fit(x, Y)
    assert ours.predict(x) == pytest.approx(theirs.predict(x), abs=1e-6)


def test_path_smooth_draws_leaves_together() -> None:
    def spread(path_smooth: float) -> float:
        model = gb.GradientBoostingRegressor(path_smooth=path_smooth, n_estimators=1, learning_rate=1.0, n_jobs=1)
        return float(model.fit(X, Y).predict(X).std())

    assert spread(0.0) > spread(10.0) > spread(1e3) > spread(1e6)
    assert spread(1e9) == pytest.approx(0.0, abs=1e-4)


def test_predictions_stay_monotone() -> None:
    model = gb.GradientBoostingRegressor(
        reg_alpha=1.0, max_delta_step=0.5, path_smooth=5.0, monotonic_cst=[1, 0, 0, 0], n_estimators=20, n_jobs=1
    ).fit(X, Y)
    rows = np.repeat(X[:20], 50, axis=0)
    rows[:, 0] = np.tile(np.linspace(-3.0, 3.0, 50), 20)
    assert (np.diff(model.predict(rows).reshape(20, 50), axis=1) >= 0.0).all()


def test_they_are_part_of_the_model_file_and_of_a_refit(tmp_path: Path) -> None:
    model = gb.GradientBoostingRegressor(
        n_estimators=3, reg_alpha=2.0, max_delta_step=0.5, path_smooth=9.0, n_jobs=1
    ).fit(X, Y)
    model.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert (loaded.reg_alpha, loaded.max_delta_step, loaded.path_smooth) == (2.0, 0.5, 9.0)
    again = gb.GradientBoostingRegressor(n_estimators=3, path_smooth=9.0, n_jobs=1).fit(X, Y)
    np.testing.assert_array_equal(again.refit(X, Y, decay=0.0).predict(X), again.predict(X))
    assert np.abs(np.concatenate([tree.value for tree in model.refit(X, 3.0 * Y).ensemble_.trees])).max() <= 0.5
    plain = gb.dumps(gb.GradientBoostingRegressor(n_estimators=1).fit(X, Y))
    assert "reg_alpha" not in plain
    assert "max_delta_step" not in plain
    assert "path_smooth" not in plain


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"reg_alpha": 1.0, "growth": "sign_stump", "max_depth": 1}, "reg_alpha: growth='sign_stump' takes one value"),
        ({"max_delta_step": 1.0, "step": "line_search"}, "max_delta_step: LineSearchStep(per='tree') looks for the"),
        ({"reg_alpha": 1.0, "loss": "absolute_error"}, "reg_alpha: QuantileStep() looks for the length of a step"),
        ({"reg_alpha": 1.0, "langevin": gb.Langevin()}, "reg_alpha: the theorem of Langevin boosting is for leaves"),
        ({"path_smooth": 1.0, "loss": "absolute_error"}, "path_smooth: QuantileStep() looks for the length of a step"),
        ({"path_smooth": 1.0, "langevin": gb.Langevin()}, "average the gradient, and these are nearer to the leaves"),
        ({"path_smooth": 1.0, "growth": "sign_stump", "max_depth": 1}, "path_smooth: growth='sign_stump' takes one"),
        ({"path_smooth": -1.0}, "path_smooth: must be a finite number, 0 or more; got -1.0."),
        ({"reg_alpha": -1.0}, "reg_alpha: must be a finite number, 0 or more; got -1.0."),
        ({"max_delta_step": np.inf}, "max_delta_step: must be a finite number, 0 or more; got inf."),
    ],
)
def test_what_is_refused(params: dict[str, Any], text: str) -> None:
    model = gb.GradientBoostingRegressor(**params)
    with pytest.raises(RecipeError) as caught:
        model.fit(X, Y)
    assert text in str(caught.value)
    assert model.check(X, Y).kind in ("refused", "unproven")
