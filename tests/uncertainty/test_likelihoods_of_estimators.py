"""Models of mean and spread of amounts and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb

RNG = np.random.default_rng(4)
N = 3_000
X = RNG.normal(size=(N, 3))
MEAN, SHAPE = np.exp(1.0 + 0.5 * X[:, 0]), np.exp(1.0 + X[:, 1])
TARGETS = {
    "log_normal_nll": np.exp(np.log(MEAN) + RNG.normal(size=N) / np.sqrt(SHAPE)),
    "gamma_nll": MEAN * RNG.gamma(SHAPE, 1.0 / SHAPE),
    "negative_binomial_nll": RNG.poisson(MEAN * RNG.gamma(SHAPE, 1.0 / SHAPE)).astype(float),
}
SPREADS = {
    "log_normal_nll": MEAN * np.exp(0.5 / SHAPE) * np.sqrt(np.expm1(1.0 / SHAPE)),
    "gamma_nll": MEAN / np.sqrt(SHAPE),
    "negative_binomial_nll": np.sqrt(MEAN + MEAN**2 / SHAPE),
}


MEANS = dict.fromkeys(TARGETS, MEAN) | {"log_normal_nll": MEAN * np.exp(0.5 / SHAPE)}


def fitted(name: str, **options: Any) -> gb.GradientBoostingRegressor:
    settings: dict[str, Any] = {"n_estimators": 50, "max_depth": 3, "random_state": 0, "n_jobs": 2} | options
    return gb.GradientBoostingRegressor(loss=name, **settings).fit(X[:2_000], TARGETS[name][:2_000])


@pytest.mark.parametrize("name", TARGETS)
def test_the_spread_is_learned_and_intervals_cover(name: str) -> None:
    """Held-out coverage of 1,000 rows, of a model that nothing calibrates; a discrete target adds to it."""
    model, y = fitted(name), TARGETS[name][2_000:]
    both = model.predict(X[2_000:], output="all")
    assert np.corrcoef(np.log(both[:, 0]), np.log(MEANS[name][2_000:]))[0, 1] > 0.95
    assert np.corrcoef(np.log(both[:, 1]), np.log(SPREADS[name][2_000:]))[0, 1] > 0.9
    low, high = model.predict_interval(X[2_000:], 0.9).T
    assert 0.84 <= np.mean((low <= y) & (y <= high)) <= (0.97 if name.startswith("neg") else 0.93)
    assert (low >= 0.0).all()
    with pytest.raises(gb.RecipeError, match="langevin"):
        model.predict_interval(X[:2], kind="mean")


@pytest.mark.parametrize("name", TARGETS)
def test_files_hold_them(name: str) -> None:
    model = fitted(name, n_estimators=3)
    again = gb.loads(gb.dumps(model))
    np.testing.assert_array_equal(again.predict(X, output="all"), model.predict(X, output="all"))


def test_an_exposure_is_an_offset_of_the_logarithm_of_the_mean() -> None:
    exposure = np.exp(np.random.default_rng(0).uniform(-1.0, 1.0, N))
    y = np.random.default_rng(1).poisson(MEAN * exposure).astype(float)
    offset = np.column_stack([np.log(exposure), np.zeros(N)])
    model = gb.GradientBoostingRegressor(loss="negative_binomial_nll", n_estimators=30, max_depth=3, n_jobs=2)
    model.fit(X, y, init_score=offset)
    assert np.corrcoef(model.predict(X, init_score=offset), MEAN * exposure)[0, 1] > 0.97


@pytest.mark.parametrize("name", ["log_normal_nll", "gamma_nll"])
def test_langevin_gives_intervals_of_the_mean_and_none_of_new_targets(name: str) -> None:
    """The logarithm of the mean is normal: the interval is its mean and 1.645 standard deviations of the draws."""
    model = fitted(name, langevin=gb.Langevin(shrinkage=0.8), learning_rate=0.3)
    found = model.predict_uncertainty(X[:5])
    assert np.isfinite(found.total).all()
    logarithms = np.log([model.loss_.inverse_link(scores) for scores in model.posterior_members(X[:5])])
    half = 1.6448536269514722 * logarithms.std(axis=0, ddof=1)
    expected = np.exp(logarithms.mean(axis=0)[:, None] + half[:, None] * [-1.0, 1.0])
    np.testing.assert_allclose(model.predict_interval(X[:5], coverage=0.9), expected, rtol=1e-9)
    with pytest.raises(gb.InputError, match="an interval of observations needs normal noise"):
        model.predict_interval(X[:5], kind="observation")


def _pull(y: Any, score: Any) -> tuple[Any, Any]:
    return score - np.log(y)[:, None], np.ones_like(score)


@pytest.mark.parametrize("link", [None, lambda scores: scores[0] + scores[1] ** 2])
def test_intervals_of_several_custom_scores_are_of_the_predictions(link: Any) -> None:
    loss = gb.losses.custom_arrays(_pull, n_outputs=2, inverse_link=link)
    model = gb.GradientBoostingRegressor(
        loss=loss, langevin=gb.Langevin(shrinkage=0.8), learning_rate=0.3, n_estimators=40, random_state=0
    ).fit(X[:300], TARGETS["gamma_nll"][:300])
    drawn = np.stack([loss.inverse_link(scores) for scores in model.posterior_members(X[:5])])
    half = 1.6448536269514722 * drawn.std(axis=0, ddof=1)
    expected = np.stack([drawn.mean(axis=0) - half, drawn.mean(axis=0) + half], axis=-1)
    np.testing.assert_allclose(model.predict_interval(X[:5], coverage=0.9), expected, rtol=1e-9)
    found = model.predict_uncertainty(X[:5])
    assert found.knowledge.shape == found.data.shape == model.predict(X[:5]).shape


def test_scaled_conformal_intervals_use_the_spread() -> None:
    model = fitted("gamma_nll")
    cover = gb.conformal(model, X[2_000:2_500], TARGETS["gamma_nll"][2_000:2_500], coverage=0.9, method="scaled")
    low, high = cover.predict_interval(X[2_500:]).T
    y = TARGETS["gamma_nll"][2_500:]
    assert 0.84 <= np.mean((low <= y) & (y <= high)) <= 0.96
