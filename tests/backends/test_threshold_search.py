"""Search for a threshold: by a kernel the bits of the definition, from counts the same integers as from every row."""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.rules import PROBABILITY_RULES

from gpuboost.backends.cpu.sampling.threshold_search import FEW, SearchByKernel, ThreadedRowSums, search_among
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics.probabilities import GossRule, ProbabilityRule, ThresholdRule, TrimmingRule
from gpuboost.backends.numerics.threshold import SearchBySums
from gpuboost.backends.reference.sampling import counts_of
from gpuboost.kernels.sampling import importance as sampling

Array = np.ndarray
TEAMS = [ThreadPool(1), ThreadPool(3)]
KINDS = ("uniform", "wide", "very wide", "ties", "few values", "half zero", "tiny", "huge", "one positive", "zero")


def scores_of(kind: str, n: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    made = {
        "uniform": lambda: rng.random(n),
        "wide": lambda: np.exp(6.0 * rng.standard_normal(n)),
        "very wide": lambda: np.exp(30.0 * rng.standard_normal(n)),
        "ties": lambda: np.ones(n),
        "few values": lambda: rng.integers(0, 4, n).astype(float),
        "half zero": lambda: np.where(rng.random(n) < 0.5, 0.0, rng.random(n)),
        "tiny": lambda: 2.0 ** (-126 + rng.integers(-2, 4, n)) * (1.0 + rng.random(n)),
        "huge": lambda: 3e38 * rng.random(n),
        "one positive": lambda: np.arange(n) == n // 2,
        "zero": lambda: np.zeros(n),
    }[kind]()
    return np.where(made >= 2.0**-126, np.minimum(made, 3e38), 0.0).astype(np.float32)


def scale_for(mu: float, n: int) -> float:
    """That of ``threshold.rho_for_rate``."""
    return ldexp(1.0, 62 - n.bit_length() - frexp(mu)[1])


def by_every_row(scores: Array, mu: float, low: float, scale: float) -> tuple[int, ...]:
    s = scores.astype(np.float64)
    above, below = s >= mu, s < low
    between = np.rint(s[~above & ~below] * scale).astype(np.int64)
    return int(above.sum()), int(below.sum()), int(between.sum())


@settings(max_examples=examples(150))
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 700),
    seed=st.integers(0, 10**6),
    mus=st.lists(st.floats(1e-44, 3e38) | st.floats(1e-3, 10.0), min_size=1, max_size=3),
    floor=st.sampled_from([0.0, 1e-6, 0.01, 0.5, 1.0]),
)
def test_sums_are_those_of_every_row(kind: str, n: int, seed: int, mus: list[float], floor: float) -> None:
    scores = scores_of(kind, n, seed)
    sums = ThreadedRowSums(scores, counts_of(scores), TEAMS[0], Workspace())
    middle = max(float(np.median(scores.astype(np.float64))), 1e-3)
    for mu in [*mus, middle]:  # one after the other, as Newton's steps are
        scale = scale_for(mu, n)
        assert sums.three_sums(mu, floor * mu, scale) == by_every_row(scores, mu, floor * mu, scale)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("floor", [0.0, 0.01])
def test_threads_share_the_rows(kind: str, floor: float) -> None:
    n = 40_003
    scores = scores_of(kind, n, 1)
    counts = counts_of(scores)
    for mu in (0.9, 0.03):
        scale = scale_for(mu, n)
        for team in TEAMS:
            found = ThreadedRowSums(scores, counts, team, Workspace()).three_sums(mu, floor * mu, scale)
            assert found == by_every_row(scores, mu, floor * mu, scale)


@pytest.mark.parametrize(("start", "stop"), [(0, 1000), (3, 67), (5, 5), (936, 1000)])
def test_buckets_are_taken_in_order_of_rows(start: int, stop: int) -> None:
    scores = scores_of("few values", 1000, 0)
    one, two = (int(np.float32(x).view(np.uint32) >> 20) for x in (1.0, 2.0))
    out = np.empty(1000, np.float32)
    count = sampling.take_buckets(scores, start, stop, one, two, out)
    part = scores[start:stop]
    assert np.array_equal(out[:count], part[(part == 1.0) | (part == 2.0)])


def both(scores: Array) -> tuple[SearchByKernel, SearchBySums]:
    """The search of few rows, which may overwrite its counts, and that of many, by the definition."""
    counts, workspace = counts_of(scores), Workspace()
    by_kernel = SearchByKernel(scores, np.array([counts.rows, counts.significands]), workspace)
    return by_kernel, SearchBySums(counts, ThreadedRowSums(scores, counts, TEAMS[0], workspace))


SCORES = st.lists(
    st.floats(0.0, float(np.finfo(np.float32).max), width=32, allow_subnormal=False)
    | st.sampled_from([0.0, 1.0, 2.0**-126, 1.0 + 2.0**-23]),
    min_size=1,
    max_size=200,
).map(lambda scores: np.array(scores, np.float32))
MADE = st.builds(scores_of, st.sampled_from(KINDS), st.integers(1, 3000), st.integers(0, 10**6))
SHARES = st.floats(1e-6, 1.0) | st.sampled_from([1e-30, 0.1, 0.5, 1.0])
RULES = (
    st.sampled_from(PROBABILITY_RULES)
    | st.builds(lambda rate, share: ThresholdRule(rate, floor=share * rate), SHARES, SHARES | st.just(0.0))
    | st.builds(lambda top, share: GossRule(top, share * (1.0 - top)), st.floats(1e-6, 0.999), SHARES)
    | st.builds(TrimmingRule, SHARES)
)


@settings(max_examples=examples(600))
@given(scores=SCORES | MADE, rule=RULES)
def test_one_kernel_finds_the_parameters_of_the_definition(scores: Array, rule: ProbabilityRule) -> None:
    by_kernel, by_sums = both(scores)
    assert np.array(rule.solve(by_kernel)).tobytes() == np.array(rule.solve(by_sums)).tobytes()


@pytest.mark.parametrize("rule", PROBABILITY_RULES, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_one_kernel_searches_among_few_rows_of_every_kind(kind: str, rule: ProbabilityRule) -> None:
    by_kernel, by_sums = both(scores_of(kind, 9_001, 3))
    assert np.array(rule.solve(by_kernel)).tobytes() == np.array(rule.solve(by_sums)).tobytes()


def test_many_rows_are_shared_out() -> None:
    for n, kind in ((FEW - 1, SearchByKernel), (FEW, SearchBySums)):
        assert type(search_among(np.ones(n, np.float32), np.zeros((2, 2048), int), TEAMS[0], Workspace())) is kind
