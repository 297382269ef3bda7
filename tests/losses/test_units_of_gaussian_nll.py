"""``gaussian_nll`` fits a target in any units alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.losses.distribution import scaled_to_start

RNG = np.random.default_rng(6)
X = RNG.uniform(-1.0, 1.0, size=(600, 3))
Y = np.sin(3.0 * X[:, 0]) + (0.1 + 0.3 * (X[:, 1] > 0.0)) * RNG.normal(size=600)
SETTINGS: dict[str, Any] = {"loss": "gaussian_nll", "n_estimators": 30, "max_depth": 3, "random_state": 0, "n_jobs": 1}


def fitted(y: Any = Y, **params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**SETTINGS | params).fit(X, y)


@pytest.mark.parametrize("unit", [60.0, 1e6, 1e-4])
@pytest.mark.parametrize(
    "params",
    [{}, {"step": "gradient", "learning_rate": 0.05}, {"multi_output": "one_tree"}],
    ids=["newton", "gradient", "one tree"],
)
def test_another_unit_gives_the_same_predictions(unit: float, params: dict[str, Any]) -> None:
    expected = fitted(**params).predict(X, output="all")
    scaled = fitted(unit * Y + 3.0 * unit, **params).predict(X, output="all") / unit
    np.testing.assert_allclose(scaled[:, 0] - 3.0, expected[:, 0], rtol=0, atol=1e-4)
    np.testing.assert_allclose(scaled[:, 1], expected[:, 1], rtol=1e-3)
    assert np.corrcoef(scaled[:, 0], np.sin(3.0 * X[:, 0]))[0, 1] > 0.95


def test_the_first_trees_of_the_mean_are_those_of_the_squared_error() -> None:
    first = gb.to_dict(fitted(60.0 * Y, n_estimators=1))["trees"][0]
    squared = gb.to_dict(fitted(60.0 * Y, n_estimators=1, loss="squared_error"))["trees"][0]
    assert (first["feature"], first["bin"]) == (squared["feature"], squared["bin"])
    np.testing.assert_allclose(first["value"], squared["value"], rtol=1e-5)


def test_a_continued_fit_keeps_the_unit_of_its_start(tmp_path: Path) -> None:
    whole = fitted(60.0 * Y, n_estimators=12)
    part = fitted(60.0 * Y, n_estimators=5)
    more = gb.GradientBoostingRegressor(**SETTINGS | {"n_estimators": 7}).fit(X, 60.0 * Y, init_model=part)
    assert gb.to_dict(more)["trees"] == gb.to_dict(whole)["trees"]
    loaded = gb.loads(gb.dumps(whole))
    assert loaded.loss_ == gb.losses.GaussianNLL()
    assert loaded.predict(X).tobytes() == whole.predict(X).tobytes()


def test_offsets_of_both_scores_are_part_of_the_start() -> None:
    """A fit beside the log of the unit as offset of log s is the fit of the target itself."""
    offset = np.column_stack([np.zeros(600), np.full(600, np.log(60.0))])
    plain = fitted(60.0 * Y, n_estimators=10)
    beside = gb.GradientBoostingRegressor(**SETTINGS | {"n_estimators": 10}).fit(X, 60.0 * Y, init_score=offset)
    scores = beside.predict(X, init_score=offset)
    np.testing.assert_allclose(scores, plain.predict(X), rtol=0, atol=1e-2)


def test_eval_sets_are_judged_in_the_units_of_the_target() -> None:
    model = gb.GradientBoostingRegressor(**SETTINGS | {"eval_metric": "rmse"}).fit(X, 60.0 * Y, eval_set=(X, 60.0 * Y))
    error = np.sqrt(np.mean((60.0 * Y - model.predict(X)) ** 2))
    assert model.evals_result_["validation_0"]["rmse"][-1] == pytest.approx(error, rel=1e-12)


def test_langevin_boosting_keeps_the_loss_as_it_is() -> None:
    chain = gb.GradientBoostingRegressor(**SETTINGS | {"n_estimators": 3}, langevin=gb.Langevin(shrinkage=0.1))
    assert chain.fit(X, Y).loss_ == gb.losses.GaussianNLL()
    same = gb.GradientBoostingRegressor(
        **SETTINGS | {"n_estimators": 3, "step": "gradient"}, langevin=gb.Langevin(shrinkage=0.1)
    ).fit(X, Y)
    assert gb.to_dict(same)["trees"] == gb.to_dict(chain)["trees"]


def test_steps_of_the_spread_are_a_third_of_those_of_natural_gradients() -> None:
    f, of_loss, of_fit = np.array([1.0, 0.5]), np.empty((2, 2)), np.empty((2, 2))
    gb.losses.GaussianNLL().row_derivatives(3.0, f, *of_loss, 0.0)  # type: ignore[call-arg]
    scaled = scaled_to_start(gb.losses.GaussianNLL(), np.array([0.0, 0.2]))
    scaled.row_derivatives(3.0, f, *of_fit, scaled.parameter)  # type: ignore[attr-defined]
    assert (of_fit[:, 0] / of_loss[:, 0]).tolist() == pytest.approx([scaled.parameter] * 2)
    assert of_fit[0, 1] == of_loss[0, 1]
    assert (of_loss[1, 1], of_fit[1, 1]) == (2.0, 6.0)
