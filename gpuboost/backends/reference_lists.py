"""The living definition of what a list-wise loss makes of each document, in plain Python.

A document's derivative is summed in an order of its own: the pairs with those placed above it, from the top; then the
pairs with those below it, in 16 lanes, the lanes in order. No sum needs another document's, so that a machine may
form them one by one or all at once.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from gpuboost.elementary import exp, log, log_array
from gpuboost.losses.protocol import ListLoss
from gpuboost.losses.ranking import FARTHEST, NEAR, pull
from gpuboost.types import Array, Gradients, TrainingSet

LANES = 16
SMALLEST = 1e-30  # below it float32 would be denormal, or close to it


def gradients(loss: ListLoss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
    """(1, n) float32 g and h, weighted."""
    g, h = lambdas(loss, data.y, scores[0], data.lists())
    if curvature is not None:
        h[:] = curvature
    if data.weight is not None:
        g, h = g * data.weight, h * data.weight
    return Gradients(_without_denormals(g)[None], _without_denormals(h)[None], data.multiplicity)


def lambdas(loss: ListLoss, y: Array, f: Array, query_start: Array) -> tuple[Array, Array]:
    """(n,) float64 g and h of each document."""
    g, h = np.zeros(len(y)), np.zeros(len(y))
    for begin, stop in pairwise(query_start.tolist()):
        rows = by_score(f, begin, stop)
        first, second = _of_list(loss, [float(y[i]) for i in rows], [float(f[i]) for i in rows])
        g[rows], h[rows] = first, second
    return g, h


def _without_denormals(x: Array) -> Array:
    """Float32, with 0 in place of what is next to it."""
    return np.where(np.abs(x) <= SMALLEST, 0.0, x).astype(np.float32)


def by_score(f: Array, begin: int, stop: int) -> list[int]:
    """The rows of a list, the best-placed first; equal scores in the order of rows."""
    return sorted(range(begin, stop), key=lambda i: (-float(f[i]), i))


def discount(place: int) -> float:
    """1 / log2(1 + rank), the first place being rank 1."""
    return log(2.0) / log(place + 2.0)


@lru_cache(maxsize=4)
def discounts_of(longest: int) -> Array:
    """(longest,) ``discount`` of each place. Not to be changed."""
    return log(2.0) / log_array(np.arange(longest) + 2.0)


def in_lanes(x: list[float]) -> float:
    """Number i to lane i % 16, then the lanes in order."""
    lanes = [0.0] * LANES
    for i, value in enumerate(x):
        lanes[i % LANES] += value
    total = 0.0
    for lane in lanes:
        total += lane
    return total


def _of_list(loss: ListLoss, y: list[float], f: list[float]) -> tuple[list[float], list[float]]:
    """g and h of documents in order of places."""
    n, sigma = len(y), loss.parameter
    gain, scale = _gains(loss, y)
    e = [exp(max(sigma * (score - f[0]), FARTHEST)) for score in f]
    g, h, total = [0.0] * n, [0.0] * n, 0.0
    for a in range(min(_most(loss, n), n - 1)):
        up, curved, size = [], [], []
        for b in range(a + 1, n):
            over = gain[a] - gain[b]
            weight = loss.pair_weight(abs(over), discount(a) - discount(b)) * scale
            apart = NEAR + (f[a] - f[b]) if loss.prefers_close else 1.0
            better, worse = (e[a], e[b]) if over > 0.0 else (e[b], e[a])
            force, curve = pull(better, worse, weight, apart, sigma)
            force = force if over > 0.0 else -force
            g[b] += force
            h[b] += curve
            up.append(force)
            curved.append(curve)
            size.append(abs(force))
        g[a] -= in_lanes(up)
        h[a] += in_lanes(curved)
        total += in_lanes(size)
    factor = 1.0
    if loss.evens_lists and total > 0.0:
        factor = log(1.0 + 2.0 * total) / (log(2.0) * (2.0 * total))
    return [x * factor for x in g], [x * factor for x in h]


def _gains(loss: ListLoss, y: list[float]) -> tuple[list[float], float]:
    """The gain of each document, and what pair weights are multiplied with; 0 where nothing is worth anything."""
    table = loss.gains().tolist()
    gain = [table[int(label)] for label in y] if table else y
    if not loss.uses_ideal:
        return gain, 1.0
    ideal = 0.0
    for place, best in enumerate(sorted(gain, reverse=True)[: _most(loss, len(y))]):
        ideal += best * discount(place)
    return gain, 1.0 / ideal if ideal > 0.0 else 0.0


def _most(loss: ListLoss, n: int) -> int:
    return n if loss.truncation is None else min(loss.truncation, n)
