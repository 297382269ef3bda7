"""XENDCG: its derivatives against LightGBM's formulas, numerical derivatives and the bounds that it states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.numerics.random_numbers import uniform_bits
from gpuboost.errors import InputError, RecipeError, UnprovenError
from gpuboost.keys import Key, Stream
from gpuboost.losses import XENDCG
from gpuboost.recipe import Recipe
from gpuboost.reports.report import verdict
from gpuboost.steps import GradientStep
from gpuboost.types import TrainingSet

Array = np.ndarray
KEY = Key.root(5) / Stream.SCORE_NOISE / 3


def derivatives(y: Array, z: Array, curvature: float | None = None, copies: int = 1) -> tuple[Array, Array]:
    """(copies, n) g and h of one list, each copy with its own gammas."""
    n = len(y)
    data = TrainingSet(None, None, np.tile(y, copies), query_start=np.arange(0, copies * n + 1, n))
    found = Cpu(1).drawn_gradients(XENDCG(), np.tile(z, copies)[None], data, curvature, KEY)
    return found.g.reshape(copies, n).astype(np.float64), found.h.reshape(copies, n).astype(np.float64)


def cross_entropy(y: Array, z: Array, gamma: Array) -> float:
    """-sum p log softmax(z), written out."""
    phi = 2.0**y - gamma
    return float(-(phi / phi.sum()) @ (z - z.max() - np.log(np.exp(z - z.max()).sum())))


def of_lightgbm(y: Array, z: Array, gamma: Array) -> tuple[Array, Array]:
    """``RankXENDCG::GetGradientsForOneQuery`` of LightGBM, in NumPy."""
    rho = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
    phi = 2.0**y - gamma
    term = rho - phi / phi.sum()
    g = term.copy()
    for _ in range(2):
        ratio = term / (1.0 - rho)
        term = rho * (ratio.sum() - ratio)
        g += term
    return g, rho * (1.0 - rho)


def case(n: int, seed: int) -> tuple[Array, Array, Array]:
    """Labels, scores, and the gammas of the stream."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 5, n).astype(float), 2.0 * rng.normal(size=n), uniform_bits(n, KEY / 0) * 2.0**-32


@pytest.mark.parametrize("n", [2, 3, 33, 200])
def test_derivatives_are_lightgbms(n: int) -> None:
    y, z, gamma = case(n, n)
    (g,), (h,) = derivatives(y, z)
    g_expected, h_expected = of_lightgbm(y, z, gamma)
    np.testing.assert_allclose(g, g_expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(h, h_expected, rtol=1e-6)


def test_the_plain_gradient_is_the_derivative_of_the_loss() -> None:
    y, z, gamma = case(7, 1)
    (g,), (h,) = derivatives(y, z, 0.5)
    for i in range(7):
        step = 1e-6 * np.eye(7)[i]
        slope = (cross_entropy(y, z + step, gamma) - cross_entropy(y, z - step, gamma)) / 2e-6
        assert g[i] == pytest.approx(slope, abs=1e-6)
    assert (h == 0.5).all()
    assert abs(g.sum()) < 1e-6


def test_the_terms_approximate_newtons_direction() -> None:
    """-g / h is nearer to the solution of the whole system than the step by the diagonal alone."""
    for seed in range(20):
        y, z, gamma = case(30, seed)
        z *= 0.3
        rho = np.exp(z) / np.exp(z).sum()
        phi = 2.0**y - gamma
        first = rho - phi / phi.sum()
        whole = np.linalg.pinv(np.diag(rho) - np.outer(rho, rho)) @ first
        (g,), (h,) = derivatives(y, z)

        def away(step: Array, whole: Array = whole) -> float:
            centred = step - step.mean()
            return float(np.abs(centred - whole).max())

        assert away(g / h) < 0.2 * away(first / (rho * (1.0 - rho)))


def test_gammas_differ_from_round_to_round_and_the_mean_has_a_fixed_objective() -> None:
    """The mean gradient is softmax(z) less the mean of p."""
    y, z = np.array([0.0, 2.0, 1.0]), np.array([0.3, -0.2, 0.9])
    g, _ = derivatives(y, z, 0.5, copies=20_000)
    rng = np.random.default_rng(0)
    phi = 2.0**y - rng.random((200_000, 3))
    expected = np.exp(z) / np.exp(z).sum() - (phi / phi.sum(axis=1, keepdims=True)).mean(axis=0)
    assert (g.std(axis=0) > 0.02).all()
    np.testing.assert_allclose(g.mean(axis=0), expected, atol=4.5 * g.std(axis=0).max() / np.sqrt(20_000) + 1e-3)


@pytest.mark.parametrize("spread", [0.0, 1.0, 40.0, 1e6, 1e300])
def test_derivatives_are_bounded(spread: float) -> None:
    """|g| sums to 6 at most with Newton's terms, and each is 1 at most without; also where one document is all."""
    rng = np.random.default_rng(1)
    for n in (2, 5, 40):
        y, z = rng.integers(0, 32, n).astype(float), spread * rng.normal(size=n)
        g, h = derivatives(y, z, copies=50)
        assert np.abs(g).sum(axis=1).max() <= 6.0 * (1.0 + 1e-6)
        assert (h >= 0.0).all()
        assert h.max() <= 0.25
        assert np.abs(derivatives(y, z, 0.5, copies=50)[0]).max() <= 1.0


def test_verdicts_say_what_theory_gives() -> None:
    """Sound with Langevin noise and gradient steps; Newton's terms are no gradient."""
    assert verdict(Recipe(XENDCG(), 5, step=GradientStep(), langevin=gb.Langevin())).kind == "sound"
    with pytest.raises(UnprovenError, match="step: the theorem of Langevin boosting"):
        verdict(Recipe(XENDCG(), 5, langevin=gb.Langevin()))
    plain = verdict(Recipe(XENDCG(), 5))
    assert plain.kind == "heuristic"
    assert "random estimates" in plain.reasons[0]


def ranking(queries: int, seed: int) -> tuple[Array, Array, Array]:
    """Documents, labels 0 to 2, and sizes of the queries."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 12, queries)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.digitize(X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.5 * rng.normal(size=len(X)), [0.5, 1.5])
    return X, y, sizes


def test_a_ranker_learns_an_order() -> None:
    """Far better than the order of a constant, on queries that it was not trained on."""
    X, y, group = ranking(60, 0)
    X_new, y_new, group_new = ranking(60, 1)
    few = {"max_depth": 3, "random_state": 0, "n_jobs": 1}
    scores = [
        gb.GradientBoostingRanker("xendcg", n_estimators=rounds, **few)
        .fit(X, y, group=group)
        .score(X_new, y_new, group=group_new)
        for rounds in (0, 60)
    ]
    assert scores[1] > scores[0] + 0.15


@pytest.mark.parametrize(
    ("given", "y", "kind", "message"),
    [
        ({"step": gb.LineSearchStep()}, None, RecipeError, "step: a line search needs values of the objective"),
        ({"sampling": gb.ImportanceSampling(0.5, variance_control="node")}, None, RecipeError, "drawn anew in each"),
        ({}, 40, InputError, r"y: XENDCG needs labels that are whole numbers from 0 to 31; row 0 holds 40\.0"),
        ({}, 0.5, InputError, r"y: XENDCG needs labels .* row 0 holds 0\.5"),
        ({}, -1, InputError, r"y: XENDCG needs labels .* row 0 holds -1\.0"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], y: Any, kind: type[Exception], message: str) -> None:
    X, labels, group = ranking(5, 0)
    if y is not None:
        labels = np.where(np.arange(len(labels)) == 0, y, labels)
    with pytest.raises(kind, match=message):
        gb.GradientBoostingRanker("xendcg", n_estimators=2, **given).fit(X, labels, group=group)


def test_peers_name_is_answered() -> None:
    with pytest.raises(InputError, match="Did you mean 'xendcg'"):
        gb.GradientBoostingRanker("rank_xendcg").fit([[0.0], [1.0]], [0, 1], group=[2])
