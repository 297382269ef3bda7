"""List-wise losses on the CPU: the team shares out the lists. The same bits as ``reference_lists``, however it does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuboost.backends.cpu import formulas
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.reference.ranking import discounts_of, gains_of, worth_of
from gpuboost.kernels.gradients import ranking
from gpuboost.losses.protocol import ListLoss
from gpuboost.types import Array, Gradients, TrainingSet

NO_WEIGHT = np.empty(0, np.float64)
PER_DOCUMENT = 20  # what a document costs by itself, in pairs
SMALL = 100_000  # pairs below which waking another thread costs more than it saves


@dataclass(frozen=True, slots=True, eq=False)
class QueryConstants:
    """Constants of the queries, the same in every round."""

    of: tuple[Array, Array, ListLoss]  # labels, where the lists start, and the loss
    worth: Array  # (n,) float32 of each document
    discounts: Array  # (longest + 16,) float32
    scales: Array  # (lists,) float64 what pair weights are multiplied with
    ends: Array  # (lists,) int64 pairs, and what else documents cost, up to the end of each list
    most: int  # places that count in a list

    @classmethod
    def made_of(cls, loss: ListLoss, data: TrainingSet) -> QueryConstants:
        start, gains = data.lists(), gains_of(loss)
        lengths = np.diff(start)
        longest = int(lengths.max(initial=0))
        most = longest if loss.truncation is None else loss.truncation
        discounts, scales = discounts_of(longest + ranking.LANES), np.ones(len(lengths))
        if loss.uses_ideal:
            ranking.scales(data.y, gains, start, discounts, most, scales)
        ends = np.cumsum(lengths * (np.minimum(lengths, most) + PER_DOCUMENT))
        worth = worth_of(gains, data.y)
        return cls((data.y, start, loss), worth, discounts.astype(np.float32), scales, ends, most)

    def serves(self, loss: ListLoss, data: TrainingSet) -> bool:
        y, start, known = self.of
        return y is data.y and start is data.query_start and known == loss

    def stretches(self, parts: int) -> list[int]:
        """The first list of each part, with equal work in all parts, and the number of lists."""
        cuts = np.searchsorted(self.ends, self.ends[-1] * np.arange(1, parts) // parts)
        return [0, *cuts.tolist(), len(self.ends)]


def gradients(
    loss: ListLoss, lists: QueryConstants, scores: Array, data: TrainingSet, curvature: float | None, team: ThreadPool
) -> Gradients:
    """(1, n) g and h of every document."""
    run = formulas.lambdas(loss)
    g, h = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
    weight = NO_WEIGHT if data.weight is None else data.weight
    given = lists.worth, scores[0], data.lists(), lists.discounts, lists.scales, weight
    how = loss.parameter, lists.most, loss.prefers_close, loss.evens_lists, -1.0 if curvature is None else curvature
    parts = 1 if lists.ends[-1] < SMALL else team.size
    stretches = lists.stretches(parts)
    if parts == 1:
        run(*given, *how, *stretches, g[0], h[0])
    else:
        team.run(lambda part: run(*given, *how, stretches[part], stretches[part + 1], g[0], h[0]))
    return Gradients(g, h, data.multiplicity)
