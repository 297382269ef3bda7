"""XE-NDCG on the CPU: threads divide the queries. The bits are those of ``reference.cross_entropy``."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu import formulas
from gpuboost.backends.cpu.rankings.query_parts import query_bounds
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.reference.cross_entropy import powers_of
from gpuboost.kernels.gradients.cross_entropy import GammaStream, PerturbedLists
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.types import Array, Gradients, TrainingSet

NO_WEIGHT = np.empty(0, np.float64)
SMALL = 5_000  # documents below which waking another thread costs more than it saves


@dataclass(frozen=True, slots=True, eq=False)
class PerturbedQueries:
    """Constants of the queries, the same in every round."""

    source: tuple[Array, Array]  # labels, and starts of the queries
    lists: PerturbedLists

    @classmethod
    def made_of(cls, data: TrainingSet) -> PerturbedQueries:
        weight = NO_WEIGHT if data.weight is None else data.weight
        start = np.ascontiguousarray(data.lists(), np.int64)
        return cls((data.y, data.lists()), PerturbedLists(powers_of(data.y), start, weight))

    def serves(self, data: TrainingSet) -> bool:
        return self.source[0] is data.y and self.source[1] is data.query_start


def gradients(
    queries: PerturbedQueries, scores: Array, data: TrainingSet, curvature: float | None, key: Key, first: int,
    pool: ThreadPool,
) -> Gradients:  # fmt: skip
    """(1, n) g and h of every document. first: number of the first row in the stream."""
    run, gammas = formulas.cross_entropy(), GammaStream(*(key / 0).words, first)
    g, h = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
    second = -1.0 if curvature is None else curvature
    parts = 1 if data.n_rows < SMALL else pool.size
    bounds = query_bounds(queries.lists.start[1:], parts)

    def part(number: int) -> None:
        run(queries.lists, gammas, scores[0], second, *bounds[number : number + 2], g[0], h[0])

    if parts == 1:
        part(0)
    else:
        pool.run(part)
    return Gradients(g, h, data.multiplicity)
