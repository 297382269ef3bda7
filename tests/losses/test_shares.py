"""The cross entropy of shares: targets from 0 to 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import Array

import gpuboost as gb
from gpuboost.errors import InputError, RecipeError
from gpuboost.losses import CrossEntropy, Logistic

RNG = np.random.default_rng(5)
X = RNG.normal(size=(600, 4))
P = 1.0 / (1.0 + np.exp(-(X[:, 0] + X[:, 1] * X[:, 2])))
Y = RNG.beta(4.0 * P, 4.0 * (1.0 - P))
Y[:2] = 0.0, 1.0


def regressor(**given_: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**{"loss": "cross_entropy", "n_estimators": 12, "max_depth": 3} | given_)


@given(f=st.floats(-1e300, 1e300) | st.floats(-50.0, 50.0))
def test_at_0_and_1_it_is_the_logistic_loss(f: float) -> None:
    ours, theirs = CrossEntropy(), Logistic()
    for y in (0.0, 1.0):
        assert ours.value(y, f, 0.0) == theirs.value(y, f, 0.0)
        np.testing.assert_allclose(ours.derivatives(y, f, 0.0), theirs.derivatives(y, f, 0.0), rtol=1e-9, atol=1e-15)


@given(y=st.floats(0.0, 1.0), f=st.floats(-30.0, 30.0))
def test_it_is_the_mean_of_both_classes(y: float, f: float) -> None:
    """A share is that much of a row of class 1, and the rest of class 0."""
    value = y * Logistic().value(1.0, f, 0.0) + (1.0 - y) * Logistic().value(0.0, f, 0.0)
    assert CrossEntropy().value(y, f, 0.0) == pytest.approx(value, rel=1e-9, abs=1e-12)
    g, h = CrossEntropy().derivatives(y, f, 0.0)
    p = 1.0 / (1.0 + math.exp(-f))
    assert g == pytest.approx(p - y, rel=1e-9, abs=1e-12)
    assert h == pytest.approx(p * (1.0 - p), rel=1e-9, abs=1e-12)
    assert CrossEntropy().derivatives(1.0 - y, -f, 0.0)[0] == pytest.approx(-g, rel=1e-9, abs=1e-12)


def test_a_share_is_worth_two_weighted_rows() -> None:
    both = gb.GradientBoostingClassifier(n_estimators=12, max_depth=3)
    both.fit(np.vstack([X, X]), np.repeat([1, 0], len(Y)), sample_weight=np.concatenate([Y, 1.0 - Y]))
    np.testing.assert_allclose(regressor().fit(X, Y).predict(X), both.predict_proba(X)[:, 1], rtol=1e-4)


def test_counts_of_trials_with_their_totals_as_weights_start_at_the_share_of_all() -> None:
    totals = RNG.integers(1, 40, len(Y))
    hits = RNG.binomial(totals, P)
    model = regressor(n_estimators=0).fit(X, hits / totals, sample_weight=totals)
    np.testing.assert_allclose(model.predict(X[:1]), hits.sum() / totals.sum(), rtol=1e-6)


def test_predictions_are_shares_and_evaluation_sees_their_cross_entropy() -> None:
    fit, held = slice(400), slice(400, None)
    model = regressor(n_estimators=40).fit(X[fit], Y[fit], eval_set=[(X[held], Y[held])])
    found = model.predict(X[held])
    assert ((found > 0.0) & (found < 1.0)).all()
    mean = float(np.mean(-Y[held] * np.log(found) - (1.0 - Y[held]) * np.log1p(-found)))
    assert model.evals_result_["validation_0"]["loss"][-1] == pytest.approx(mean, rel=1e-9)
    rest = Y[fit].mean()
    assert mean < 0.95 * float(np.mean(-Y[held] * np.log(rest) - (1.0 - Y[held]) * np.log1p(-rest)))


@pytest.mark.parametrize("multi_output", ["one_tree_per_output", "one_tree"])
def test_several_shares_of_a_row_survive_a_model_file(multi_output: str) -> None:
    y = np.column_stack([Y, 1.0 - Y, np.round(Y)])
    model = regressor(multi_output=multi_output).fit(X, y)
    found = gb.loads(gb.dumps(model)).predict(X)
    assert found.tobytes() == model.predict(X).tobytes()
    assert np.abs(found - y).mean() < 0.8 * np.abs(y.mean(axis=0) - y).mean()
    if multi_output == "one_tree_per_output":
        assert found[:, 0].tobytes() == np.ascontiguousarray(regressor().fit(X, Y).predict(X)).tobytes()


def test_a_gpu_makes_the_same_bytes() -> None:
    one = regressor(n_estimators=4, device="cpu").fit(X, Y, eval_set=[(X, Y)])
    with emulated_gpu():
        two = regressor(n_estimators=4, device="cuda").fit(X, Y, eval_set=[(X, Y)])
        found = two.predict(X)
    assert one.set_params(device="cuda") is one
    assert gb.dumps(one) == gb.dumps(two)
    assert one.evals_result_ == two.evals_result_
    assert found.tobytes() == one.set_params(device="cpu").predict(X).tobytes()


def wrong(y: Array) -> str:
    with pytest.raises(InputError) as caught:
        regressor().fit(X, y)
    return str(caught.value)


def test_errors_name_what_is_accepted() -> None:
    assert "CrossEntropy needs shares between 0 and 1; row 0 holds 1.5" in wrong(np.full(len(X), 1.5))
    assert "totals as sample_weight" in wrong(10.0 * Y)
    with pytest.raises(RecipeError, match=r"'cross_entropy' is for numbers.*For classes there is loss='logistic'"):
        gb.GradientBoostingClassifier(loss="cross_entropy").fit(X, Y > 0.5)
    with pytest.raises(RecipeError, match=r"'logistic' is for classes.*from 0 to 1, there is loss='cross_entropy'"):
        gb.GradientBoostingRegressor(loss="logistic").fit(X, Y)
    with pytest.raises(InputError, match="Did you mean 'cross_entropy'"):
        regressor(loss="xentropy").fit(X, Y)
    with pytest.raises(InputError, match="use 'loss'"):
        regressor(eval_metric="logloss").fit(X, Y, eval_set=[(X, Y)])
