"""Calibration, scores and pictures of intervals, whatever model they are of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import gpuboost as gb

matplotlib = pytest.importorskip("matplotlib")

Array = np.ndarray
FEW: dict[str, Any] = {"n_estimators": 120, "max_depth": 2, "learning_rate": 0.3, "random_state": 0}


def rows(n: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, size=(n, 2))
    return x, x[:, 0] + (0.2 + np.abs(x[:, 1])) * rng.normal(size=n)


@pytest.fixture(autouse=True)
def off_screen() -> Iterator[None]:
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def source(name: str) -> tuple[Any, dict[str, Any]]:
    """A model with intervals, and the options of ``predict_interval`` for intervals of targets."""
    x, y = rows(1_500, 0)
    if name == "gaussian_nll":
        return gb.GradientBoostingRegressor(loss=name, **FEW).fit(x, y), {}
    if name == "quantiles":
        loss = gb.losses.Quantile([0.1, 0.25, 0.75, 0.9])
        return gb.GradientBoostingRegressor(loss=loss, min_samples_leaf=50, **FEW).fit(x, y), {}
    if name == "posterior":
        langevin = gb.Langevin(shrinkage=0.2, inverse_temperature=len(y) / float(np.var(y - x[:, 0])))
        return gb.GradientBoostingRegressor(langevin=langevin, **FEW).fit(x, y), {"kind": "observation", "samples": 10}
    return gb.conformal(gb.GradientBoostingRegressor(**FEW).fit(x, y), *rows(1_000, 1)), {}


@pytest.mark.parametrize("name", ["gaussian_nll", "quantiles", "posterior", "conformal"])
def test_every_source_of_intervals_is_judged_and_drawn(name: str) -> None:
    model, options = source(name)
    x, y = rows(1_000, 2)
    found = gb.posterior.interval_calibration(model, x, y, **options)
    assert len(found.promised) == (2 if name == "quantiles" else 10)
    assert found.error < {"posterior": 0.2, "conformal": 0.05}.get(name, 0.1)
    assert (found.counts == 1_000).all()
    gb.plot.calibration(found)
    coverage = 0.8 if name == "quantiles" else 0.9
    ax = gb.plot.intervals(model, x, y, coverage=coverage, **options)
    low, high = model.predict_interval(x, coverage, **options).T
    inside = (low <= y) & (y <= high)
    assert ax.get_title() == f"{inside.mean():.1%} inside, mean width {np.mean(high - low):.4g}"
    drawn_inside, drawn_outside = (len(line.get_xdata()) for line in ax.get_lines())
    assert (drawn_inside, drawn_outside) == (inside.sum(), 1_000 - inside.sum())
    along = gb.plot.intervals(model, x, coverage=coverage, along=x[:, 1], **options)
    np.testing.assert_allclose([segment[0, 0] for segment in along.collections[0].get_segments()], x[:, 1])


def test_the_interval_score_by_hand() -> None:
    y, bounds = [0.0, 5.0, -1.0], [[-1.0, 1.0], [0.0, 4.0], [0.0, 2.0]]
    assert gb.posterior.interval_score(y, bounds, 0.8) == pytest.approx((2.0 + (4.0 + 10.0) + (2.0 + 10.0)) / 3)


def test_the_interval_score_is_least_at_the_true_quantiles() -> None:
    y = np.random.default_rng(0).normal(size=20_000)
    scores = [
        gb.posterior.interval_score(y, np.tile([-half, half], (len(y), 1)), 0.9) for half in (1.2, norm.ppf(0.95), 2.2)
    ]
    assert scores[1] < min(scores[0], scores[2])


def test_crps_is_the_integral_of_its_definition() -> None:
    for y, mean, std in ((0.3, 0.0, 1.0), (-2.0, 1.0, 0.5), (4.0, 4.0, 3.0)):
        below = quad(lambda t, m=mean, s=std: norm.cdf(t, m, s) ** 2, mean - 12 * std, y)[0]
        above = quad(lambda t, m=mean, s=std: norm.sf(t, m, s) ** 2, y, mean + 12 * std)[0]
        assert gb.posterior.crps([y], [mean], [std]) == pytest.approx(below + above, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gb.posterior.interval_score([1.0], [[0.0, 1.0]], 1.0), "coverage: must be a number between 0 and 1"),
        (lambda: gb.posterior.interval_score([1.0], [[0.0, 1.0]] * 2, 0.5), "y: must hold one target for each of 2"),
        (lambda: gb.posterior.interval_score([1.0], [0.0], 0.5), "bounds: must be two numbers"),
        (lambda: gb.posterior.interval_score([np.nan], [[0.0, 1.0]], 0.5), "y: must be finite numbers"),
        (lambda: gb.posterior.crps([1.0], [1.0], [0.0]), "std: must be positive; the least is 0.0"),
        (lambda: gb.posterior.crps([1.0], [1.0, 2.0], [1.0]), "mean, std: one for each of 1 rows"),
        (lambda: gb.posterior.interval_calibration(3, [[1.0]], [1.0]), "model: must have predict_interval"),
        (lambda: gb.plot.intervals(3, [[1.0]]), "model: must have predict_interval"),
    ],
)
def test_bad_input_is_refused(call: Any, words: str) -> None:
    with pytest.raises(gb.InputError, match=words):
        call()
