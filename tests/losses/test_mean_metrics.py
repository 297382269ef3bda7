"""Metrics of one's own: a term of each row, evaluated where the scores are; and jitted functions of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu
from numba import njit

import gpuboost as gb
from gpuboost.elementary import exp, log

Array = np.ndarray


def far(y: float, f: float) -> float:
    """The share of rows that are farther than 0.5 from their target, with a branch."""
    return 1.0 if abs(y - f) > 0.5 else 0.0


@njit
def worst(y: Array, prediction: Array) -> float:
    largest = 0.0
    for i in range(len(y)):
        largest = max(largest, abs(y[i] - prediction[i]))
    return largest


def surprise(y: float, f: Array) -> float:
    total = 0.0
    for score in f:
        total += exp(score - f[int(y)])
    return log(total)


def history(model: Any, x: Array, y: Array, **given: Any) -> dict[str, list[float]]:
    weight = np.linspace(0.5, 1.5, len(y))
    fitted = model(n_estimators=3, max_depth=2, random_state=0, **given).fit(x, y, eval_set=[(x, y, weight)])
    (found,) = fitted.evals_result_.values()
    return dict(found)


def test_a_term_gives_the_same_numbers_on_every_machine_and_those_of_the_library(rng: np.random.Generator) -> None:
    x = rng.normal(size=(200, 2))
    y = x[:, 0] + 0.3 * rng.normal(size=200)
    squares = gb.metrics.mean(lambda y, f: (y - f) * (y - f), name="squares")
    given = {"eval_metric": [gb.metrics.mean(far), squares, "mse", worst]}
    host = history(gb.GradientBoostingRegressor, x, y, device="cpu", **given)
    with emulated_gpu() as cp:
        assert history(gb.GradientBoostingRegressor, x, y, device="cuda", **given) == host
    assert cp.counts["kernel loss_total"] >= 9
    np.testing.assert_allclose(host["squares"], host["mse"], rtol=1e-12)
    assert 0.0 < host["far"][-1] < 1.0
    assert host["worst"][-1] < host["worst"][0]


def test_a_term_of_several_scores(rng: np.random.Generator) -> None:
    x = rng.normal(size=(200, 2))
    y = np.digitize(x[:, 0], [-0.5, 0.5])
    given = {"eval_metric": [gb.metrics.mean(surprise, n_outputs=3), "mlogloss"], "device": "cpu"}
    host = history(gb.GradientBoostingClassifier, x, y, **given)
    np.testing.assert_allclose(host["surprise"], host["mlogloss"], rtol=1e-9)
    with pytest.raises(gb.InputError, match="the term of 'far' is for 1 scores a row, and loss 'softmax' has 3"):
        history(gb.GradientBoostingClassifier, x, y, eval_metric=gb.metrics.mean(far), device="cpu")


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(gb.InputError, match="higher_is_better: must be True or False"):
        gb.metrics.mean(far, higher_is_better=1)  # type: ignore[arg-type]
    with pytest.raises(gb.RecipeError, match="term: must be a function of"):
        gb.metrics.mean(lambda y: y)
