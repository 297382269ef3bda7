"""Log-normal, gamma and negative binomial likelihoods against scipy's distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from gpuboost import losses
from gpuboost.elementary import digamma_rest, log_gamma_rest, trigamma_rest
from gpuboost.errors import InputError
from gpuboost.losses import GammaNLL, LogNormalNLL, NegativeBinomialNLL

Array = np.ndarray
LIKELIHOODS = [LogNormalNLL(), GammaNLL(), NegativeBinomialNLL()]


def distribution(loss: Any, f: Array) -> Any:
    """scipy's distribution of the target at scores f (2,)."""
    size = np.exp(f[1])
    if isinstance(loss, LogNormalNLL):
        return stats.lognorm(size, scale=np.exp(f[0]))
    if isinstance(loss, GammaNLL):
        return stats.gamma(size, scale=np.exp(f[0]) / size)
    return stats.nbinom(size, size / (size + np.exp(f[0])))


@pytest.mark.parametrize(
    ("function", "truth"),
    [
        (log_gamma_rest, lambda x: special.gammaln(x) - x * np.log(x) + x),
        (digamma_rest, lambda x: special.digamma(x) - np.log(x)),
        (trigamma_rest, lambda x: x * special.polygamma(1, x) - 1.0),
    ],
)
def test_rests_of_the_gamma_function(function: Any, truth: Any) -> None:
    for x in 10.0 ** np.random.default_rng(0).uniform(-7.0, 1.5, 500):
        assert function(float(x)) == pytest.approx(truth(x), rel=1e-11, abs=1e-13)
    for x in (1e4, 1e8, 1e12):  # where scipy's difference cancels
        assert digamma_rest(x) == pytest.approx(-0.5 / x - 1.0 / (12.0 * x * x), rel=1e-14)
        assert trigamma_rest(x) == pytest.approx(0.5 / x + 1.0 / (6.0 * x * x), rel=1e-14)


@pytest.mark.parametrize("loss", LIKELIHOODS, ids=lambda loss: loss.name)
def test_the_value_is_the_likelihood(loss: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        f = rng.uniform([-2.0, -3.0], [3.0, 3.0])
        law = distribution(loss, f)
        y = float(law.rvs(random_state=rng))
        if y > 0.0 or isinstance(loss, NegativeBinomialNLL):
            likelihood = law.logpmf(y) if isinstance(loss, NegativeBinomialNLL) else law.logpdf(y)
            assert loss.row_value(y, f, 0.0) == pytest.approx(-likelihood, rel=1e-9, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LIKELIHOODS, ids=lambda loss: loss.name)
def test_curvatures_are_the_mean_squares_of_the_gradient_and_three_times_that_of_the_spread(loss: Any) -> None:
    """Fisher information: 20,000 draws, five standard errors."""
    rng = np.random.default_rng(2)
    for f in np.array([[0.5, 0.3], [2.0, -1.0]]):
        g, h = np.empty((20_000, 2)), np.empty((20_000, 2))
        for i, y in enumerate(distribution(loss, f).rvs(20_000, random_state=rng).astype(float)):
            loss.row_derivatives(y, f, g[i], h[i], 0.0)
        h[:, 1] /= 3.0
        error = np.std(np.square(g) - h, axis=0) / np.sqrt(20_000)
        assert (np.abs(np.mean(np.square(g) - h, axis=0)) <= 5.0 * error + 1e-6).all()
        assert (np.abs(g.mean(axis=0)) <= 5.0 * g.std(axis=0) / np.sqrt(20_000)).all()


@pytest.mark.parametrize("loss", LIKELIHOODS, ids=lambda loss: loss.name)
def test_moments_and_quantiles_are_those_of_the_distribution(loss: Any) -> None:
    scores = np.random.default_rng(3).uniform([[-2.0], [-2.0]], [[3.0], [1.0]], (2, 30))
    mean = np.asarray(loss.inverse_link(scores))
    for i, f in enumerate(scores.T):
        law = distribution(loss, f)
        assert mean[i] == pytest.approx(law.mean(), rel=1e-9)
        assert loss.noise(scores[None], mean[None], 1.0)[i] == pytest.approx(law.var(), rel=1e-9)
        for p in (0.05, 0.5, 0.95):
            assert loss.target_quantile(scores, p)[i] == pytest.approx(law.ppf(p), rel=1e-9)


@pytest.mark.parametrize("loss", LIKELIHOODS, ids=lambda loss: loss.name)
def test_starts(loss: Any) -> None:
    """Of a constant target too; offsets of the logarithm of the mean are taken off."""
    y = np.array([1.0, 2.0, 6.0, 9.0, 30.0])
    start = loss.start(y, np.ones(5))
    offset = np.stack([np.full(5, 2.0), np.full(5, 0.25)])
    beside = loss.start_beside(y, np.ones(5), offset)
    np.testing.assert_allclose(beside, start - [2.0, 0.25], rtol=1e-6)
    assert np.isfinite(loss.start(np.full(3, 2.0), np.ones(3))).all()
    assert np.isfinite(beside).all()


def test_counts_start_at_their_rate_beside_exposures() -> None:
    """y has the mean 3 e^o and the variance of the shape 2, whatever the offset o of a row."""
    rng = np.random.default_rng(0)
    offset = np.stack([rng.uniform(-1.0, 1.0, 20_000), np.zeros(20_000)])
    y = rng.poisson(3.0 * np.exp(offset[0]) * rng.gamma(2.0, 0.5, 20_000)).astype(float)
    rate, shape = np.exp(NegativeBinomialNLL().start_beside(y, np.ones(20_000), offset))
    assert rate == pytest.approx(y.sum() / np.exp(offset[0]).sum(), rel=1e-6)
    assert shape == pytest.approx(2.0, rel=0.1)
    for far in (900.0, -900.0):
        assert np.isfinite(NegativeBinomialNLL().start_beside(y, np.ones(20_000), np.full((2, 20_000), far))).all()


def test_gamma_starts_at_the_likeliest_shape() -> None:
    y = stats.gamma(3.0, scale=2.0).rvs(2_000, random_state=0)
    shape, _, scale = stats.gamma.fit(y, floc=0.0)
    np.testing.assert_allclose(np.exp(GammaNLL().start(y, np.ones(2_000))), [shape * scale, shape], rtol=1e-5)


def test_targets_are_named_as_the_loss_is() -> None:
    for loss, y, words in (
        (LogNormalNLL(), [1.0, 0.0], "LogNormalNLL needs positive numbers"),
        (GammaNLL(), [1.0, -1.0], "GammaNLL needs positive numbers"),
        (NegativeBinomialNLL(), [1.0, 0.5], "NegativeBinomialNLL needs whole numbers; row 1 holds 0.5"),
        (NegativeBinomialNLL(), [0.0, 0.0], "NegativeBinomialNLL needs a positive mean"),
    ):
        with pytest.raises(InputError, match=words):
            loss.check_target(np.array(y))


def test_a_loss_without_a_distribution_has_no_quantiles() -> None:
    with pytest.raises(TypeError, match="Huber predicts no distribution"):
        losses.Huber().target_quantile(np.zeros((1, 2)), 0.5)
