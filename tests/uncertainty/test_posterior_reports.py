"""Uncertainty and diagnostics, held against what is known of simple cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas import NA

from gpuboost import losses
from gpuboost.errors import InputError
from gpuboost.losses import GaussianNLL, Logistic, Poisson, Softmax, SquaredError
from gpuboost.posterior import (
    autocorrelation_time,
    autocorrelations,
    calibration,
    diagnose,
    effective_sample_size,
    interval,
    member_rounds,
    r_hat,
    separation,
    uncertainty,
)

Array = np.ndarray


def autoregressive(rho: float, chains: int, draws: int, seed: int = 0) -> Array:
    """(chains, draws) with lag-1 correlation rho and variance 1, from the stationary law on."""
    rng = np.random.default_rng(seed)
    x = np.empty((chains, draws))
    x[:, 0] = rng.normal(size=chains)
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1.0 - rho**2) * rng.normal(size=chains)
    return x


# diagnostics


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, -0.4])
def test_the_autocorrelation_time_of_an_autoregressive_chain_is_known(rho: float) -> None:
    x = autoregressive(rho, 4, 20_000)
    known = (1.0 + rho) / (1.0 - rho)
    assert autocorrelation_time(x) == pytest.approx(known, rel=0.15)
    assert effective_sample_size(x) == pytest.approx(80_000 / known, rel=0.15)
    assert r_hat(x) == pytest.approx(1.0, abs=0.01)


def test_autocorrelations_of_an_autoregressive_chain_fall_by_a_factor() -> None:
    found = autocorrelations(autoregressive(0.8, 4, 20_000))
    np.testing.assert_allclose(found[:8], 0.8 ** np.arange(8), atol=0.05)
    assert found.shape == (20_000,)
    assert (autocorrelations(np.full((2, 9), 0.1)) == 1.0).all()
    assert autocorrelation_time(np.full((2, 9), 0.1)) == 1.0


def test_chains_that_have_not_mixed_are_flagged() -> None:
    rng = np.random.default_rng(0)
    together = rng.normal(size=(4, 500, 2))
    assert diagnose(together).mixed
    apart = together + np.array([0.0, 0.0, 0.0, 2.0])[:, None, None]  # one chain is in another mode
    drifting = together + np.linspace(0.0, 3.0, 500)[None, :, None]  # still on the way
    sticky = autoregressive(0.999, 4, 500)[:, :, None]
    for bad in (apart, drifting, sticky):
        found = diagnose(bad)
        assert not found.mixed
        assert found.effective_sample_size.max() < 100.0
    assert diagnose(apart).r_hat.min() > 1.2
    assert diagnose(drifting).r_hat.min() > 1.2
    assert "not mixed" in str(diagnose(apart))
    assert str(diagnose(together)).startswith("mixed: R-hat at most 1.0")


def test_quantities_are_judged_each_by_itself() -> None:
    x = np.stack([autoregressive(0.0, 3, 400), autoregressive(0.95, 3, 400)], axis=-1)
    found = diagnose(x)
    for i in (0, 1):
        alone = diagnose(x[..., i])
        assert found.r_hat[i] == pytest.approx(float(alone.r_hat))
        assert found.autocorrelation_time[i] == pytest.approx(float(alone.autocorrelation_time))
    assert found.autocorrelation_time[1] > 8.0 * found.autocorrelation_time[0]


def test_a_chain_that_never_moves_has_nothing_to_disagree_on_unless_another_stands_elsewhere() -> None:
    still = np.zeros((2, 20))
    assert r_hat(still) == 1.0
    assert r_hat(still + np.array([[0.0], [1.0]])) == math.inf


@pytest.mark.parametrize("bad", [np.zeros(10), np.zeros((2, 7)), np.full((1, 10), np.nan), np.zeros((0, 10))])
def test_traces_must_be_long_and_finite(bad: Array) -> None:
    with pytest.raises(InputError, match="traces: must be"):
        diagnose(bad)


# members


@given(st.integers(2, 500), st.integers(1, 40), st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_members_are_evenly_spaced_after_the_burn_in_and_end_with_the_model(rounds: int, k: int, burn: float) -> None:
    if int(rounds * (1.0 - burn)) < k:
        with pytest.raises(InputError, match=f"samples: {k} members need {k} rounds after the burn-in"):
            member_rounds(rounds, k, burn)
        return
    found = member_rounds(rounds, k, burn)
    assert len(found) == k
    assert found[-1] == rounds
    assert found[0] > rounds * burn - 1e-9
    assert len(set(np.diff(found))) <= 1


def test_members_as_catboost_spaces_them() -> None:
    assert member_rounds(100, 10) == (55, 60, 65, 70, 75, 80, 85, 90, 95, 100)


@pytest.mark.parametrize(("samples", "burn_in"), [(0, 0.5), (5, 1.0), (5, -0.1), (5, math.nan), (5, True)])
def test_members_out_of_range_are_refused(samples: int, burn_in: float) -> None:
    with pytest.raises(InputError, match="must be"):
        member_rounds(100, samples, burn_in)


# uncertainty


def entropy(p: Array) -> Array:
    return -np.sum(np.where(p > 0.0, p * np.log(np.where(p > 0.0, p, 1.0)), 0.0), axis=-1)


@given(st.integers(0, 1000), st.sampled_from([2, 3, 7]))
def test_classes_have_entropy_of_the_mean_mean_entropy_and_mutual_information(seed: int, k: int) -> None:
    members = 3.0 * np.random.default_rng(seed).normal(size=(5, k, 11))
    found = uncertainty(Softmax(k), members)
    e = np.exp(members - members.max(axis=1, keepdims=True))
    p = np.moveaxis(e / e.sum(axis=1, keepdims=True), 1, 2)
    np.testing.assert_allclose(found.mean, p.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.total, entropy(p.mean(axis=0)), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.data, entropy(p).mean(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.knowledge, found.total - found.data, atol=1e-12)
    assert (found.knowledge >= 0.0).all()


def test_two_classes_by_hand_also_where_they_are_certain() -> None:
    members = np.array([[[0.0, 800.0, 800.0]], [[0.0, 800.0, -800.0]]])
    found = uncertainty(Logistic(), members)
    np.testing.assert_allclose(found.total, [math.log(2.0), 0.0, math.log(2.0)], atol=1e-12)
    np.testing.assert_allclose(found.data, [math.log(2.0), 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.knowledge, [0.0, 0.0, math.log(2.0)], atol=1e-12)
    np.testing.assert_allclose(found.mean[:, 1], [0.5, 1.0, 0.5])


def test_numbers_have_variances() -> None:
    members = np.random.default_rng(1).normal(size=(6, 1, 9))
    found = uncertainty(SquaredError(), members, temperature=4.0)
    np.testing.assert_allclose(found.knowledge, members[:, 0].var(axis=0))
    np.testing.assert_allclose(found.data, 0.25)
    np.testing.assert_allclose(found.total, 0.25 + found.knowledge)
    assert np.isnan(uncertainty(losses.Huber(), members).data).all()
    np.testing.assert_allclose(uncertainty(Poisson(), members).data, np.exp(members[:, 0]).mean(axis=0), rtol=1e-12)


def test_a_predicted_variance_is_data_uncertainty() -> None:
    members = np.random.default_rng(2).normal(size=(6, 2, 9))
    found = uncertainty(GaussianNLL(), members)
    np.testing.assert_allclose(found.mean, members[:, 0].mean(axis=0))
    np.testing.assert_allclose(found.knowledge, members[:, 0].var(axis=0))
    np.testing.assert_allclose(found.data, np.exp(2.0 * members[:, 1]).mean(axis=0), rtol=1e-12)


def test_intervals_hold_the_share_they_promise_of_normal_draws() -> None:
    rng = np.random.default_rng(3)
    truth = rng.normal(size=20_000)
    centre = truth + 0.5 * rng.normal(size=truth.shape)
    members = centre + 0.5 * rng.normal(size=(200, 1, len(truth)))
    for coverage in (0.5, 0.9, 0.99):
        bounds = interval(SquaredError(), members, coverage, "mean")
        inside = np.mean((bounds[:, 0] < truth) & (truth < bounds[:, 1]))
        assert inside == pytest.approx(coverage, abs=0.012)
        target = truth + 2.0 * rng.normal(size=truth.shape)
        bounds = interval(SquaredError(), members, coverage, "observation", temperature=0.25)
        assert np.mean((bounds[:, 0] < target) & (target < bounds[:, 1])) == pytest.approx(coverage, abs=0.012)


def test_intervals_of_probabilities_are_probabilities() -> None:
    bounds = interval(Logistic(), 5.0 * np.random.default_rng(4).normal(size=(8, 1, 50)), 0.9, "mean")
    assert ((bounds > 0.0) & (bounds < 1.0) & (bounds[:, :1] <= bounds[:, 1:])).all()


@pytest.mark.parametrize(
    ("loss", "coverage", "kind", "text"),
    [
        (SquaredError(), 0.0, "mean", "coverage: must be a number between 0 and 1"),
        (SquaredError(), 1.0, "mean", "coverage: must be a number between 0 and 1"),
        (SquaredError(), 0.9, "truth", "kind: must be 'mean' or 'observation'"),
        (Logistic(), 0.9, "observation", "an interval of observations needs normal noise; loss 'logistic'"),
        (Softmax(3), 0.9, "mean", "it has several scores; loss 'softmax'"),
    ],
)
def test_intervals_that_cannot_be_are_refused(loss: losses.Loss, coverage: float, kind: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        interval(loss, np.zeros((4, loss.n_outputs, 3)), coverage, kind)


# calibration, and rows of another kind


def test_a_normal_posterior_is_calibrated_and_one_that_is_too_sure_is_not() -> None:
    rng = np.random.default_rng(5)
    n = 20_000
    truth = rng.normal(size=n)
    members = (truth + 0.5 * rng.normal(size=n))[None] + 0.5 * rng.normal(size=(100, n))
    y = truth + rng.normal(size=n)
    good = calibration(uncertainty(SquaredError(), members[:, None]), y)
    assert good.error < 0.01
    assert good.counts.tolist() == [n] * 10
    sure = calibration(uncertainty(SquaredError(), members[:, None], temperature=16.0), y, coverages=[0.5, 0.9])
    assert sure.promised.tolist() == [0.5, 0.9]
    assert (sure.found < [0.3, 0.65]).all()
    assert str(sure).startswith(f"off by {sure.error:.1%} in the mean")


@pytest.mark.parametrize("k", [2, 4])
def test_classes_that_come_as_often_as_said_are_calibrated(k: int) -> None:
    rng = np.random.default_rng(6)
    scores = 2.0 * rng.normal(size=(1, k, 20_000))
    found = uncertainty(Softmax(k), scores)
    drawn = (rng.random(20_000)[:, None] > found.mean.cumsum(axis=1)).sum(axis=1)
    names = np.array(list("abcd"))[:k]
    good = calibration(found, names[drawn], names)
    assert good.counts.sum() == k * 20_000
    assert good.error < 0.01
    assert (np.diff(good.promised) > 0.0).all()
    assert calibration(uncertainty(Softmax(k), 3.0 * scores), names[drawn], names).error > 0.05


@given(st.integers(0, 1000), st.integers(1, 30), st.integers(1, 30))
def test_separation_is_the_area_under_the_roc_curve(seed: int, n: int, m: int) -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(seed)
    own, strange = rng.integers(0, 6, n).astype(float), rng.integers(2, 9, m).astype(float)
    expected = roc_auc_score(np.repeat([0, 1], [n, m]), np.concatenate([own, strange]))
    assert separation(own, strange) == pytest.approx(expected, abs=1e-12)


def test_what_cannot_be_held_against_anything_is_refused() -> None:
    numbers, classes = uncertainty(SquaredError(), np.ones((3, 1, 4))), uncertainty(Softmax(3), np.ones((3, 3, 4)))
    for found, y, options, text in (
        (numbers, [1.0], {}, "y: must hold one target for each of 4 rows"),
        (numbers, [1.0] * 4, {"coverages": [1.0]}, "coverages: must be numbers between 0 and 1"),
        (uncertainty(losses.Huber(), np.ones((3, 1, 4))), [1.0] * 4, {}, "found: its total is NaN"),
        (classes, [0] * 4, {}, "classes: must be the 3 labels of the columns"),
        (classes, [0, 1, 7, 2], {"classes": [0, 1, 2]}, "y: must be labels of the training data; row 2 is"),
        (classes, ["a", NA, "b", "c"], {"classes": ["a", "b", "c"]}, "y: must be labels .* row 1 is <NA>"),
    ):
        with pytest.raises(InputError, match=text):
            calibration(found, y, **options)
    with pytest.raises(InputError, match="outside: must be a list of numbers"):
        separation([1.0], [])
    with pytest.raises(InputError, match="inside: must be a list of numbers"):
        separation([math.nan], [1.0])


# the loss of mean and variance


@given(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0), st.floats(-3.0, 3.0))
def test_gaussian_nll_is_the_likelihood_and_its_derivatives(y: float, mean: float, log_sd: float) -> None:
    loss, f = GaussianNLL(), np.array([mean, log_sd])
    sd = math.exp(log_sd)
    assert loss.row_value(y, f, 0.0) == pytest.approx(
        log_sd + (y - mean) ** 2 / (2.0 * sd**2) + 0.5 * math.log(2.0 * math.pi), rel=1e-12
    )
    g, h = np.empty(2), np.empty(2)
    loss.row_derivatives(y, f, g, h, 0.0)
    step = 1e-6
    for i in (0, 1):
        ahead, behind = f.copy(), f.copy()
        ahead[i] += step
        behind[i] -= step
        slope = (loss.row_value(y, ahead, 0.0) - loss.row_value(y, behind, 0.0)) / (2.0 * step)
        assert slope == pytest.approx(g[i], rel=1e-5, abs=1e-5 * (1.0 + (y - mean) ** 2 / sd**2))
    assert h.tolist() == [pytest.approx(sd**-2, rel=1e-12), 2.0]


def test_gaussian_nll_starts_at_the_moments_of_the_target() -> None:
    y, weight = np.array([1.0, 2.0, 6.0]), np.array([1.0, 2.0, 1.0])
    mean = np.average(y, weights=weight)
    start = GaussianNLL().start(y, weight)
    assert start[0] == pytest.approx(mean, rel=1e-7)
    assert start[1] == pytest.approx(0.5 * math.log(np.average((y - mean) ** 2, weights=weight)), rel=1e-6)
    assert np.isfinite(GaussianNLL().start(np.full(3, 2.0), np.ones(3))).all()
