"""Definition of the derivatives of unbiased LambdaMART, in plain Python, float64.

Pairs of a list are in order of the place of the upper document, then of the lower one; each adds to the sums of both.
Costs of pairs are summed over blocks of 512 lists, and blocks in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpuboost.backends.numerics.list_gradients import weighted_and_rounded
from gpuboost.backends.numerics.position_bias import estimated, tracked_positions
from gpuboost.backends.reference.ranking import by_score, discounts_of, scale_of
from gpuboost.elementary import exp, log, log1pexp
from gpuboost.losses.protocol import DebiasingLoss
from gpuboost.losses.ranking import NEAR
from gpuboost.types import Array, PositionBias, TrainingSet

BLOCK = 512  # lists whose costs are summed before blocks are


def derivatives(loss: DebiasingLoss, scores: Array, data: TrainingSet, curvature: float | None) -> tuple[Array, Array]:
    """(1, n) float32 g and h, weighted."""
    bias, position = position_bias(loss, scores, data), tracked_positions(data)
    g, h = np.zeros(data.n_rows), np.zeros(data.n_rows)
    for pairs in _lists(loss, scores, data):
        total = 0.0
        for better, worse, weight, ahead, apart in pairs.each():
            w = weight / (bias.plus[position[better]] * bias.minus[position[worse]])
            w = w / (NEAR + apart) if loss.prefers_close else w
            small = exp(-abs(ahead))
            wrong = (small if ahead >= 0.0 else 1.0) / (1.0 + small)
            first = (loss.sigma * w) * wrong
            second = (loss.sigma * loss.sigma * w) * (small / ((1.0 + small) * (1.0 + small)))
            g[better] -= first
            g[worse] += first
            h[better] += second
            h[worse] += second
            total += first
        if loss.evens_lists and total > 0.0:
            rows = slice(pairs.rows[0], pairs.rows[1])
            factor = log(1.0 + 2.0 * total) / (log(2.0) * (2.0 * total))
            g[rows] *= factor
            h[rows] *= factor
    return weighted_and_rounded(g, h, data, curvature)


def position_bias(loss: DebiasingLoss, scores: Array, data: TrainingSet) -> PositionBias:
    """The estimates at these scores. A list's costs count by its weight."""
    position, weight = tracked_positions(data), data.row_weight()
    size = int(position.max(initial=0)) + 1
    cost = np.zeros((size, size))
    block = np.zeros((size, size))
    for number, pairs in enumerate(_lists(loss, scores, data)):
        if number % BLOCK == 0:
            cost, block = cost + block, np.zeros((size, size))
        for better, worse, of_pair, ahead, _ in pairs.each():
            block[position[better], position[worse]] += weight[better] * (of_pair * log1pexp(-ahead))
    return estimated(cost + block, loss.bias_norm)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The pairs of one list."""

    loss: DebiasingLoss
    rows: tuple[int, int]
    order: list[int]  # rows by place
    f: Array
    gain: Array  # of all rows
    scale: float

    def each(self) -> Iterator[tuple[int, int, float, float, float]]:
        """(row of the better one, row of the worse one, weight, sigma times its lead, distance of scores)."""
        n, loss = len(self.order), self.loss
        discounts = discounts_of(n)
        for a in range(min(n if loss.truncation is None else loss.truncation, n - 1) if self.scale > 0.0 else 0):
            for b in range(a + 1, n):
                i, j = self.order[a], self.order[b]
                over, apart = self.gain[i] - self.gain[j], float(self.f[i] - self.f[j])
                if over == 0.0:
                    continue
                weight = self.scale * (abs(over) * (discounts[a] - discounts[b]))
                if over > 0.0:
                    yield i, j, weight, loss.sigma * apart, apart
                else:
                    yield j, i, weight, -(loss.sigma * apart), apart


def _lists(loss: DebiasingLoss, scores: Array, data: TrainingSet) -> Iterator[_Pairs]:
    gains, start, f = np.asarray(loss.gains(), np.float64), data.lists().tolist(), scores[0]
    gain = gains[np.asarray(data.y).astype(np.int64)]
    for begin, stop in pairwise(start):
        scale = scale_of(loss, data.y[begin:stop].tolist(), gains.tolist())
        yield _Pairs(loss, (begin, stop), by_score(f, begin, stop), f, gain, scale)
