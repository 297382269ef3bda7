"""Search for the sampling threshold on the CPU: by one kernel among few rows, by sums over many."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import frexp

import numpy as np

from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics.threshold import BUCKETS, Counts, Ints, SearchBySums, ThresholdSearch
from gpuboost.kernels.sampling import importance
from gpuboost.kernels.sampling import threshold as kernels
from gpuboost.types import Array

SMALL = 16_384  # rows below which waking another thread costs more than it saves
FEW = 16_384  # rows below which one kernel searches, which for each step goes through all of them
NO_BUCKET = BUCKETS  # one that no score is in


def search_among(scores: Array, counts: Array, pool: ThreadPool, workspace: Workspace) -> ThresholdSearch:
    """The search among (n,) float32 scores. counts (2, 2048) int64: rows and significands; may be overwritten."""
    if 0 < len(scores) < FEW:
        return SearchByKernel(scores, counts, workspace)
    of_buckets = Counts(*counts)
    return SearchBySums(of_buckets, ThreadedRowSums(scores, of_buckets, pool, workspace))


@dataclass(slots=True)
class SearchByKernel:
    """``threshold.ThresholdSearch`` among few rows, on one thread; for one call of one method."""

    scores: Array
    counts: Array
    workspace: Workspace

    @property
    def n(self) -> int:
        return len(self.scores)

    def rho_for_rate(self, rate: float, floor: float) -> float:
        room = self.workspace.array("sums of buckets", (3, BUCKETS), np.float64)
        rho: float = kernels.rho_for_rate(rate, floor, self.scores, *self.counts, room)
        return rho

    def score_of_rank(self, k: float) -> tuple[float, int, int]:
        score, above, ties = kernels.score_of_rank(k, self.scores.view(np.uint32), *self.counts)
        return score, above, ties

    def score_of_mass(self, mass: float) -> float:
        score: float = kernels.score_of_mass(mass, self.scores.view(np.uint32), *self.counts)
        return score


@dataclass(slots=True)
class ThreadedRowSums:
    """``threshold.RowSums`` of (n,) float32 scores, divided among threads.

    Newton's sums need only the rows of two buckets: a bucket that contains neither threshold has all of its rows on one
    side, and its sum of scores follows from its sum of significands. One pass finds these rows, as long as Newton's
    steps stay in the same buckets.
    """

    scores: Array
    counts: Counts
    pool: ThreadPool
    workspace: Workspace
    _buckets: tuple[int, int] | None = None  # whose scores are in ``_near``
    _near: Array = None  # (n,) float32: the scores of these buckets, part by part
    _near_parts: list[tuple[int, int]] = field(default_factory=list)  # where each part's begin and end

    def three_sums(self, mu: float, low: float, scale: float) -> tuple[int, int, int]:
        upper, lower = _bucket(mu), _bucket(low) if low > 0.0 else NO_BUCKET
        first = lower + 1 if low > 0.0 else 0  # of the buckets that are between the two
        shift = (np.arange(first, upper) >> 3) - 151 + frexp(scale)[1]  # a significand's unit is worth 2**shift
        inside = self.counts.significands[first:upper]
        if ((shift < 0) & (inside > 0)).any():  # scores that rounding would change, row by row
            return self._sum([(self.scores, part) for part in self._parts()], mu, low, scale)
        between = int((inside << np.maximum(shift, 0)).sum())
        above, below = int(self.counts.rows[upper + 1 :].sum()), int(self.counts.rows[: max(first - 1, 0)].sum())
        self._gather(upper, lower)
        near = self._sum([(self._near, part) for part in self._near_parts], mu, low, scale)
        return above + near[0], below + near[1], between + near[2]

    def within(self, shift: int, prefix: int, low_bits: int) -> tuple[Ints, Ints]:
        bits = self.scores.view(np.uint32)
        parts, places = self._parts(), 1 << (shift - low_bits)
        out = np.zeros((len(parts), 2, places), np.int64)

        def count(part: int) -> None:
            importance.count_within(bits, *parts[part], shift, np.uint32(prefix), low_bits, *out[part])

        self.pool.run_parts(len(parts), count)
        rows, significands = out.sum(axis=0)
        return rows, significands

    def _parts(self) -> list[tuple[int, int]]:
        n = len(self.scores)
        parts = 1 if n < SMALL else self.pool.size
        return [share(n, part, parts) for part in range(parts)]

    def _gather(self, upper: int, lower: int) -> None:
        """Fill ``_near`` with the scores of these two buckets, unless it already holds them."""
        if self._buckets == (upper, lower):
            return
        near = self._near = self.workspace.array("scores near the threshold", self.scores.shape, np.float32)
        parts = self._parts()
        count = [0] * len(parts)

        def take(part: int) -> None:
            a, b = parts[part]
            count[part] = importance.take_buckets(self.scores, a, b, upper, lower, near[a:b])

        self.pool.run_parts(len(parts), take)
        self._buckets = upper, lower
        self._near_parts = [(a, a + taken) for (a, _), taken in zip(parts, count, strict=True)]

    def _sum(
        self, parts: list[tuple[Array, tuple[int, int]]], mu: float, low: float, scale: float
    ) -> tuple[int, int, int]:
        out = np.zeros((len(parts), 8), np.int64)  # a cache line each

        def add(part: int) -> None:
            scores, (a, b) = parts[part]
            importance.three_sums(scores, a, b, mu, low, scale, out[part])

        if sum(b - a for _, (a, b) in parts) < SMALL:
            for part in range(len(parts)):
                add(part)
        else:
            self.pool.run_parts(len(parts), add)
        above, below, between = out.sum(axis=0)[:3].tolist()
        return above, below, between


def _bucket(x: float) -> int:
    """Bucket of a positive number. Buckets are in the order of scores."""
    significand, exponent = frexp(x)
    return min(max((exponent + 126) * 8 + int(significand * 16.0) - 8, 0), BUCKETS - 1)
