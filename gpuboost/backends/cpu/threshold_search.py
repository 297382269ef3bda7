"""Newton's sums for the threshold of a draw on the CPU, made of the counts by bucket and of the few rows next to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import frexp

import numpy as np

from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.numerics.threshold import BUCKETS, Counts
from gpuboost.kernels.sampling import importance as sampling
from gpuboost.types import Array

SMALL = 16_384  # rows below which waking another thread costs more than it saves
NO_BUCKET = BUCKETS  # one that no score is in


@dataclass(slots=True)
class Border:
    """``three_sums`` of (n,) float32 scores, as ``threshold.ThreeSums`` has it.

    A bucket that neither threshold falls into has all of its rows on one side, and its sum of significands is that of
    its scores: only the rows of two buckets have to be looked at, and one pass finds them for as long as Newton's steps
    stay there. ``near`` (n,) float32 is room for them.
    """

    scores: Array
    counts: Counts
    pool: ThreadPool
    near: Array
    _found_for: tuple[int, int] | None = None
    _found: list[tuple[int, int]] = field(default_factory=list)  # where they are in ``near``, part by part

    def three_sums(self, mu: float, low: float, scale: float) -> tuple[int, int, int]:
        upper, lower = _bucket(mu), _bucket(low) if low > 0.0 else NO_BUCKET
        first = lower + 1 if low > 0.0 else 0  # of the buckets that are between the two
        shift = (np.arange(first, upper) >> 3) - 151 + frexp(scale)[1]  # a significand's unit is worth 2**shift
        inside = self.counts.significands[first:upper]
        if ((shift < 0) & (inside > 0)).any():  # scores that rounding would change, row by row
            return self._sum([(self.scores, part) for part in self._parts()], mu, low, scale)
        between = int((inside << np.maximum(shift, 0)).sum())
        above, below = int(self.counts.rows[upper + 1 :].sum()), int(self.counts.rows[: max(first - 1, 0)].sum())
        self._find(upper, lower)
        here = self._sum([(self.near, part) for part in self._found], mu, low, scale)
        return above + here[0], below + here[1], between + here[2]

    def _parts(self) -> list[tuple[int, int]]:
        n = len(self.scores)
        parts = 1 if n < SMALL else self.pool.size
        return [share(n, part, parts) for part in range(parts)]

    def _find(self, upper: int, lower: int) -> None:
        if self._found_for == (upper, lower):
            return
        parts = self._parts()
        count = [0] * len(parts)

        def take(part: int) -> None:
            a, b = parts[part]
            count[part] = sampling.take_buckets(self.scores, a, b, upper, lower, self.near[a:b])

        self.pool.run_parts(len(parts), take)
        self._found_for = upper, lower
        self._found = [(a, a + n_found) for (a, _), n_found in zip(parts, count, strict=True)]

    def _sum(
        self, parts: list[tuple[Array, tuple[int, int]]], mu: float, low: float, scale: float
    ) -> tuple[int, int, int]:
        out = np.zeros((len(parts), 8), np.int64)  # a cache line each

        def add(part: int) -> None:
            scores, (a, b) = parts[part]
            sampling.three_sums(scores, a, b, mu, low, scale, out[part])

        if sum(b - a for _, (a, b) in parts) < SMALL:
            for part in range(len(parts)):
                add(part)
        else:
            self.pool.run_parts(len(parts), add)
        above, below, between = out.sum(axis=0)[:3].tolist()
        return above, below, between


def _bucket(x: float) -> int:
    """Bucket of a positive number: higher buckets hold larger scores only, lower ones smaller scores."""
    significand, exponent = frexp(x)
    return min(max((exponent + 126) * 8 + int(significand * 16.0) - 8, 0), BUCKETS - 1)
