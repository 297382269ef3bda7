"""Row sampling: independent coin flips, each a function of (seed, round, row), and weights that undo the bias."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, random_gradients
from support.examples import examples

from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.sampling import EveryRow, UniformSampling

BACKENDS = [Reference(), TEAMS[2]]
KEY = Key.root(4) / "rows" / 2


def gradients(n: int) -> object:
    return random_gradients(np.random.default_rng(n), n, "plain")


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.0001, float("nan"), float("inf")])
def test_a_rate_outside_0_to_1_is_refused(rate: float) -> None:
    with pytest.raises(RecipeError, match=r"sampling: the rate must be in \(0, 1\]; got"):
        UniformSampling(rate)


@pytest.mark.parametrize("rule", [EveryRow(), UniformSampling(1.0)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_all_rows_are_no_list_of_rows(rule: UniformSampling, backend: Backend) -> None:
    sample = rule.draw(backend, gradients(10), KEY)
    assert sample.rows is None
    assert sample.inverse_probability is None
    whole = gradients(10)
    assert backend.weigh(whole, sample) is whole


@settings(max_examples=examples(60))
@given(st.integers(1, 3000), st.integers(1, 3000), st.sampled_from([0.05, 0.5, 0.95]), st.integers(0, 2**64 - 1))
def test_whether_a_row_is_drawn_does_not_depend_on_how_many_there_are(n: int, m: int, rate: float, seed: int) -> None:
    rule, key = UniformSampling(rate), Key.root(seed) / "rows" / 0
    for backend in BACKENDS:
        few, many = (rule.draw(backend, gradients(size), key).rows for size in sorted((n, m)))
        assert np.array_equal(few, many[many < min(n, m)])


def test_a_higher_rate_only_adds_rows() -> None:
    n = 5000
    draws = [UniformSampling(rate).draw(TEAMS[1], gradients(n), KEY).rows for rate in (0.01, 0.2, 0.21, 0.9)]
    for few, more in itertools.pairwise(draws):
        assert np.isin(few, more).all()
        assert len(few) < len(more)


@pytest.mark.parametrize("backend", BACKENDS)
def test_drawn_gradients_are_weighted_by_the_inverse_of_the_rate(backend: Backend) -> None:
    m = np.arange(1, 301, dtype=np.int32)
    whole = random_gradients(np.random.default_rng(0), 300, "plain", m)
    sample = UniformSampling(0.3).draw(backend, whole, KEY)
    drawn = backend.weigh(whole, sample)
    by = np.float32(1.0 / 0.3)
    assert np.array_equal(drawn.g, whole.g[:, sample.rows] * by)
    assert np.array_equal(drawn.h, whole.h[:, sample.rows] * by)
    assert np.array_equal(drawn.multiplicity, m[sample.rows])
    assert drawn.g.dtype == drawn.h.dtype == np.float32


def test_sampled_sums_keep_their_expectation() -> None:
    """TS-1: the mean over 3,000 draws within four standard errors, and Var = sum (1/p - 1) g^2 within a tenth."""
    n, rate, draws = 200, 0.3, 3000
    whole = random_gradients(np.random.default_rng(6), n, "plain")
    g, sums = whole.g[0].astype(float), []
    for step in range(draws):
        sample = UniformSampling(rate).draw(TEAMS[1], whole, Key.root(1) / "rows" / step)
        sums.append(TEAMS[1].weigh(whole, sample).g[0].sum(dtype=float))
    variance = (1.0 / rate - 1.0) * (g * g).sum()
    assert abs(np.mean(sums) - g.sum()) < 4.0 * np.sqrt(variance / draws)
    assert np.var(sums) == pytest.approx(variance, rel=0.1)


def test_rows_are_drawn_independently_of_each_other() -> None:
    """Pairs of neighbours, over 400 rounds: together as often as the square of the rate says, within six deviations."""
    n, rounds, rate = 500, 400, 0.4
    drawn = np.zeros((rounds, n))
    for step in range(rounds):
        drawn[step, UniformSampling(rate).draw(TEAMS[1], gradients(n), Key.root(2) / "rows" / step).rows] = 1.0
    for lag in (1, 2, 3, 4, 5):
        pairs = drawn[:, :-lag] * drawn[:, lag:]
        deviation = np.sqrt(rate**2 * (1.0 - rate**2) / pairs.size)
        assert abs(pairs.mean() - rate**2) < 6.0 * deviation  # pairs overlap, so their variance is a little larger
    between = drawn[:-1] * drawn[1:]
    assert abs(between.mean() - rate**2) < 6.0 * np.sqrt(rate**2 * (1.0 - rate**2) / between.size)


def test_rules_are_compared_by_their_rate() -> None:
    assert UniformSampling(0.5) == UniformSampling(0.5) != UniformSampling(0.6)
    assert EveryRow() == EveryRow()
