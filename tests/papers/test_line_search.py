"""Line search: it goes somewhere on losses that grow exponentially, and promises descent only up to the minimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.numerics.line_search import minimise


@pytest.mark.parametrize("mean", [20.0, 100.0, 1e6])
@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_counts_of_any_size_are_learned(loss: str, mean: float, rng: np.random.Generator) -> None:
    x = rng.normal(size=(300, 3))
    y = rng.poisson(mean * np.exp(0.3 * x[:, 0])).astype(float)
    model = gb.GradientBoostingRegressor(loss=loss, step="line_search", n_jobs=1, random_state=0).fit(x, y)
    assert all(np.abs(tree.value).max() > 0.0 for tree in model.ensemble_.trees)
    assert model.score(x, y) > 0.9
    newton = gb.GradientBoostingRegressor(loss=loss, n_jobs=1, random_state=0).fit(x, y)
    assert model.score(x, y) > newton.score(x, y) - 0.02


@pytest.mark.parametrize("scale", [1.0, 10.0, 1e3, 1e6, 1e9])
def test_the_minimum_of_an_exponential_is_found_from_far_off(scale: float) -> None:
    """f(x) = e^(scale x) - 2 scale x, whose minimum is log(2) / scale; Newton from 1 needs about ``scale`` steps."""

    def slopes(x: Any) -> tuple[Any, Any]:
        with np.errstate(over="ignore"):
            grown = np.exp(scale * x)
        return scale * (grown - 2.0), scale**2 * grown

    assert minimise(slopes, np.ones(1))[0] * scale == pytest.approx(np.log(2.0), rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "rate", "kind"),
    [("logistic", 1.0, "sound"), ("logistic", 1.9, "heuristic"), ("logistic", 2.0, "heuristic")],
)
def test_no_descent_is_promised_beyond_the_minimum(loss: str, rate: float, kind: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(300, 3))
    y = (rng.random(300) < 1 / (1 + np.exp(-2 * x[:, 0] - 2))).astype(int)
    model = gb.GradientBoostingClassifier(
        loss=loss, step="line_search", learning_rate=rate, max_depth=1, n_estimators=40, n_jobs=1, random_state=0
    ).fit(x, y)
    losses = [np.mean(np.logaddexp(0, f) - y * f) for f in model.staged_decision_function(x)]
    assert model.fit_report_.verdict.kind == kind
    assert (np.diff(losses) > 1e-12).any() == (kind == "heuristic")


@pytest.mark.filterwarnings("ignore:learning_rate. the steps are too long")
@pytest.mark.parametrize(("rate", "kind"), [(1.9, "sound"), (2.5, "heuristic")])
def test_a_quadratic_loss_falls_up_to_twice_the_way(
    rate: float, kind: str, regression_data: tuple[np.ndarray, np.ndarray]
) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(
        step="line_search", learning_rate=rate, max_depth=2, n_estimators=20, n_jobs=1, random_state=0
    ).fit(x, y)
    losses = [np.mean((y - f) ** 2) for f in model.staged_predict(x)]
    assert model.fit_report_.verdict.kind == kind
    assert (np.diff(losses) > 1e-12).any() == (kind == "heuristic")
