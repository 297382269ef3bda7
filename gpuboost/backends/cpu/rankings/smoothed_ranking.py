"""Smoothed ranking metrics on the CPU: threads divide the queries. The bits are ``reference.smoothed_ranking``'s."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu import formulas
from gpuboost.backends.cpu.rankings.query_parts import query_bounds
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.reference.ranking import discounts_of, document_gains, gains_of
from gpuboost.backends.reference.smoothed_ranking import NU, drops_of, shifts_of
from gpuboost.kernels.common import normal
from gpuboost.kernels.gradients import ranking
from gpuboost.kernels.gradients.smoothed_ranking import Lists, NoiseStream, Rule
from gpuboost.keys import Key
from gpuboost.losses.protocol import SmoothedLoss
from gpuboost.records import dataclass
from gpuboost.types import Array, Gradients, TrainingSet

NO_WEIGHT = np.empty(0, np.float64)
PER_DOCUMENT = 20  # cost of a document without its pairs, in pairs
SMALL = 20_000  # pairs below which waking another thread costs more than it saves


@dataclass(frozen=True, slots=True, eq=False)
class SmoothedQueries:
    """Constants of the queries, the same in every round."""

    source: tuple[Array, Array, SmoothedLoss]  # labels, starts of the queries, and the loss
    lists: Lists
    rule: Rule
    ends: Array  # (queries,) int64 cost in pairs up to the end of each query

    @classmethod
    def made_of(cls, loss: SmoothedLoss, data: TrainingSet) -> SmoothedQueries:
        start, gains = np.ascontiguousarray(data.lists(), np.int64), gains_of(loss)
        lengths, scales = np.diff(start), np.ones(len(start) - 1)
        longest = int(lengths.max(initial=0))
        truncation = longest if loss.truncation is None else min(loss.truncation, longest)
        ranking.scales(data.y, gains, start, discounts_of(longest), truncation, scales)
        weight = NO_WEIGHT if data.weight is None else data.weight
        lists = Lists(
            document_gains(gains, data.y), shifts_of(loss, data.y), start, drops_of(loss, longest), scales, weight
        )
        ends = np.cumsum(loss.samples * lengths * (np.minimum(lengths, truncation) + PER_DOCUMENT))
        rule = Rule(loss.sigma, truncation, loss.scale_free, NU)
        return cls((data.y, data.lists(), loss), lists, rule, ends)

    def serves(self, loss: SmoothedLoss, data: TrainingSet) -> bool:
        y, start, own_loss = self.source
        return y is data.y and start is data.query_start and own_loss == loss


def smoothed_gradients(
    queries: SmoothedQueries, scores: Array, data: TrainingSet, curvature: float, key: Key, first: int, pool: ThreadPool
) -> Gradients:
    """(1, n) g and h of every document. first: number of the first row in the stream."""
    run, samples = formulas.smoothed(), queries.source[2].samples
    g, h = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
    words = [(key / draw).words for draw in range(samples)]
    streams = np.array([word[3] for word in words], np.uint32)
    noise = NoiseStream(normal.TABLE, *words[0][:3], streams, first)
    parts = 1 if queries.ends[-1] < SMALL else pool.size
    bounds = query_bounds(queries.ends, parts)

    def part(number: int) -> None:
        run(queries.lists, queries.rule, noise, scores[0], curvature, *bounds[number : number + 2], g[0], h[0])

    if parts == 1:
        part(0)
    else:
        pool.run(part)
    return Gradients(g, h, data.multiplicity)
