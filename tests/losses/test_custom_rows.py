"""Losses of one's own with several scores a row: on every machine the same, and checked before a fit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu
from numba import njit
from support.examples import daily

import gpuboost as gb
from gpuboost.elementary import exp, exp_array, log

Array = np.ndarray
K = 3


@njit
def sum_of_exps(f: Array) -> float:
    total = 0.0
    for score in f:
        total += exp(score)
    return total


def value(y: float, f: Array) -> float:
    return log(sum_of_exps(f)) - f[int(y)]


def gradient(y: float, f: Array, g: Array) -> None:
    total = sum_of_exps(f)
    for c in range(len(f)):
        g[c] = exp(f[c]) / total - (1.0 if c == int(y) else 0.0)


def hessian(y: float, f: Array, h: Array) -> None:
    total = sum_of_exps(f)
    for c in range(len(f)):
        p = exp(f[c]) / total
        h[c] = 1.5 * (p * (1.0 - p))


def shares(scores: Array) -> Array:
    e = exp_array(scores)
    return (e / e.sum(axis=0)).T


def own(**given: Any) -> Any:
    return gb.losses.custom(value, gradient, hessian, n_outputs=K, inverse_link=shares, name="own", **given)


@pytest.fixture
def rows(rng: np.random.Generator) -> tuple[Array, Array]:
    x = rng.normal(size=(300, 3)).astype(np.float32)
    return x, np.digitize(x[:, 0] + 0.3 * rng.normal(size=300), [-0.5, 0.5])


@pytest.mark.parametrize("weighted", daily([False, True], 1))
def test_the_same_model_on_every_machine_and_nearly_that_of_softmax(rows: Any, weighted: bool) -> None:
    x, y = rows
    weight = np.linspace(0.5, 2.0, len(y)) if weighted else None
    given: dict[str, Any] = {"n_estimators": 4, "max_depth": 3, "random_state": 0, "reg_lambda": 3.0}

    def fitted(loss: Any, **more: Any) -> gb.GradientBoostingClassifier:
        return gb.GradientBoostingClassifier(loss=loss, **given, **more).fit(x, y, sample_weight=weight)

    host = fitted(own(), device="cpu")
    with emulated_gpu() as cp:
        assert fitted(own(), device="cuda").predict_proba(x).tobytes() == host.predict_proba(x).tobytes()
    assert cp.counts["kernel row_gradients"] > 0
    shards = fitted(own(), device="cpu", execution=gb.DataParallel(2))
    assert shards.predict_proba(x).tobytes() == host.predict_proba(x).tobytes()
    peer = fitted(gb.losses.Softmax(K), device="cpu", start=0.0)
    np.testing.assert_allclose(host.predict_proba(x), peer.predict_proba(x), rtol=1e-5)


def test_a_regressor_predicts_lines_a_file_keeps_the_scores_and_pickles_load(rows: Any, tmp_path: Any) -> None:
    x, y = rows
    loss = gb.losses.custom(value, gradient, None, n_outputs=K, start=[0.1, 0.2, 0.3])
    model = gb.GradientBoostingRegressor(loss=loss, n_estimators=3, max_depth=2, device="cpu").fit(x, y)
    assert model.predict(x).shape == (300, K)
    model.save_model(tmp_path / "own.json")
    assert gb.load_model(tmp_path / "own.json").predict(x).tobytes() == model.predict(x).tobytes()
    assert pickle.loads(pickle.dumps(loss)).n_outputs == K
    np.testing.assert_array_equal(loss.start(y, np.ones(300)), np.float32([0.1, 0.2, 0.3]).astype(float))


def wrong_sign(y: float, f: Array, g: Array) -> None:
    gradient(y, f, g)
    g[1] = -g[1]


def negative(y: float, f: Array, h: Array) -> None:
    hessian(y, f, h)
    h[2] = -h[2]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (gb.losses.custom(value, wrong_sign, hessian, n_outputs=K), "gradient of output 1: at y="),
        (gb.losses.custom(value, gradient, negative, n_outputs=K, convex=True), "hessian of output 2: at y="),
        (gb.losses.custom(lambda y, f: nowhere(f), gradient, None, n_outputs=K), "value: numba must be able"),  # noqa: F821
        (gb.losses.custom(value, gradient, None, n_outputs=K, inverse_link=lambda s: s[0, :1]), "inverse_link: must"),
        (gb.losses.custom(value, gradient, None, n_outputs=K, start=lambda y, w: [1.0]), "start: must be a number, 3"),
    ],
    ids=["gradient", "hessian", "value", "link", "start"],
)
def test_what_contradicts_itself_is_refused_before_a_fit(rows: Any, loss: Any, message: str) -> None:
    x, y = rows
    step = "newton" if "hessian" in message else "gradient"
    with pytest.raises(gb.RecipeError, match=message):
        gb.GradientBoostingRegressor(loss=loss, n_estimators=1, step=step, device="cpu").fit(x, y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gradient": value}, r"gradient: must be a function of \(y, f, g\) that writes into the array g of 3 numbers"),
        ({"start": "minimise"}, "start: must be a number, 3 numbers, or a function"),
        ({"start": [0.0, 1.0]}, "start: must be a number, 3 numbers, or a function"),
        ({"n_outputs": 0}, "n_outputs: must be a whole number, 1 or more; got 0"),
    ],
)
def test_wrong_arguments_are_refused(given: dict[str, Any], message: str) -> None:
    every: dict[str, Any] = {"value": value, "gradient": gradient, "hessian": None, "n_outputs": K}
    with pytest.raises(gb.RecipeError, match=message):
        gb.losses.custom(**every | given)
