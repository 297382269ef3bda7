"""Definition of importance sampling of rows in plain NumPy: ``Backend.draw``, and the verbs of ``ControlVariates``."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.backends.numerics.threshold import BUCKETS, Counts, Ints, SearchBySums
from gpuboost.records import dataclass
from gpuboost.types import Array, Gradients, NoiseScale, RowScore, Sample

NORMAL, LARGEST = 2.0**-126, float(np.finfo(np.float32).max)


def draw(
    gradients: Gradients, kappa: float, rule: ProbabilityRule, numbers: Array, losses: Array | RowScore | None
) -> Sample:
    """See ``Backend.draw``. ``numbers`` (n,): each row's own number of the stream, an integer below 2**32."""
    losses = row_scores(gradients, losses) if callable(losses) else losses
    scores = scores_of(gradients, kappa, losses)
    p = probabilities(scores, rule)
    rows = np.flatnonzero(numbers.astype(np.float64) < p * 2.0**32)
    return Sample(rows.astype(np.int32), (1.0 / p[rows]).astype(np.float32), int((p == 0.0).sum()))


def row_scores(gradients: Gradients, score: RowScore) -> Array:
    """(n,) float64: the sum over outputs of ``score(g, h)``, in the order of the outputs."""
    total = np.zeros(gradients.g.shape[1])
    for g, h in zip(gradients.g.astype(np.float64), gradients.h.astype(np.float64), strict=True):
        total += [score(*pair) for pair in zip(g.tolist(), h.tolist(), strict=True)]
    return total


def squared_scale(gradients: Gradients, scale: NoiseScale) -> Array:
    """(k, n) float64: scale(g, h)**2, the variance of a row's noise in units of deviation**2."""
    pairs = zip(gradients.g.ravel().tolist(), gradients.h.ravel().tolist(), strict=True)
    return np.array([float(scale(g, h)) ** 2 for g, h in pairs], np.float64).reshape(gradients.g.shape)


def scores_of(gradients: Gradients, kappa: float, losses: Array | None) -> Array:
    """(n,) float32: sqrt(sum g^2 + kappa sum h^2) over outputs, or the loss of each row; times its multiplicity."""
    if losses is None:
        g = np.zeros(gradients.g.shape[1])
        h = np.zeros(gradients.g.shape[1])
        for output in range(len(gradients.g)):
            g += gradients.g[output].astype(np.float64) ** 2
            h += gradients.h[output].astype(np.float64) ** 2
        s = np.sqrt(h if kappa == inf else g if kappa == 0.0 else g + kappa * h)
    else:
        s = losses
    if gradients.multiplicity is not None:
        s = s * gradients.multiplicity
    threshold.check(int((np.isnan(s)).sum()))
    s = np.minimum(s, LARGEST)
    return np.where(s >= NORMAL, s, 0.0).astype(np.float32)


def score_rows(gradients: Gradients, kappa: float, losses: Array | None, factor: Array | None) -> Array:
    """(n,) float64: see ``Backend.score_rows``. Losses are not rounded to float32; scores by derivatives are."""
    of_one = replace(gradients, multiplicity=None)
    scores = scores_of(of_one, kappa, None).astype(np.float64) if losses is None else np.array(losses, np.float64)
    return scores if factor is None else scores * factor


def probabilities(scores: Array, rule: ProbabilityRule) -> Array:
    """(n,) float64 probabilities of rows, from (n,) float32 scores."""
    return rule.probability(scores.astype(np.float64), rule.solve(SearchBySums(counts_of(scores), _RowSums(scores))))


@dataclass(frozen=True, slots=True)
class _RowSums:
    """``threshold.RowSums`` of an array."""

    scores: Array  # (n,) float32

    def three_sums(self, mu: float, low: float, scale: float) -> tuple[int, int, int]:
        s = self.scores.astype(np.float64)
        above, below = s >= mu, s < low
        between = np.rint(s[~above & ~below] * scale).astype(np.int64)
        return int(above.sum()), int(below.sum()), int(between.sum())

    def within(self, shift: int, prefix: int, low_bits: int) -> tuple[Ints, Ints]:
        bits = self.scores.view(np.uint32)
        return _by_place(bits[bits >> shift == prefix], low_bits, 1 << (shift - low_bits))


def counts_of(scores: Array) -> Counts:
    """Rows and significands of (n,) non-negative float32 scores, by the first bits of their patterns."""
    return Counts(*_by_place(scores.view(np.uint32), 20, BUCKETS))


def _by_place(bits: Array, low_bits: int, places: int) -> tuple[Ints, Ints]:
    """Rows and significands by the bits from ``low_bits`` up."""
    place = (bits >> low_bits) % places
    rows, significands = np.zeros(places, np.int64), np.zeros(places, np.int64)
    np.add.at(rows, place, 1)
    np.add.at(significands, place, np.where(bits > 0, bits & 0x007F_FFFF | 0x0080_0000, 0).astype(np.int64))
    return rows, significands


def node_control_variate(gradients: Gradients, sample: Sample, before: Gradients, eta: float) -> Gradients:
    """q / p (g - g') + eta g' and q / p h of all rows."""
    by = _weights(gradients, sample)
    g, old = gradients.g.astype(np.float64), before.g.astype(np.float64)
    controlled = by * (g - old) + eta * old
    return Gradients(controlled.astype(np.float32), (by * gradients.h).astype(np.float32), gradients.multiplicity)


def horvitz_thompson(gradients: Gradients, sample: Sample) -> Gradients:
    """q / p g and h of all rows."""
    g = _weights(gradients, sample) * gradients.g.astype(np.float64)
    return replace(gradients, g=g.astype(np.float32))


def leaf_control_variate(
    gradients: Gradients, sample: Sample, before: Gradients, eta: float, means: Array
) -> Gradients:
    """(g - g' + eta mean) / p and h / p of the drawn rows. means (k, n) float64: the mean of g' over the row's leaf."""
    by, g, old = _weights(gradients, sample), gradients.g.astype(np.float64), before.g.astype(np.float64)
    controlled = (by * (g - old + eta * means)).astype(np.float32), (by * gradients.h).astype(np.float32)
    rows, m = sample.rows, gradients.multiplicity
    if rows is None:
        return Gradients(*controlled, m)
    g, h = (values.take(rows, axis=1) for values in controlled)  # [:, rows] would not be in C order
    return Gradients(g, h, None if m is None else m[rows])


def _weights(gradients: Gradients, sample: Sample) -> Array:
    """(n,) float64: q / p of every row."""
    if sample.rows is None:
        return np.ones(gradients.g.shape[1])
    by = np.zeros(gradients.g.shape[1])
    by[sample.rows] = sample.inverse_probability
    return by
