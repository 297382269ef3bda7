"""Borders as CatBoost's GreedyLogSum chooses them, so that both libraries are given the same bins."""

from __future__ import annotations

from heapq import heappop, heappush
from math import log

import numpy as np

from gpuboost.benchmarks.harness.store import Array

_TINY = 1e-8


def greedy_log_sum(column: Array, count: int) -> Array:
    """At most ``count`` borders, increasing: the longest-looking segment is halved, each time, near its median.

    Of a continuous column five borders are the quantiles 1/8, 1/4, 3/8, 1/2 and 3/4. Ties between segments go to the
    one found first, where CatBoost's heap may pick another; a value goes right if it is above a border.
    """
    v = np.sort(np.asarray(column, np.float32))
    heap: list[tuple[float, int, int, int, int]] = []

    def push(a: int, b: int) -> None:
        cut, gain = _best_cut(v, a, b)
        if cut:
            heappush(heap, (-gain, len(heap), a, b, cut))

    push(0, len(v))
    ends = []
    while heap and len(ends) < count:
        _, _, a, b, cut = heappop(heap)
        ends.append(cut)
        push(a, cut)
        push(cut, b)
    return np.array([np.float32(0.5) * v[end - 1] + np.float32(0.5) * v[end] for end in sorted(ends)], np.float32)


def binned(x: Array, like: Array, count: int) -> Array:
    """x with every value replaced by the number of borders of ``like`` below it, as float32."""
    pairs = zip(x.T, like.T, strict=True)
    columns = [np.searchsorted(greedy_log_sum(known, count), column.astype(np.float32)) for column, known in pairs]
    return np.column_stack(columns).astype(np.float32)


def _best_cut(v: Array, a: int, b: int) -> tuple[int, float]:
    """Where to halve [a, b): before or after the run of values equal to the middle one. 0 if there is no such place."""
    middle = v[a + (b - a) // 2]
    low, high = a + int(np.searchsorted(v[a:b], middle, "left")), a + int(np.searchsorted(v[a:b], middle, "right"))
    candidates = [(s, log(s - a + _TINY) + log(b - s + _TINY) - log(b - a + _TINY)) for s in (low, high) if a < s < b]
    return max(candidates, key=lambda candidate: candidate[1], default=(0, 0.0))
