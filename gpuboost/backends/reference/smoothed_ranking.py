"""Definition of the gradient estimates of smoothed ranking metrics, in plain Python.

With noisy scores s = z - sigma mu y + sigma e of a list, the gap of document i moves from below document j to above it
as its own noise grows past s_j. NDCG then changes by (G_i - G_j) (D_r - D_(r + 1)) / ideal DCG, r being the place of j
among the others. With the noise of i integrated out, the derivative of E[1 - NDCG] by z_i is the sum over j of

    (G_j - G_i) (D_r - D_(r + 1)) / (ideal DCG) phi((s_j - z_i + sigma mu y_i) / sigma) / sigma

(coordinate conditional sampling; Ustimenko and Prokhorenkova 2020, section 4). Only the first ``truncation`` + 1 places
of j count. The order of a document's sum is fixed: by draws, and by places from the top. It is float64, and needs no
other document's, so a machine may compute them one by one or in parallel.
"""

from __future__ import annotations

from itertools import pairwise
from math import pi, sqrt

import numpy as np

from gpuboost.backends.numerics.list_gradients import weighted_and_rounded
from gpuboost.backends.numerics.random_numbers import gaussian_of, uniform_bits
from gpuboost.backends.reference.ranking import (
    by_score,
    discounts_of,
    document_gains,
    gains_of,
    scale_of,
)
from gpuboost.elementary import exp
from gpuboost.keys import Key
from gpuboost.losses.protocol import SmoothedLoss
from gpuboost.types import Array, Gradients, TrainingSet

FARTHEST = -700.0  # least exponent of a density: of it, and below, the density is 0
NU = 0.01  # added to the norm of a list's scores, so that the projection is bounded near 0


def smoothed_gradients(loss: SmoothedLoss, scores: Array, data: TrainingSet, curvature: float, key: Key) -> Gradients:
    """(1, n) float32 g and h, weighted; h is ``curvature``. Number i of stream ``key / draw`` is the noise of row i."""
    g = estimate(loss, data.y, scores[0], data.lists(), key)
    return Gradients(*weighted_and_rounded(g, g, data, curvature), data.multiplicity)


def estimate(loss: SmoothedLoss, y: Array, f: Array, query_start: Array, key: Key) -> Array:
    """(n,) float64 estimate of the derivatives of the sum of lists, 1 - NDCG each."""
    g, gains = np.zeros(len(y)), gains_of(loss)
    gain = document_gains(gains, y).astype(np.float64)
    lengths = np.diff(query_start)
    drops, clean = drops_of(loss, int(lengths.max(initial=0))), f - shifts_of(loss, y)
    noise = [gaussian_of(uniform_bits(len(y), key / draw)) for draw in range(loss.samples)]
    for begin, stop in pairwise(query_start.tolist()):
        scale, rows = scale_of(loss, y[begin:stop].tolist(), gains.tolist()), slice(begin, stop)
        if scale > 0.0:
            for z in noise:
                g[rows] += _of_draw(clean[rows] + loss.sigma * z[rows], clean[rows], gain[rows], drops, loss.sigma)
            if loss.scale_free:
                g[rows] = projected(g[rows], f[rows])
            g[rows] *= scale
    return g


def shifts_of(loss: SmoothedLoss, y: Array) -> Array:
    """(n,) float64 sigma mu y, which scores are lowered by."""
    return (loss.sigma * loss.mu) * np.asarray(y, np.float64)


def drops_of(loss: SmoothedLoss, longest: int) -> Array:
    """(longest + 1,) D_r - D_(r + 1) of each place, times the largest density of the noise, divided by the draws."""
    discounts = np.zeros(longest + 2)
    counted = longest if loss.truncation is None else min(loss.truncation, longest)
    discounts[:counted] = discounts_of(longest)[:counted]
    return (discounts[:-1] - discounts[1:]) * (1.0 / (sqrt(2.0 * pi) * loss.sigma * loss.samples))


def _of_draw(noisy: Array, clean: Array, gain: Array, drops: Array, sigma: float) -> Array:
    """(n,) sums of one list for one draw of noise, without the factor 1 / ideal DCG."""
    sums, inverse, order = np.zeros(len(noisy)), 1.0 / sigma, by_score(noisy, 0, len(noisy))
    for place, j in enumerate(order):
        for own_place, i in enumerate(order):
            drop = drops[place - (own_place < place)]
            if own_place == place or drop == 0.0:
                continue
            away = (noisy[j] - clean[i]) * inverse
            steps = -0.5 * (away * away)
            sums[i] += ((gain[j] - gain[i]) * drop) * exp(FARTHEST if steps < FARTHEST else steps)
    return sums


def projected(g: Array, z: Array) -> Array:
    """Estimates of a list without their mean and, of three documents or more, their part along the centred scores.

    g - <g, z> / (|z| + nu)^2 z: scale-free acceptance. Sums are in the order of rows.
    """
    n = len(g)
    mean_g, mean_z = _sum(g) / n, _sum(z) / n
    g, z = g - mean_g, z - mean_z
    if n < 3:
        return g
    norm = sqrt(_sum(z * z)) + NU
    return np.asarray(g - (_sum(g * z) / (norm * norm)) * z)


def _sum(x: Array) -> float:
    total = 0.0
    for value in x.tolist():
        total += value
    return total
