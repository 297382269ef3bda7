"""Likelihoods of amounts and counts that predict a spread beside the mean: log-normal, gamma, negative binomial.

Curvatures of the mean are the Fisher information, so that Newton steps are those of natural gradient boosting (Duan and
others 2020, arXiv 1910.03225). Those of the spread are three times the information, or an estimate of it: steps of full
length follow the residuals of fitted rows, which are smaller than those of new ones. Beyond the bounds of its scores a
loss continues as its tangent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.elementary import (
    bounded,
    digamma_rest,
    exp,
    exp_array,
    log,
    log_array,
    log_gamma_rest,
    log_near_one,
    trigamma_rest,
)
from gpuboost.losses.averages import constant, rising_root, weighted_mean
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.distribution import GaussianNLL
from gpuboost.losses.positive import Poisson, check_not_negative, check_positive
from gpuboost.losses.target import require
from gpuboost.types import Array

Floats = NDArray[np.float64]

_LARGEST_SHAPE = 16.0  # of log k: a standard deviation of 0.03 % of the mean
_LEAST_CURVATURE = 1e-6  # so that a leaf has one
_DAMPING = 3.0  # information of a spread is multiplied by it, which makes steps a third as long
_LARGEST_LOG = 700.0  # of predictions, which stay finite


def shape_of(score: float) -> float:
    """The score held within -16 and 16."""
    c = _LARGEST_SHAPE if score > _LARGEST_SHAPE else score
    return -_LARGEST_SHAPE if c < -_LARGEST_SHAPE else c


def log_ratio(part: float, whole: float, excess: float) -> float:
    """log(part / whole), excess being part / whole - 1, which is exact where the two are close."""
    return log_near_one(excess, 0.0) if -0.29 < excess < 0.41 else log(part / whole)


@dataclass(frozen=True, slots=True)
class LogNormalNLL(BaseLoss):
    """log y + log s + (f - log y)^2 / (2 s^2) + log(2 pi) / 2: likelihood of amounts y > 0 whose logarithm is normal.

    The scores are the mean f and log s of the logarithm; ``predict`` gives the mean e^(f + s^2 / 2).
    """

    name: ClassVar[str] = "log_normal_nll"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression", n_outputs=2, convex=False, link="other", predicts_spread=True, positive_target=True
    )

    @staticmethod
    def row_value(y: float, f: Array, a: float) -> float:
        z = log(y)
        r = f[0] - z
        cost: float = z + f[1] + 0.5 * r * r * exp(bounded(-2.0 * f[1])) + 0.9189385332046727
        return cost

    @staticmethod
    def row_derivatives(y: float, f: Array, g: Array, h: Array, a: float) -> None:
        r, precision = f[0] - log(y), exp(bounded(-2.0 * f[1]))
        g[0], h[0] = r * precision, precision
        g[1], h[1] = 1.0 - r * r * precision, _DAMPING * 2.0

    def check_target(self, y: Array) -> None:
        check_positive(y, "LogNormalNLL")

    def start(self, y: Array, weight: Array) -> Array:
        return GaussianNLL().start(log_array(y), weight)

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        return GaussianNLL().start_beside(log_array(y), weight, offset)

    def inverse_link(self, scores: Array) -> Array:
        return exp_array(np.minimum(scores[0] + 0.5 * self._variance_of_log(scores), _LARGEST_LOG))

    def noise(self, members: Array, predictions: Array, temperature: float) -> Floats:
        return np.asarray(np.mean([self._variance(scores) for scores in members], axis=0))

    def target_quantile(self, scores: Array, p: float) -> Floats:
        from scipy.special import ndtri

        spread = np.sqrt(self._variance_of_log(scores))
        return exp_array(np.minimum(scores[0] + float(ndtri(p)) * spread, _LARGEST_LOG))

    def _variance_of_log(self, scores: Array) -> Floats:
        return GaussianNLL().variance(scores)

    def _variance(self, scores: Array) -> Floats:
        s2 = self._variance_of_log(scores)
        return np.expm1(np.minimum(s2, 300.0)) * exp_array(np.minimum(2.0 * scores[0] + s2, 300.0))


@dataclass(frozen=True, slots=True)
class GammaNLL(BaseLoss):
    """Negative log-likelihood of a gamma distribution of mean m and shape k: amounts y > 0 of variance m^2 / k.

    The scores are log m and log k, which are orthogonal: the Fisher information is k and k (k trigamma(k) - 1).
    """

    name: ClassVar[str] = "gamma_nll"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression", n_outputs=2, convex=False, link="other", predicts_spread=True, positive_target=True
    )

    @staticmethod
    def row_value(y: float, f: Array, a: float) -> float:
        far, b = log(y) - f[0], shape_of(f[1])
        z, k = bounded(far), exp(b)
        rise = exp(z) - 1.0
        excess = rise - z  # not negative
        value: float = log(y) + k * (excess + rise * (far - z)) + log_gamma_rest(k)
        value += k * (excess + digamma_rest(k)) * (f[1] - b)
        return value

    @staticmethod
    def row_derivatives(y: float, f: Array, g: Array, h: Array, a: float) -> None:
        z, k = bounded(log(y) - f[0]), exp(shape_of(f[1]))
        rise = exp(z) - 1.0
        g[0], h[0] = -k * rise, k
        g[1], h[1] = k * (rise - z + digamma_rest(k)), _DAMPING * (k * trigamma_rest(k))

    def check_target(self, y: Array) -> None:
        check_positive(y, "GammaNLL")

    def start(self, y: Array, weight: Array) -> Array:
        y = np.asarray(y, dtype=np.float64)
        mean = weighted_mean(y, weight)
        excess = max(log(mean) - weighted_mean(log_array(y), weight), 0.0)  # of the logarithms: -digamma_rest(k)
        k = rising_root(lambda b: digamma_rest(exp(b)) + excess, -_LARGEST_SHAPE, _LARGEST_SHAPE)
        return np.concatenate([constant(log(mean)), constant(k)])

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        start = self.start(np.asarray(y) * exp_array(-np.clip(offset[0], -40.0, 40.0)), weight)
        start[1:] -= weighted_mean(offset[1], weight)
        return start

    def inverse_link(self, scores: Array) -> Array:
        return exp_array(np.minimum(scores[0], _LARGEST_LOG))

    def noise(self, members: Array, predictions: Array, temperature: float) -> Floats:
        return np.asarray(np.mean([_square_mean(scores) / _shape(scores) for scores in members], axis=0))

    def target_quantile(self, scores: Array, p: float) -> Floats:
        from scipy.special import gammaincinv

        return np.asarray(self.inverse_link(scores) * (gammaincinv(_shape(scores), p) / _shape(scores)))


@dataclass(frozen=True, slots=True)
class NegativeBinomialNLL(BaseLoss):
    """Negative log-likelihood of counts of mean m and variance m + m^2 / r.

    The scores are log m and log r. The Fisher information of the second has no closed form; it is estimated by the
    square of the gradient, of which it is the mean (Berndt and others 1974).
    """

    name: ClassVar[str] = "negative_binomial_nll"
    facts: ClassVar[LossFacts] = LossFacts(
        task="regression", n_outputs=2, convex=False, link="other", predicts_spread=True, positive_target=True
    )

    @staticmethod
    def row_value(y: float, f: Array, a: float) -> float:
        c, b = bounded(f[0]), shape_of(f[1])
        mean, r = exp(c), exp(b)
        above = (y - mean) / (r + mean)
        logarithm = log_ratio(r + y, r + mean, above)
        of_mean, of_size = -r * above, r * (digamma_rest(r) - digamma_rest(r + y) + (above - logarithm))
        cost: float = log_gamma_rest(r) - log_gamma_rest(r + y) - (r + y) * logarithm + (y - y * c)
        cost += log_gamma_rest(y + 1.0) + (y + 1.0) * log(y + 1.0) - (y + 1.0)
        cost += of_mean * (f[0] - c) + of_size * (f[1] - b)
        return cost

    @staticmethod
    def row_derivatives(y: float, f: Array, g: Array, h: Array, a: float) -> None:
        mean, r = exp(bounded(f[0])), exp(shape_of(f[1]))
        above = (y - mean) / (r + mean)
        g[0], h[0] = -r * above, r * (mean / (r + mean))
        g[1] = r * (digamma_rest(r) - digamma_rest(r + y) + (above - log_ratio(r + y, r + mean, above)))
        square = g[1] * g[1]
        h[1] = _DAMPING * (square if square > _LEAST_CURVATURE else _LEAST_CURVATURE)

    def check_target(self, y: Array) -> None:
        check_not_negative(y, "NegativeBinomialNLL")
        y = np.asarray(y)
        rule = "NegativeBinomialNLL needs whole numbers"
        require(y == np.floor(y), y, rule, "Use Poisson, or GammaNLL for amounts.")

    def start(self, y: Array, weight: Array) -> Array:
        y = np.asarray(y, dtype=np.float64)
        mean = weighted_mean(y, weight)
        over = weighted_mean(np.square(y - mean), weight) - mean
        b = log(mean * mean / over) if over > 0.0 else _LARGEST_SHAPE
        return np.concatenate([constant(bounded(log(mean))), constant(shape_of(b))])

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        y = np.asarray(y, dtype=np.float64)
        level = Poisson().start_beside(y, weight, offset)
        mean = exp_array(np.clip(offset[0] + level[0], -40.0, 40.0))
        over = weighted_mean(np.square(y - mean), weight) - weighted_mean(mean, weight)
        b = log(weighted_mean(np.square(mean), weight) / over) if over > 0.0 else _LARGEST_SHAPE
        return np.concatenate([level, constant(shape_of(b) - weighted_mean(offset[1], weight))])

    def inverse_link(self, scores: Array) -> Array:
        return exp_array(np.minimum(scores[0], _LARGEST_LOG))

    def noise(self, members: Array, predictions: Array, temperature: float) -> Floats:
        variances = [self.inverse_link(scores) + _square_mean(scores) / _shape(scores) for scores in members]
        return np.asarray(np.mean(variances, axis=0))

    def target_quantile(self, scores: Array, p: float) -> Floats:
        from scipy.stats import nbinom

        r = _shape(scores)
        return np.asarray(nbinom.ppf(p, r, r / (r + self.inverse_link(scores))), np.float64)


def _shape(scores: Array) -> Floats:
    return exp_array(np.clip(scores[1], -_LARGEST_SHAPE, _LARGEST_SHAPE))


def _square_mean(scores: Array) -> Floats:
    return exp_array(np.minimum(2.0 * scores[0], 600.0))
