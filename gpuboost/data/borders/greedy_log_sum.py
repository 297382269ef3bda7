"""CatBoost's GreedyLogSum borders, from the distinct values of a feature and their weights.

The segment that gains most is halved near its median, time and again: of a continuous feature five borders are the
quantiles 1/8, 1/4, 3/8, 1/2 and 3/4, and not the sixths.
"""

from __future__ import annotations

import numpy as np

from gpuboost.data.borders.quantiles import Integers
from gpuboost.elementary import log

TINY = 1e-8
"""Added to each mass whose logarithm is taken, as in CatBoost."""

Segment = tuple[float, int, int, int]
"""Gain, first distinct value, end, and the distinct value before which the segment is cut"""


def greedy_ends(mass: Integers, max_bins: int) -> Integers:
    """Index of the last value of each bin but the last one; at most ``max_bins`` bins. mass: (u,) positive.

    Equal gains come in the order of a binary heap as CatBoost's, so that borders agree one by one.
    """
    total = np.concatenate([[0], np.cumsum(mass)])
    heap: list[Segment] = []
    _push(heap, _segment(total, 0, len(mass)))
    cuts: list[int] = []
    while heap and len(cuts) < max_bins - 1:
        _, begin, end, cut = _pop(heap)
        cuts.append(cut)
        _push(heap, _segment(total, begin, cut))
        _push(heap, _segment(total, cut, end))
    return np.array(sorted(cuts), np.int64) - 1


def _segment(total: Integers, begin: int, end: int) -> Segment | None:
    """The values begin .. end - 1, to be cut before or after the value of the middle row; None if there is one value.

    total: (u + 1,) mass before each value.
    """
    a, b = int(total[begin]), int(total[end])
    middle = int(np.searchsorted(total, a + (b - a) // 2, side="right")) - 1
    options = [cut for cut in (middle, middle + 1) if begin < cut < end]
    best: Segment | None = None
    for cut in options:
        s = int(total[cut])
        gain = log(s - a + TINY) + log(b - s + TINY) - log(b - a + TINY)
        if best is None or gain > best[0]:
            best = gain, begin, end, cut
    return best


def _push(heap: list[Segment], segment: Segment | None) -> None:
    """Add a segment: it rises as long as its parent gains less."""
    if segment is None:
        return
    heap.append(segment)
    place = len(heap) - 1
    while place > 0 and heap[(place - 1) // 2][0] < segment[0]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = segment


def _pop(heap: list[Segment]) -> Segment:
    """Remove the segment that gains most: the last one sinks from its place, also past its equals."""
    top, moved = heap[0], heap.pop()
    place, size = 0, len(heap)
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[child][0] < heap[child + 1][0]:
            child += 1
        if heap[child][0] < moved[0]:
            break
        heap[place] = heap[child]
        place = child
    if size:
        heap[place] = moved
    return top
