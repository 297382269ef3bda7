"""StochasticRank: its estimates against numerical derivatives of the smoothed metric, their bound, and small noise."""

from __future__ import annotations

from itertools import permutations
from math import erf, exp, pi, sqrt
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.reference.smoothed_ranking import projected
from gpuboost.errors import InputError, RecipeError, UnprovenError
from gpuboost.keys import Key, Stream
from gpuboost.losses import LambdaMART, StochasticRank
from gpuboost.metrics import get
from gpuboost.recipe import Recipe
from gpuboost.reports.report import verdict
from gpuboost.steps import GradientStep
from gpuboost.types import TrainingSet

Array = np.ndarray
MACHINE = Cpu(1)
LISTS: list[tuple[Array, Array, dict[str, Any]]] = [
    (np.array([0.0, 2.0]), np.array([0.3, -0.1]), {"truncation": 1}),
    (np.array([1.0, 0.0, 3.0]), np.array([0.5, 0.4, -0.3]), {"truncation": 2, "mu": 0.4}),
    (np.array([2.0, 0.0, 1.0, 0.0]), np.array([0.2, 0.9, 0.9, -0.4]), {"truncation": None, "sigma": 0.5}),
]


def copies(loss: StochasticRank, y: Array, z: Array, draws: int) -> Array:
    """(draws, n) estimates of the gradient of one list, each of a copy of the list with its own noise."""
    n = len(y)
    data = TrainingSet(None, None, np.tile(y, draws), query_start=np.arange(0, draws * n + 1, n))
    key = Key.root(5) / Stream.SCORE_NOISE / 3
    g = MACHINE.drawn_gradients(loss, np.tile(z, draws)[None], data, 1.0, key).g
    return g.reshape(draws, n).astype(np.float64)


def loss_of_order(loss: StochasticRank, y: Array, order: tuple[int, ...]) -> float:
    """1 - NDCG of the documents in this order, written out."""
    gain, counted = 2.0**y - 1.0, min(loss.truncation or len(y), len(y))
    discount = 1.0 / np.log2(np.arange(counted) + 2.0)
    return 1.0 - float(gain[list(order)][:counted] @ discount / (np.sort(gain)[::-1][:counted] @ discount))


def smoothed(loss: StochasticRank, y: Array, z: Array, noise: Array) -> Array:
    """(m,) 1 - NDCG with each line of noise; its mean is the smoothed metric."""
    scores = (z - loss.sigma * loss.mu * y) + loss.sigma * noise
    powers = len(y) ** np.arange(len(y))
    table = np.zeros(len(y) ** len(y))
    for order in permutations(range(len(y))):
        table[np.dot(order, powers)] = loss_of_order(loss, y, order)
    return table[np.argsort(-scores, axis=1, kind="stable") @ powers]


@pytest.mark.parametrize(("y", "z", "given"), LISTS)
def test_estimates_are_unbiased(y: Array, z: Array, given: dict[str, Any]) -> None:
    """Their mean is the numerical derivative of the smoothed metric, with the same noise on both sides of z."""
    loss = StochasticRank(**given)
    estimates = copies(loss, y, z, 20_000)
    noise, step = np.random.default_rng(0).normal(size=(100_000, len(y))), 0.05 * loss.sigma
    for i in range(len(y)):
        moved = np.eye(len(y))[i] * step
        slopes = (smoothed(loss, y, z + moved, noise) - smoothed(loss, y, z - moved, noise)) / (2.0 * step)
        error = sqrt(slopes.var() / len(slopes) + estimates[:, i].var() / len(estimates))
        curved = 0.05**2 / loss.sigma  # of the difference quotient: third derivatives are below 6 / sigma^3
        assert abs(estimates[:, i].mean() - slopes.mean()) < 4.5 * error + curved


def test_two_documents_have_the_known_derivative() -> None:
    """E[1 - NDCG] = c Phi(-(z_1 - z_2) / (sqrt(2) sigma)), c being the loss of the wrong order."""
    loss, y, z = StochasticRank(sigma=0.7), np.array([2.0, 0.0]), np.array([0.4, 0.1])
    wrong, spread = loss_of_order(loss, y, (1, 0)), 0.7 * sqrt(2.0)
    slope = -wrong * exp(-0.5 * (0.3 / spread) ** 2) / (sqrt(2.0 * pi) * spread)
    estimates = copies(loss, y, z, 20_000)
    error = estimates.std(axis=0) / sqrt(len(estimates))
    assert (np.abs(estimates.mean(axis=0) - [slope, -slope]) < 4.5 * error).all()


@pytest.mark.parametrize("sigma", [0.01, 1.0, 30.0])
def test_estimates_are_bounded(sigma: float) -> None:
    """Also where scores tie, or are far apart; two documents come near the bound."""
    rng = np.random.default_rng(1)
    loss = StochasticRank(sigma=sigma, truncation=None)
    assert loss.lipschitz is not None
    for n, spread in ((2, 0.0), (5, 1.0), (40, 100.0)):
        y, z = rng.integers(0, 5, n).astype(float), spread * sigma * rng.normal(size=n)
        assert np.abs(copies(loss, y, z, 300)).max() <= loss.lipschitz
    near = copies(StochasticRank(sigma=sigma, truncation=1), np.array([4.0, 0.0]), np.zeros(2), 1000)
    assert 0.99 * loss.lipschitz < np.abs(near).max() <= loss.lipschitz * (1.0 + 1e-6)


def test_the_bound_of_the_curvature_holds() -> None:
    """Of two documents the curvature along (1, -1) / sqrt(2) is c x phi(x) / sigma^2, x = d / (sqrt(2) sigma)."""
    x = np.linspace(-4.0, 4.0, 2001)
    largest = float(np.max(np.abs(x) * np.exp(-0.5 * x * x) / sqrt(2.0 * pi)))
    for sigma in (0.1, 1.0, 3.0):
        bound = StochasticRank(sigma=sigma).smoothness
        assert bound is not None
        assert 0.45 * bound < largest / sigma**2 <= bound


def test_small_noise_gives_the_metric_and_ties_their_worst_order() -> None:
    """As sigma goes to 0 (consistent smoothing); a tie has the mean over its orders, and with mu its worst order."""
    y, z, noise = np.array([0.0, 2.0, 1.0]), np.array([0.0, 1.0, 0.4]), np.random.default_rng(2).normal(size=(4000, 3))
    metric = 1.0 - get("ndcg", LambdaMART())(y, z[None], None, LambdaMART(), np.array([0, 3]))
    distances = [abs(smoothed(StochasticRank(sigma=s), y, z, noise).mean() - metric) for s in (1.0, 0.3, 0.1, 0.01)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-12
    tie, pair = np.array([2.0, 0.0]), noise[:, :2]
    wrong = loss_of_order(StochasticRank(), tie, (1, 0))
    for mu, share in ((0.0, 0.5), (0.5, 0.5 * (1.0 + erf(0.5))), (3.0, 1.0)):
        seen = smoothed(StochasticRank(sigma=1e-3, mu=mu), tie, np.zeros(2), pair).mean()
        assert seen == pytest.approx(wrong * share, abs=0.03 * wrong)


def test_several_draws_are_averaged() -> None:
    y, z = np.array([0.0, 2.0, 1.0, 0.0]), np.array([0.1, 0.0, -0.2, 0.3])
    one, nine = (copies(StochasticRank(samples=samples), y, z, 4000) for samples in (1, 9))
    assert nine.var(axis=0).sum() == pytest.approx(one.var(axis=0).sum() / 9.0, rel=0.15)
    np.testing.assert_allclose(nine.mean(axis=0), one.mean(axis=0), atol=0.01)


def test_the_scale_free_estimate_moves_neither_the_mean_nor_the_size_of_scores() -> None:
    y, z = np.array([0.0, 2.0, 1.0, 0.0, 3.0]), 50.0 * np.random.default_rng(3).normal(size=5)
    g = copies(StochasticRank(sigma=40.0, scale_free=True), y, z, 200)
    centred = z - z.mean()
    assert np.abs(g).max() > 1e-4
    assert np.abs(g.sum(axis=1)).max() < 1e-8
    assert np.abs(g @ centred).max() < 1e-3 * np.abs(g).max() * np.abs(centred).sum()  # not 0, as nu is not
    np.testing.assert_allclose(projected(np.array([1.0, 3.0]), np.zeros(2)), [-1.0, 1.0])


def test_verdicts_say_what_theory_gives() -> None:
    """Sound with Langevin noise: the objective is fixed and smooth, estimates are bounded. Scale-free it is not."""

    def noisy(loss: StochasticRank) -> Any:
        return verdict(Recipe(loss, 5, step=GradientStep(), langevin=gb.Langevin()))

    assert noisy(StochasticRank()).kind == "sound"
    assert noisy(StochasticRank(scale_free=True)).kind == "heuristic"
    assert "gradient of no fixed" in noisy(StochasticRank(scale_free=True)).reasons[0]
    with pytest.raises(UnprovenError, match=r"from 2 on steps are not stable.*Use a learning_rate below 0\.0413"):
        noisy(StochasticRank(sigma=0.1))
    plain = verdict(Recipe(StochasticRank(), 5, step=GradientStep()))
    assert plain.kind == "heuristic"
    assert "random estimates" in plain.reasons[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sigma": 0.0}, "sigma: StochasticRank needs a number from 1e-06 to 1e"),
        ({"mu": -1.0}, "mu: StochasticRank needs a number from 0 to"),
        ({"samples": 0}, "samples: StochasticRank needs a whole number from 1 to 1000; got 0"),
        ({"samples": 2.5}, "samples: StochasticRank needs a whole number"),
        ({"scale_free": 1}, "scale_free: StochasticRank needs True or False"),
        ({"truncation": 0}, "truncation: StochasticRank needs a whole number of places"),
        ({"gain": (1.0, 0.0)}, "gain: StochasticRank needs numbers of 0 or more that do not fall"),
    ],
)
def test_wrong_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        StochasticRank(**given)


def ranking(queries: int, seed: int) -> tuple[Array, Array, Array]:
    """Documents, labels 0 to 2, and sizes of the queries."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 12, queries)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.digitize(X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.5 * rng.normal(size=len(X)), [0.5, 1.5])
    return X, y, sizes


@pytest.mark.parametrize(("loss", "rate"), [(StochasticRank(), 5.0), (StochasticRank(scale_free=True, samples=2), 0.3)])
def test_a_ranker_learns_an_order(loss: StochasticRank, rate: float) -> None:
    """Far better than the order of a constant, on queries that it was not trained on."""
    X, y, group = ranking(60, 0)
    X_new, y_new, group_new = ranking(60, 1)
    few = {"max_depth": 3, "reg_lambda": 0.0, "random_state": 0, "n_jobs": 1, "learning_rate": rate}
    scores = [
        gb.GradientBoostingRanker(loss, n_estimators=rounds, **few)
        .fit(X, y, group=group)
        .score(X_new, y_new, group=group_new)
        for rounds in (0, 60)
    ]
    assert scores[1] > scores[0] + 0.15


def test_draws_of_a_ranker_have_uncertainty() -> None:
    X, y, group = ranking(30, 2)
    few = {"max_depth": 2, "learning_rate": 0.5, "random_state": 0, "n_jobs": 1}
    noise = gb.Langevin(temperature=0.01, shrinkage=0.3)
    model = gb.GradientBoostingRanker(
        "stochastic_rank", n_estimators=80, langevin=noise, posterior_samples=20, **few
    ).fit(X, y, group=group)
    assert model.guarantee_.kind == "stationary law"
    members = model.posterior_members(X)
    assert members.shape == (20, 1, len(X))
    alone, within = model.predict_uncertainty(X), model.predict_uncertainty(X, group=group)
    np.testing.assert_allclose(alone.knowledge, members[:, 0].var(axis=0))
    assert np.isnan(alone.data).all()
    first = members[:, 0, : group[0]]
    np.testing.assert_allclose(within.knowledge[: group[0]], (first - first.mean(axis=1)[:, None]).var(axis=0))
    with pytest.raises(InputError, match="group: "):
        model.predict_uncertainty(X, group=[1, 2])
    with pytest.raises(RecipeError, match="posterior_samples: draws come from a chain"):
        gb.GradientBoostingRanker(posterior_samples=3).fit(X, y, group=group)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"step": "newton"}, "step: a Newton step divides by the second derivative"),
        ({"step": gb.LineSearchStep()}, "step: a line search needs values of the objective"),
        ({"sampling": gb.ImportanceSampling(0.5, score="hessian")}, "score='hessian' is undefined for loss"),
        ({"sampling": gb.ImportanceSampling(0.5, variance_control="node")}, "are drawn anew in each round"),
    ],
)
def test_compositions_that_mean_nothing_are_refused(given: dict[str, Any], message: str) -> None:
    X, y, group = ranking(5, 0)
    with pytest.raises(RecipeError, match=message):
        gb.GradientBoostingRanker("stochastic_rank", n_estimators=2, **given).fit(X, y, group=group)
