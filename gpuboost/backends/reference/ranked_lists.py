"""Derivatives of ranking losses by NumPy, of many lists at once: those of ``ranking``, bit for bit.

Lists of about equal length are the lines of one array. Shorter ones are filled up with their last document, whose pairs
count as 0: the numbers of a list are added in the order that they have in ``ranking``, and zeros change no sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuboost.backends.numerics.list_gradients import weighted_and_rounded
from gpuboost.backends.numerics.random_numbers import uniform_bits
from gpuboost.backends.reference.cross_entropy import LANES as OF_PERTURBED
from gpuboost.backends.reference.cross_entropy import powers_of
from gpuboost.backends.reference.ranking import (
    LANES,
    TALL,
    WIDE,
    discounts_of,
    document_gains,
    gains_of,
    precision_marks,
)
from gpuboost.elementary import exp_array, log, log_array
from gpuboost.keys import Key
from gpuboost.losses.protocol import DiscountedGain, ListLoss, weighs_precision
from gpuboost.losses.ranking import FARTHEST, FURTHEST, NEAR, pair_derivatives
from gpuboost.losses.xendcg import LEAST_REST
from gpuboost.types import Array, Gradients, TrainingSet

MOST_PAIRS = 1 << 19  # of a step, whose arrays take some 40 MB
LONGER = 1.3  # times the shortest list of an array, up to which lists are filled up to one length
OF_DOCUMENT, OF_PAIR, OF_PLACE = 1e-6, 4e-8, 1e-5
"""Seconds for each document, for each pair, and for each place of the lists of one length"""


def are_small(query_start: Array) -> bool:
    """True if there is memory for the pairs of the longest list."""
    return int(np.diff(query_start).max(initial=0)) * TALL <= MOST_PAIRS


def seconds(loss: DiscountedGain, query_start: Array) -> float:
    """About the time that the gradients take."""
    lengths = np.diff(query_start)
    most = lengths if loss.truncation is None else np.minimum(lengths, loss.truncation)
    pairs, places = float((lengths * most).sum()), float(np.unique(lengths).sum())
    return float(query_start[-1]) * OF_DOCUMENT + pairs * OF_PAIR + places * OF_PLACE


def lambdas(loss: ListLoss, y: Array, f: Array, query_start: Array) -> tuple[Array, Array]:
    """As ``ranking.lambdas``."""
    start, lengths = query_start[:-1], np.diff(query_start)
    number, gains = np.repeat(np.arange(len(lengths)), lengths), gains_of(loss)
    ranked, gain = np.lexsort((-f, number)), document_gains(gains, y)  # equal scores in the order of rows
    scales = _scales(loss, gains[y.astype(np.int64)], query_start, number) if loss.uses_ideal else np.ones(len(lengths))
    g, h = np.zeros(len(y)), np.zeros(len(y))
    for lists, places, n in _alike(np.flatnonzero((lengths > 1) & (scales > 0.0)), lengths):
        rows = ranked[start[lists][:, None] + np.minimum(places, n - 1)]
        of_places = _Lists(loss, gain[rows], f[rows], n).lambdas(scales[lists])
        g[rows[places < n]], h[rows[places < n]] = (sums[places < n] for sums in of_places)
    return g, h


def perturbed_gradients(scores: Array, data: TrainingSet, curvature: float | None, key: Key) -> Gradients:
    """As ``cross_entropy.gradients``."""
    f, start, lengths = scores[0], data.lists()[:-1], np.diff(data.lists())
    g, h = np.zeros(data.n_rows), np.zeros(data.n_rows)
    phi = powers_of(data.y) - uniform_bits(data.n_rows, key / 0).astype(np.float64) * 2.0**-32
    for lists, places, n in _alike(np.flatnonzero(lengths > 1), lengths):
        rows, real = start[lists][:, None] + np.minimum(places, n - 1), places < n
        sums = _cross_entropies(f[rows], np.where(real, phi[rows], 0.0), real, newton=curvature is None)
        g[rows[real]], h[rows[real]] = (of_places[real] for of_places in sums)
    return Gradients(*weighted_and_rounded(g, h, data, curvature), data.multiplicity)


def _cross_entropies(f: Array, phi: Array, real: Array, *, newton: bool) -> tuple[Array, Array]:
    """G and h of lists (q, m), as ``cross_entropy`` has those of one. phi is 0 where a place is not real."""
    with np.errstate(invalid="ignore"):  # a list whose best score is infinite
        below = f - f.max(axis=1, keepdims=True)
    power = np.where(real, exp_array(np.where(below < FARTHEST, FARTHEST, below)), 0.0)

    def sums(x: Array) -> Array:
        return _in_lanes(x, OF_PERTURBED)[:, None]

    rho = power / sums(power)
    first = rho - phi / sums(phi)
    if not newton:
        return first, rho
    rest = 1.0 - rho
    rest = np.where(rest < LEAST_REST, LEAST_REST, rest)
    ratio = first / rest
    second = rho * (sums(ratio) - ratio)
    ratio = second / rest
    return (first + second) + rho * (sums(ratio) - ratio), rho * rest


def _alike(lists: Array, lengths: Array) -> Iterator[tuple[Array, Array, Array]]:
    """The lists (q,) in parts of about equal length, their places (m,) and lengths (q, 1)."""
    lists = lists[np.argsort(lengths[lists], kind="stable")]
    while len(lists):
        longest = int(LONGER * lengths[lists[0]])
        count = int(np.searchsorted(lengths[lists], longest, side="right"))
        part = lists[: min(count, max(MOST_PAIRS // (min(TALL, longest) * longest), 1))]
        n = lengths[part][:, None]
        yield part, np.arange(int(n.max())), n
        lists = lists[len(part) :]


def _scales(loss: DiscountedGain, worth: Array, query_start: Array, number: Array) -> Array:
    """(lists,) float64, as ``ranking.scale_of``. worth (n,): gain of each document; number (n,): of its list."""
    lengths, best = np.diff(query_start), worth[np.lexsort((-worth, number))]
    if weighs_precision(loss):
        ideal: Array = np.bincount(number, best, len(lengths))  # of whole numbers
    else:
        most = lengths if loss.truncation is None else np.minimum(lengths, loss.truncation)
        ideal, discounts = np.zeros(len(lengths)), discounts_of(int(most.max(initial=0)))
        for place, discount in enumerate(discounts.tolist()):
            some = np.flatnonzero(most > place)
            ideal[some] += best[query_start[some] + place] * discount
    return np.divide(1.0, ideal, out=np.zeros(len(ideal)), where=ideal > 0.0)


class _Lists:
    """Lists (q, m) in order of places, as ``ranking.Places`` has one; the places from n (q, 1) on do not count."""

    def __init__(self, loss: ListLoss, gain: Array, f: Array, n: Array) -> None:
        self._loss, self._gain, self._n = loss, gain, n
        with np.errstate(over="ignore", invalid="ignore"):  # a list whose best score is infinite
            below = f - f[:, :1]
            steps = loss.parameter * below
        self._power = exp_array(np.where(steps < FARTHEST, FARTHEST, steps)).astype(np.float32)
        self._score = np.where(below < FURTHEST, FURTHEST, below).astype(np.float32)
        discounts = discounts_of(f.shape[1]).astype(np.float32)[None]
        marks = precision_marks(gain > 0.0) if loss.weighs_precision else (discounts, discounts)
        self._reach, (self._upper, self._lower) = np.float32(NEAR) + self._score, marks
        longest = f.shape[1] - 1
        self._leaders = longest if loss.truncation is None else min(loss.truncation, longest)

    def lambdas(self, scales: Array) -> tuple[Array, Array]:
        """G and h (q, m) of places. scales (q,): factors of pair weights."""
        (q, m), leaders = self._gain.shape, self._leaders
        sums, below = np.zeros((2, q, m)), np.zeros((3, q, m))
        for top in range(0, leaders, TALL):
            uppers = slice(top, min(top + TALL, leaders))
            for kind, pairs in enumerate(self._pairs(uppers)):
                if kind < 2:
                    sums[kind, :, top:] += _from_the_top(pairs)
                for begin in range(top // WIDE * WIDE, m, WIDE):
                    below[kind, :, uppers] += _in_lanes(pairs[..., max(begin - top, 0) : begin + WIDE - top], LANES)
        steep, total = scales * self._loss.parameter, np.zeros(q)
        for a in range(leaders):
            total += below[2, :, a]
        total *= steep
        factor, some = np.ones(q), total > 0.0
        if self._loss.evens_lists:
            factor[some] = log_array(1.0 + 2.0 * total[some]) / (log(2.0) * (2.0 * total[some]))
        of_g, of_h = steep * factor, steep * self._loss.parameter * factor
        return (sums[0] - below[0]) * of_g[:, None], (sums[1] + below[1]) * of_h[:, None]

    def _pairs(self, uppers: slice) -> tuple[Array, ...]:
        """(q, r, m - top) of r places with all places from the first of them on: as ``Places.lambdas_below``."""

        def of_pairs(of_upper: Array, of_lower: Array) -> tuple[Array, Array]:
            return of_upper[:, uppers, None], of_lower[:, None, uppers.start :]

        a, b = of_pairs(*[np.arange(self._gain.shape[1])[None]] * 2)
        counts = (a < b) & (b < self._n[..., None])
        over = np.subtract(*of_pairs(self._gain, self._gain))
        apart = np.subtract(*of_pairs(self._upper, self._lower))
        of_pair = self._loss.pair_weight(np.abs(over).astype(np.float64), apart.astype(np.float64))
        weights = np.where(over != 0.0, of_pair, 0.0).astype(np.float32)
        close: Any = np.float32(1.0)
        if self._loss.prefers_close:
            close = np.where(counts, np.subtract(*of_pairs(self._reach, self._score)), close)
        one, other = of_pairs(self._power, self._power)
        better: Any = np.where(over > 0.0, one, other)
        worse: Any = np.where(over > 0.0, other, one)
        size, curve = (np.where(counts, x, np.float32(0.0)) for x in pair_derivatives(better, worse, weights, close))
        return np.copysign(size, over), curve, size


def _from_the_top(pairs: Array) -> Array:
    """(q, w) float32 sums of the pairs (q, r, w) of each lower place, the uppermost first."""
    total = np.zeros((len(pairs), pairs.shape[2]), np.float32)
    for upper in range(pairs.shape[1]):
        total += pairs[:, upper]
    return total


def _in_lanes(x: Array, count: int) -> Array:
    """The sum of numbers along the last axis: number i in lane i % count, then the lanes pairwise, half by half."""
    lanes = np.zeros((*x.shape[:-1], count), x.dtype)
    for begin in range(0, x.shape[-1], count):
        line = x[..., begin : begin + count]
        lanes[..., : line.shape[-1]] += line
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]
