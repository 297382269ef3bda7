"""Posterior quality: intervals hold what they promise where the truth is known. Seeds are fixed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gpuboost as gb

Array = np.ndarray
SHRINKAGES = (0.1, 0.2, 0.4)


def waves(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 3))
    return x, np.sin(2.0 * x[:, 0]) + x[:, 1] * (x[:, 2] > 0.0)


def friedman(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    x = rng.random((n, 5))
    bends = 2.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 4.0 * (x[:, 2] - 0.5) ** 2
    return x, bends + 2.0 * x[:, 3] + x[:, 4]


def held_out_loss(model: gb.GradientBoostingRegressor, x: Array, y: Array) -> float:
    """Negative log-likelihood of new targets under the posterior predictive, whose noise has variance 1."""
    found = model.predict_uncertainty(x)
    return float(np.mean(0.5 * np.log(found.total) + 0.5 * (y - found.mean) ** 2 / found.total))


@pytest.mark.slow
@pytest.mark.parametrize("make", [waves, friedman])
def test_intervals_cover_the_truth_as_often_as_they_say(make: Callable[..., tuple[Array, Array]]) -> None:
    """All at the defaults but for the rounds; the prior's scale is chosen by held-out likelihood, not by the truth."""
    inside: dict[float, list[float]] = {0.5: [], 0.9: [], 0.95: []}
    for seed in range(2):
        rng = np.random.default_rng(seed)
        (x, f), (x_new, f_new) = make(500, rng), make(500, rng)
        y, y_new = f + rng.normal(size=500), f_new + rng.normal(size=500)
        models = [
            gb.GradientBoostingRegressor(
                n_estimators=2000, langevin=gb.Langevin(shrinkage=gamma), posterior_samples=100, random_state=seed
            ).fit(x, y)
            for gamma in SHRINKAGES
        ]
        best = min(models, key=lambda model: held_out_loss(model, x_new, y_new))
        for coverage, found in inside.items():
            low, high = best.predict_interval(x_new, coverage).T
            found.append(np.mean((low < f_new) & (f_new < high)))
    for coverage, found in inside.items():
        assert np.mean(found) == pytest.approx(coverage, abs=0.05)
