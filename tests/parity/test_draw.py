"""Rows drawn by their scores: every machine agrees to the last bit, and thresholds do what they are to do."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import (
    GRADIENT_KINDS,
    TEAMS,
    random_case,
    random_gradients,
)
from support.drawing import cuda, device, drawn, host, several
from support.examples import crossed, examples
from support.rules import KAPPAS, KEY, PROBABILITY_RULES
from support.training import MACHINES, assert_parity

from gpuboost import losses
from gpuboost.backends.cpu.sampling import draws as cpu_sampling
from gpuboost.backends.cpu.sampling import threshold_search
from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.probabilities import GossRule, ProbabilityRule, ThresholdRule, TrimmingRule
from gpuboost.backends.reference.backend import Reference
from gpuboost.backends.reference.sampling import counts_of, probabilities, scores_of
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.kernels.sampling import importance as sampling
from gpuboost.learners import RandomGroups
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import (
    GOSS,
    MVS,
    ImportanceSampling,
    Sampling,
    WeightTrimming,
    smart_first_order,
    smart_second_order,
)
from gpuboost.steps import GradientStep, QuantileStep
from gpuboost.types import Gradients, Limits

Array = np.ndarray
RULES: list[Sampling] = [
    ImportanceSampling(0.3),
    ImportanceSampling(0.3, score="gradient", floor=0.2),
    ImportanceSampling(0.3, score="hessian", floor=0.0),
    ImportanceSampling(0.3, score="loss"),
    ImportanceSampling(0.3, score=5.0, variance_control="none"),
    ImportanceSampling(1.0),
    ImportanceSampling(rho=0.9, floor=0.05),
    ImportanceSampling(0.3, variance_control="node"),
    ImportanceSampling(0.3, variance_control="node", lag=2, eta=0.5),
    ImportanceSampling(0.3, variance_control="previous_leaf", lag=2, eta=0.7),
    ImportanceSampling(1.0, variance_control="node"),
    smart_first_order(rho=0.8, paper=True),
    smart_second_order(0.3),
    smart_second_order(0.3, variance_control="previous_leaf"),
    smart_second_order(1.0, variance_control="previous_leaf"),
    GOSS(0.2, 0.2),
    GOSS(variance_control="none"),
    MVS(0.2),
    WeightTrimming(0.8),
    WeightTrimming(0.7, "gradient", "none"),
]


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small data is shared out as large data is."""
    monkeypatch.setattr(cpu_sampling, "SMALL", 16)
    monkeypatch.setattr(threshold_search, "SMALL", 16)


def assert_same_rows(
    machine: str,
    gradients: Gradients,
    kappa: float,
    rule: ProbabilityRule,
    prices: Array | None = None,
    order: str = "forward",
) -> None:
    """The machine draws the rows of the definition, with its weights."""
    given = gradients, kappa, rule, KEY, prices
    expected = Reference().draw(*given)
    if machine == "cuda":
        assert drawn(cuda(order).draw(*given)) == drawn(expected)
        return
    for backend, few in product(TEAMS.values(), (0, threshold_search.FEW)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threshold_search, "FEW", few)
            found = backend.draw(*given)
        assert drawn(found) == drawn(expected)
        assert found.n_excluded == expected.n_excluded


EACH = pytest.mark.parametrize("machine", MACHINES)


@EACH
@settings(max_examples=examples(150))
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1000, 4095, 4097, 9000]),
    st.sampled_from([1, 1, 3]),
    st.sampled_from(GRADIENT_KINDS),
    st.booleans(),
    st.sampled_from(KAPPAS),
    st.sampled_from(PROBABILITY_RULES),
    st.sampled_from(["forward", "random"]),
)
def test_the_same_rows_with_the_same_weights(
    machine: str, seed: int, n: int, k: int, kind: str, whole: bool, kappa: float, rule: ProbabilityRule, order: str
) -> None:
    assert_same_rows(machine, several(seed, n, k, kind, whole), kappa, rule, order=order)


@EACH
@pytest.mark.parametrize("rule", PROBABILITY_RULES, ids=repr)
def test_losses_in_place_of_gradients(rule: ProbabilityRule, machine: str) -> None:
    gradients, rng = several(1, 2000, 1, "plain", whole=True), np.random.default_rng(2)
    prices = rng.normal(size=2000) * 10.0 ** rng.integers(-50, 50, 2000)  # negative, denormal and infinite as float32
    assert_same_rows(machine, gradients, 0.0, rule, prices)


@EACH
@pytest.mark.parametrize(
    "rule", [PROBABILITY_RULES[0], PROBABILITY_RULES[5], PROBABILITY_RULES[7], PROBABILITY_RULES[9]], ids=repr
)
def test_rows_without_a_score(rule: ProbabilityRule, machine: str) -> None:
    zero = np.zeros((2, 777), np.float32)
    assert_same_rows(machine, Gradients(zero, zero), 0.1, rule)
    some = zero.copy()
    some[0, ::100] = 1e-30
    assert_same_rows(machine, Gradients(some, zero), 0.1, rule)


@EACH
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Softmax(3), losses.Tweedie()], ids=repr)
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
def test_the_loss_of_each_row(loss: Loss, weights: str, machine: str) -> None:
    target = {"binary": "binary", "multiclass": "3", "regression": "positive"}[loss.task]
    data, rng = random_case(4, 300, 3, target=target, weights=weights).data, np.random.default_rng(0)
    scores = rng.normal(size=(loss.n_outputs, 300))
    expected = Reference().losses(loss, scores, data)
    assert expected.shape == (300,)
    if machine == "cuda":
        assert host(cuda().losses(loss, device().upload(scores), data)).tobytes() == expected.tobytes()
        return
    for backend in TEAMS.values():
        assert backend.losses(loss, scores, data).tobytes() == expected.tobytes()
    mean = Reference().loss_value(loss, scores, data.y, data.weight)
    total = 300 if data.weight is None else data.weight.sum()
    assert expected.sum() / total == pytest.approx(mean, rel=1e-12)


# models


@pytest.mark.parametrize(
    ("rule", "loss", "target", "weights", "machine"),
    crossed(
        RULES,
        [
            (losses.Logistic(), "binary", "none"),
            (losses.Softmax(3), "3", "real"),
            (losses.LogitBoost(), "binary", "whole"),
            (losses.Logistic(), "binary", "whole"),
        ],
        MACHINES,
    ),
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_models_are_equal_whatever_the_rule(
    rule: Sampling, loss: Loss, target: str, weights: str, machine: str
) -> None:
    """Six rounds: a device launches the first ones verb by verb, and replays the others."""
    data = random_case(11, 250, 4, target=target, weights=weights).data
    assert_parity(Recipe(loss, 6, 0.5, DepthWise(Limits(12, 4)), rule), data, machine, order="random")


@EACH
@pytest.mark.parametrize(
    ("growth", "rule"),
    crossed(
        [LeafWise(Limits(9, 5)), Oblivious(Limits(8, 3)), DepthWise(Limits(16, 4, 4))],
        [MVS(0.3), smart_second_order(0.3), GOSS(variance_control="none")],
        most=2,
    ),
    ids=repr,
)
def test_models_are_equal_whatever_the_growth(growth: Any, rule: Sampling, machine: str) -> None:
    recipe = Recipe(losses.Logistic(), 4, 0.5, growth, rule)
    assert_parity(recipe, random_case(12, 500, 5, target="binary").data, machine)


@EACH
def test_models_are_equal_whatever_the_step(machine: str) -> None:
    data = random_case(12, 500, 5).data
    absolute = Recipe(losses.AbsoluteError(), 5, 0.5, DepthWise(Limits(8, 3)), MVS(0.3), step=QuantileStep())
    assert_parity(absolute, data, machine)
    huber = replace(absolute, loss=losses.Huber(0.5), step=GradientStep(), learners=RandomGroups(0.5))
    assert_parity(huber, data, machine)


@EACH
@settings(max_examples=examples(24))
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 3, 100, 700, 5_000]),
    st.sampled_from([1, 4, 9, 33]),
    st.sampled_from(RULES),
    st.sampled_from(["none", "real", "whole"]),
    st.sampled_from(["forward", "reverse", "random"]),
)
def test_models_of_every_shape(
    machine: str, seed: int, n: int, d: int, rule: Sampling, weights: str, order: str
) -> None:
    data = random_case(seed, n, d, target="binary", weights=weights).data
    assert_parity(Recipe(losses.Logistic(), 3, 0.5, DepthWise(Limits(8, 3)), rule), data, machine, order=order)


# thresholds


def by_sorting(scores: Array, need: float) -> float:
    """rho by the definition: sort, and take the smallest k that leaves the k + 1st score below 1 / rho."""
    s = np.sort(scores.astype(np.float64))[::-1]
    rest = np.concatenate([np.cumsum(s[::-1])[::-1], [0.0]])
    for k in range(len(s)):
        rho = (need - k) / rest[k]
        if rho * s[k] <= 1.0:
            return rho
    raise AssertionError("fewer rows than needed")


@pytest.mark.parametrize("kind", ["plain", "heavy", "ties", "log-normal", "equal", "two values"])
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_the_rate_is_met(kind: str, rate: float) -> None:
    """TS-2: to 1e-12 relative; and it is the rho that sorting finds."""
    rng, n = np.random.default_rng(8), 20_000
    if kind == "log-normal":
        scores = np.exp(3.0 * rng.normal(size=n)).astype(np.float32)
    elif kind == "equal":
        scores = np.full(n, 0.3, np.float32)
    elif kind == "two values":
        scores = np.where(rng.random(n) < 0.4, 0.3, 0.301).astype(np.float32)
    else:
        scores = scores_of(random_gradients(rng, n, kind), 0.1, None)
    p = probabilities(scores, ThresholdRule(rate=rate))
    assert p.sum() == pytest.approx(rate * n, rel=1e-12)
    expected = np.minimum(1.0, by_sorting(scores, rate * n) * scores.astype(np.float64))
    np.testing.assert_allclose(p, expected, rtol=1e-11)
    for floor in (0.1 * rate, 0.7 * rate):
        floored = probabilities(scores, ThresholdRule(rate=rate, floor=floor))
        assert floored.sum() == pytest.approx(rate * n, rel=1e-12)
        assert floored.min() >= floor


def test_probabilities_rise_with_the_rate_and_do_not_know_the_unit() -> None:
    """TS-2: rho is monotone in the rate, and rho(c s) = rho(s) / c."""
    scores = scores_of(random_gradients(np.random.default_rng(1), 5000, "plain"), 0.1, None)
    last = np.zeros(len(scores))
    for rate in (0.05, 0.1, 0.2, 0.6, 0.99):
        p = probabilities(scores, ThresholdRule(rate=rate))
        assert (p >= last).all()
        last = p
        assert np.array_equal(probabilities(scores * np.float32(2.0**-20), ThresholdRule(rate=rate)), p)
        np.testing.assert_allclose(probabilities(scores * np.float32(3.7), ThresholdRule(rate=rate)), p, rtol=1e-6)


def test_a_rate_that_cannot_be_met_takes_every_row_with_a_score() -> None:
    scores = np.array([0.0] * 70 + [1e-30, 1.0, 1e30] * 10, np.float32)
    p = probabilities(scores, ThresholdRule(rate=0.5))
    assert np.array_equal(p, (scores > 0.0).astype(float))
    floored = probabilities(scores, ThresholdRule(rate=0.4, floor=0.01))
    assert np.array_equal(floored, np.where(scores > 0.0, 1.0, 0.01))
    assert not probabilities(np.zeros(10, np.float32), ThresholdRule(rate=0.5)).any()


@pytest.mark.parametrize("seed", range(5))
def test_ranks_and_masses_are_those_of_sorting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 3000))
    scores = np.abs(np.round(rng.standard_cauchy(n) * 10.0 ** rng.integers(-5, 5), int(rng.choice([1, 3, 9]))))
    scores = scores_of(Gradients(scores.astype(np.float32)[None], np.zeros((1, n), np.float32)), 0.0, None)
    downwards = np.sort(scores)[::-1].astype(np.float64)
    for share in (0.01, 0.3, 0.77, 1.0):
        p = probabilities(scores, GossRule(share, 1.0 - share) if share < 1.0 else TrimmingRule(1.0))
        assert (p[scores > downwards[min(int(np.ceil(share * n)), n) - 1]] == 1.0).all()
        kept = np.flatnonzero(probabilities(scores, TrimmingRule(share)))
        reached = np.cumsum(downwards) >= share * downwards.sum() * (1.0 - 1e-14)
        border = downwards[np.argmax(reached)]
        assert set(kept) == set(np.flatnonzero(scores >= border)) or border == 0.0


def test_one_pass_comes_close() -> None:
    """The first guess, of buckets an eighth of an octave wide, is what a device may stop at: within 2 %."""
    rng, n = np.random.default_rng(5), 200_000
    for scores in (rng.random(n), np.exp(3.0 * rng.normal(size=n)), np.abs(rng.standard_cauchy(n))):
        s = scores.astype(np.float32)
        for rate in (0.1, 0.3):
            rho = threshold.first_guess(counts_of(s), rate * n, 0.0)
            assert np.minimum(1.0, rho * s.astype(float)).sum() == pytest.approx(rate * n, rel=0.02)


def test_gradients_that_are_no_numbers_are_an_error() -> None:
    gradients = several(0, 50, 1, "plain")
    gradients.g[0, 17] = np.nan
    for backend in (Reference(), TEAMS[2]):
        with pytest.raises(InputError, match="loss: gradients must be finite numbers"):
            backend.draw(gradients, 0.1, ThresholdRule(rate=0.5), KEY)


def test_scores_of_more_rows_than_a_packed_count_holds() -> None:
    """Counts and sums by bucket are packed into one number, which has to be emptied in time."""
    n = 200_001
    g = np.full((1, n), 1.9999, np.float32)
    found, counts = np.empty(n, np.float32), np.zeros((2, sampling.BUCKETS), np.int64)
    assert sampling.importance(g, g, np.empty(0, np.int32), sampling.GRADIENT, 0.0, 0, n, found, *counts) == 0
    expected = np.zeros((2, sampling.BUCKETS), np.int64)
    sampling.count(found.view(np.uint32), 0, n, *expected)
    np.testing.assert_array_equal(counts, expected)
    bucket = np.flatnonzero(counts[0])
    assert len(bucket) == 1
    significand = int(found[:1].view(np.uint32)[0] & 0x7FFFFF | 0x800000)
    assert (counts[0, bucket[0]], counts[1, bucket[0]]) == (n, n * significand)
