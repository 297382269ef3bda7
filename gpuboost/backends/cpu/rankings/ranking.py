"""Ranking losses on the CPU: threads divide the queries. The bits are those of ``reference.ranking``."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu import formulas
from gpuboost.backends.cpu.rankings.query_parts import query_bounds
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.reference.ranking import discounts_of, document_gains, gains_of
from gpuboost.kernels.gradients import ranking
from gpuboost.losses.protocol import ListLoss
from gpuboost.records import dataclass
from gpuboost.types import Array, Gradients, TrainingSet

NO_WEIGHT = np.empty(0, np.float64)
PER_DOCUMENT = 20  # cost of a document without its pairs, in pairs
SMALL = 100_000  # pairs below which waking another thread costs more than it saves


@dataclass(frozen=True, slots=True, eq=False)
class QueryConstants:
    """Constants of the queries, the same in every round."""

    source: tuple[Array, Array, ListLoss]  # labels, starts of the queries, and the loss
    gain: Array  # (n,) float32 of each document
    discounts: Array  # (longest + 16,) float32
    scales: Array  # (queries,) float64 factors of pair weights
    ends: Array  # (queries,) int64 cost in pairs up to the end of each query
    truncation: int  # number of leading places whose pairs count

    @classmethod
    def made_of(cls, loss: ListLoss, data: TrainingSet) -> QueryConstants:
        start, gains = data.lists(), gains_of(loss)
        lengths = np.diff(start)
        longest = int(lengths.max(initial=0))
        truncation = longest if loss.truncation is None else loss.truncation
        discounts, scales = discounts_of(longest + ranking.LANES), np.ones(len(lengths))
        if loss.uses_ideal:
            worth = (np.ones(longest), longest) if loss.weighs_precision else (discounts, truncation)
            ranking.scales(data.y, gains, start, *worth, scales)
        ends = np.cumsum(lengths * (np.minimum(lengths, truncation) + PER_DOCUMENT))
        gain = document_gains(gains, data.y)
        return cls((data.y, start, loss), gain, discounts.astype(np.float32), scales, ends, truncation)

    def serves(self, loss: ListLoss, data: TrainingSet) -> bool:
        y, start, own_loss = self.source
        return y is data.y and start is data.query_start and own_loss == loss


def gradients(
    loss: ListLoss, queries: QueryConstants, scores: Array, data: TrainingSet, curvature: float | None, pool: ThreadPool
) -> Gradients:
    """(1, n) g and h of every document."""
    run = formulas.lambdas(loss)
    g, h = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
    weight = NO_WEIGHT if data.weight is None else data.weight
    arrays = queries.gain, scores[0], data.lists(), queries.discounts, queries.scales, weight
    second = -1.0 if curvature is None else curvature
    options = loss.parameter, queries.truncation, loss.weighs_precision, loss.prefers_close, loss.evens_lists, second
    parts = 1 if queries.ends[-1] < SMALL else pool.size
    bounds = query_bounds(queries.ends, parts)
    if parts == 1:
        run(*arrays, *options, *bounds, g[0], h[0])
    else:
        pool.run(lambda part: run(*arrays, *options, bounds[part], bounds[part + 1], g[0], h[0]))
    return Gradients(g, h, data.multiplicity)
