"""Definition of the derivatives of ranking losses, in plain Python.

The order of a document's sum is fixed: the pairs with documents ranked above it, from the top; minus the pairs with
documents below it, in 16 lanes. No sum depends on another document's, so a machine may compute them one by one or in
parallel. Pairs are float32, and so are the sums of a tile: 32 documents by 512 below them. Tiles are summed in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from gpuboost.backends.numerics.list_gradients import weighted_and_rounded
from gpuboost.elementary import exp_array, log, log_array
from gpuboost.losses.protocol import DiscountedGain, ListLoss, weighs_precision
from gpuboost.losses.ranking import FARTHEST, FURTHEST, NEAR, pair_derivatives
from gpuboost.records import dataclass
from gpuboost.types import Array, Gradients, TrainingSet

LANES = 16
TALL, WIDE = 32, 512  # documents of a tile, and those below them
SHARE, MARK = 2.0**44, 2.0**24  # 1 / step of sums of 1 / rank, and of marks
LARGEST = 31  # gains are rounded to steps of 2^-31 of their range


Lambdas: TypeAlias = Callable[[ListLoss, Array, Array, Array], tuple[Array, Array]]
"""Labels, scores and starts of queries to g and h: see ``lambdas``"""


def gradients(
    loss: ListLoss, scores: Array, data: TrainingSet, curvature: float | None, of_lists: Lambdas | None = None
) -> Gradients:
    """(1, n) float32 g and h, weighted. of_lists: another way to what ``lambdas`` returns."""
    g, h = (of_lists or lambdas)(loss, data.y, scores[0], data.lists())
    return Gradients(*weighted_and_rounded(g, h, data, curvature), data.multiplicity)


def list_losses(loss: ListLoss, scores: Array, data: TrainingSet) -> Array:
    """(n,) float64: 1 - NDCG of the document's list, at ``loss.truncation`` and by ``loss.gains``; 0 where all are
    of equal gain. Documents of equal score are in order of their rows."""
    start, y = data.lists(), data.y
    lengths = np.diff(start)
    number = np.repeat(np.arange(len(lengths)), lengths)  # of each document's list
    table = np.asarray(loss.gains(), np.float64)
    gain = table[y.astype(np.int64)] if len(table) else y
    places = np.arange(len(y)) - start[number]
    discount = discounts_of(int(lengths.max(initial=1)))[places]
    if loss.truncation is not None:
        discount = np.where(places < loss.truncation, discount, 0.0)
    by_score, best = np.lexsort((-scores[0], number)), np.lexsort((-gain, number))
    reached, ideal = (np.bincount(number, gain[order] * discount, len(lengths)) for order in (by_score, best))
    missed = 1.0 - np.divide(reached, ideal, out=np.ones_like(ideal), where=ideal > 0.0)
    return np.maximum(missed, 0.0)[number]


def lambdas(loss: ListLoss, y: Array, f: Array, query_start: Array) -> tuple[Array, Array]:
    """(n,) float64 g and h of each document."""
    g, h, gains = np.zeros(len(y)), np.zeros(len(y)), gains_of(loss)
    gain = document_gains(gains, y)
    for begin, stop in pairwise(query_start.tolist()):
        rows, scale = by_score(f, begin, stop), scale_of(loss, y[begin:stop].tolist(), gains.tolist())
        if scale > 0.0:
            g[rows], h[rows] = _of_list(loss, gain[rows], scale, f[rows])
    return g, h


def by_score(f: Array, begin: int, stop: int) -> list[int]:
    """The rows of a query by descending score; equal scores in the order of rows."""
    return sorted(range(begin, stop), key=lambda i: (-float(f[i]), i))


def discount(place: int) -> float:
    """1 / log2(1 + rank), the first place being rank 1."""
    return log(2.0) / log(place + 2.0)


def precision_marks(relevant: Array) -> tuple[Array, Array]:
    """(..., n) float32 marks of places: the change of the sum of precisions if two documents are exchanged, one of
    which is relevant, is the mark of the upper one, in the first array, less that of the lower one, in the second.

    relevant: (..., n) bool, in order of places. With N relevant documents up to a rank r, and A the sum of 1 / rank of
    them, the mark is N / r - A; with the document itself in N if it is not relevant and above, and not in A if it is
    and below. A is an integer times 2^-44, and marks are multiples of 2^-24, so no difference is a denormal number.
    """
    rank = np.arange(1, relevant.shape[-1] + 1)
    shares = np.where(relevant, np.rint(SHARE / rank), 0.0).astype(np.int64)
    count, total = np.cumsum(relevant, axis=-1), np.cumsum(shares, axis=-1)
    upper = (count + ~relevant) / rank - total.astype(np.float64) * (1.0 / SHARE)
    lower = count / rank - (total - shares).astype(np.float64) * (1.0 / SHARE)
    first, second = (np.rint(mark * MARK) * (1.0 / MARK) for mark in (upper, lower))
    return first.astype(np.float32), second.astype(np.float32)


@lru_cache(maxsize=4)
def discounts_of(longest: int) -> Array:
    """(longest,) ``discount`` of each place, read-only."""
    return log(2.0) / log_array(np.arange(longest) + 2.0)


def gains_of(loss: DiscountedGain) -> Array:
    """(labels,) float64 ``gains``, or (0,); times a power of 2, which cancels out in the division by the ideal DCG."""
    gains = np.asarray(loss.gains(), np.float64)
    if len(gains) and loss.uses_ideal:
        gains = np.ldexp(gains, LARGEST - np.frexp(gains[-1] - gains[0])[1])
    return gains


def document_gains(gains: Array, y: Array) -> Array:
    """(n,) float32 integers: gains of documents minus that of the lowest label. Only differences matter."""
    table = np.rint(gains - gains[:1]).astype(np.float32)
    return table[y.astype(np.int64)] if len(table) else y.astype(np.float32)


def in_lanes(x: Array) -> Any:
    """The sum of float32 numbers: number i in lane i % 16, then the lanes pairwise, half by half."""
    lanes = np.zeros(LANES, np.float32)
    for begin in range(0, len(x), LANES):
        line = x[begin : begin + LANES]
        lanes[: len(line)] += line
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]


@dataclass(frozen=True, slots=True)
class Places:
    """A query's documents in order of rank, float32."""

    reach: Array  # scores, with what pairs at least stand apart
    score: Array
    power: Array  # e^(sigma f), up to a factor
    gain: Array
    upper: Array  # discounts, or marks of precision, of the upper of two documents
    lower: Array

    @classmethod
    def made_of(cls, loss: ListLoss, gain: Array, f: Array) -> Places:
        with np.errstate(over="ignore", invalid="ignore"):  # a list whose best score is infinite
            below = f - f[0]
            steps = loss.parameter * below
        power = exp_array(np.where(steps < FARTHEST, FARTHEST, steps)).astype(np.float32)
        score = np.where(below < FURTHEST, FURTHEST, below).astype(np.float32)
        discounts = discounts_of(len(f)).astype(np.float32)
        marks = precision_marks(gain > 0.0) if loss.weighs_precision else (discounts, discounts)
        return cls(np.float32(NEAR) + score, score, power, gain, *marks)

    def lambdas_below(self, loss: ListLoss, a: int) -> tuple[Array, Array, Array]:
        """Pairs of place a with each place below: lambdas (positive ones raise a), second derivatives, |lambdas|."""
        over, apart = self.gain[a] - self.gain[a + 1 :], self.upper[a] - self.lower[a + 1 :]
        pairs = zip(over.tolist(), apart.tolist(), strict=True)
        weights = [loss.pair_weight(abs(x), d) if x != 0.0 else 0.0 for x, d in pairs]
        close: Any = self.reach[a] - self.score[a + 1 :] if loss.prefers_close else np.float32(1.0)
        better, worse = self.power[a], self.power[a + 1 :]
        pair = np.where(over > 0.0, better, worse), np.where(over > 0.0, worse, better)
        size, curve = pair_derivatives(*pair, np.array(weights, np.float32), close)
        return np.copysign(size, over), curve, size


def _of_list(loss: ListLoss, gain: Array, scale: float, f: Array) -> tuple[Array, Array]:
    """g and h of documents in order of places."""
    n, steep = len(f), scale * loss.parameter
    places = Places.made_of(loss, gain, f)
    tile, sums, below_sums, total = np.zeros((2, n), np.float32), np.zeros((2, n)), np.zeros((3, n)), 0.0
    leaders = min(_most(loss, n), n - 1)
    for a in range(leaders):
        below = places.lambdas_below(loss, a)
        tile[0, a + 1 :] += below[0]
        tile[1, a + 1 :] += below[1]
        for kind, pairs in enumerate(below):
            of_all = np.concatenate([np.zeros(a + 1, np.float32), pairs])
            for begin in range(0, n, WIDE):
                below_sums[kind, a] += float(in_lanes(of_all[begin : begin + WIDE]))
        if (a + 1) % TALL == 0 or a + 1 == leaders:
            sums += tile
            tile[:] = 0.0
    for size in below_sums[2, :leaders].tolist():
        total += size
    total, factor = steep * total, 1.0
    if loss.evens_lists and total > 0.0:
        factor = log(1.0 + 2.0 * total) / (log(2.0) * (2.0 * total))
    return (sums[0] - below_sums[0]) * (steep * factor), (sums[1] + below_sums[1]) * (steep * loss.parameter * factor)


def scale_of(loss: DiscountedGain, y: list[float], gains: list[float]) -> float:
    """Factor of the query's pair weights: 1 / ideal DCG (MAP: / relevant documents), 0 if no document has a gain."""
    if not loss.uses_ideal:
        return 1.0
    best = sorted((gains[int(label)] for label in y), reverse=True)
    if weighs_precision(loss):
        return 1.0 / sum(best) if sum(best) > 0.0 else 0.0
    ideal = 0.0
    for place, gain in enumerate(best[: _most(loss, len(y))]):
        ideal += gain * discount(place)
    return 1.0 / ideal if ideal > 0.0 else 0.0


def _most(loss: DiscountedGain, n: int) -> int:
    return n if loss.truncation is None else min(loss.truncation, n)
