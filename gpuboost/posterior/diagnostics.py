"""Convergence: autocorrelation time, effective sample size, R-hat (Bayesian Data Analysis, 3rd ed., 11.4-5).

Traces are (chains, draws, ...): several chains, or one; each of the trailing quantities is diagnosed by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import floats
from gpuboost.errors import InputError
from gpuboost.records import dataclass

Floats = NDArray[np.float64]

FEWEST = 8  # draws of a chain


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Convergence diagnostics of each traced quantity."""

    autocorrelation_time: Floats  # rounds between independent draws
    effective_sample_size: Floats  # equivalent number of independent draws of all chains
    r_hat: Floats  # 1 if chains, and their halves, agree

    @property
    def mixed(self) -> bool:
        """True if every R-hat is below 1.05 and every effective sample size at least 100 (rules of thumb)."""
        return bool((self.r_hat < 1.05).all() and (self.effective_sample_size >= 100.0).all())

    def __str__(self) -> str:
        verdict = "mixed" if self.mixed else "not mixed; run longer chains, or throw more of them away"
        return (
            f"{verdict}: R-hat at most {self.r_hat.max():.3f}, effective sample size at least "
            f"{self.effective_sample_size.min():.0f}, autocorrelation time up to {self.autocorrelation_time.max():.0f}"
        )


def diagnose(traces: Any) -> Diagnostics:
    """All diagnostics of this module. traces: (chains, draws, ...).

    Raises:
        InputError: if there are fewer than 8 draws a chain, or some are not finite.
    """
    x = _checked(traces)
    return Diagnostics(autocorrelation_time(x), effective_sample_size(x), r_hat(x))


def r_hat(traces: Any) -> Floats:
    """Split R-hat: the spread of all half chains together over that within each (Gelman and Rubin 1992)."""
    x = _checked(traces)
    half = x.shape[1] // 2
    halves = np.concatenate([x[:, :half], x[:, -half:]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    pooled = (half - 1.0) / half * within + between
    ratio = np.divide(pooled, within, out=np.full(within.shape, np.inf), where=within > 0.0)
    return np.asarray(np.where(pooled == 0.0, 1.0, np.sqrt(ratio)))


def autocorrelations(traces: Any) -> Floats:
    """(draws, ...) of every lag, of all chains about their common mean; 1 at lag 0, and throughout if nothing moves."""
    x = _checked(traces)
    draws = x.shape[1]
    covariance = _autocovariance(x).mean(axis=0)
    within = covariance[0] * draws / (draws - 1.0)
    between = x.mean(axis=1).var(axis=0, ddof=1) if len(x) > 1 else np.zeros(within.shape)
    pooled = within * (draws - 1.0) / draws + between
    rho = 1.0 - (within - covariance) / np.where(pooled > 0.0, pooled, 1.0)
    rho[0] = 1.0
    return np.asarray(rho)


def autocorrelation_time(traces: Any) -> Floats:
    """1 + 2 sum of the autocorrelations, cut where pairs of them end to be positive (Geyer 1992)."""
    x = _checked(traces)
    draws, rho = x.shape[1], autocorrelations(x)
    pairs = rho[: draws // 2 * 2].reshape(draws // 2, 2, *rho.shape[1:]).sum(axis=1)
    positive = np.cumprod(pairs > 0.0, axis=0)
    falling = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = np.maximum(-1.0 + 2.0 * falling.sum(axis=0), 1.0 / np.log10(len(x) * draws + 10.0))
    still = (x == x[:1, :1]).all(axis=(0, 1))
    return np.asarray(np.where(still, 1.0, time))


def effective_sample_size(traces: Any) -> Floats:
    """All draws, divided by the autocorrelation time."""
    x = _checked(traces)
    return np.asarray(x.shape[0] * x.shape[1] / autocorrelation_time(x))


def _autocovariance(x: Floats) -> Floats:
    """(chains, draws, ...), of every lag, each over the number of draws."""
    draws = x.shape[1]
    centred = x - x.mean(axis=1, keepdims=True)
    size = 1 << (2 * draws - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :draws] / draws)


def _checked(traces: Any) -> Floats:
    x = floats("traces", traces)
    if x.ndim < 2 or x.shape[0] < 1 or x.shape[1] < FEWEST:
        raise InputError(f"traces: must be (chains, draws, ...), with {FEWEST} draws or more; the shape is {x.shape}.")
    if not np.isfinite(x).all():
        raise InputError("traces: must be finite; some are not.")
    return x
