"""Rows drawn on the CPU: each thread passes over its own stretch, and the stretches are laid end to end."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeAlias

import numpy as np

from gpuboost.backends.cpu.threshold_search import Border
from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.probabilities import Heaviest, Odds, Proportional, TopAndOthers
from gpuboost.backends.numerics.threshold import Counts, Ints
from gpuboost.kernels.common import philox
from gpuboost.kernels.sampling import importance as sampling
from gpuboost.keys import Key
from gpuboost.types import Array, Gradients, Sample

SMALL = 16_384  # rows below which waking another thread costs more than it saves
NO_MULTIPLICITY = np.empty(0, np.int32)

Draw: TypeAlias = Callable[[int, int, Array, Array], int]
"""(start, stop, rows, inverse): the rows drawn from a stretch, 1 / p of each, and how many they are"""


def uniform(probability: float, n_rows: int, key: Key, team: ThreadPool, room: Workspace) -> Sample:
    """Rows that are all drawn with the same probability. See ``Backend.sample``."""
    p = int(probability * 2.0**32) / 2.0**32  # the whole numbers below it are as many as the definition says
    rows, _ = _drawn(n_rows, lambda a, b, out, _: philox.drawn_rows(a, b, p, *key.words, out), team, room)
    return Sample(rows, np.full(len(rows), 1.0 / probability, dtype=np.float32))


def draw(
    gradients: Gradients, kappa: float, odds: Odds, key: Key, losses: Array | None, team: ThreadPool, room: Workspace
) -> Sample:
    """See the protocol. ``room`` is for what is forgotten once the rows are drawn."""
    scores, counts = _scores(gradients, kappa, losses, team, room)
    n, bits = len(scores), scores.view(np.uint32)

    def within(shift: int, prefix: int, narrow: int) -> tuple[Ints, Ints]:
        out = np.zeros((team.size, 2, 1 << (shift - narrow)), np.int64)
        how = shift, np.uint32(prefix), narrow
        _in_parts(n, lambda part, a, b: sampling.count_within(bits, a, b, *how, *out[part]), team)
        rows, significands = out.sum(axis=0)
        return rows, significands

    match odds:
        case Proportional():
            rho = 0.0 if odds.rho is None else odds.rho
            if odds.rate is not None:
                border = Border(scores, counts, team, room.array("border", scores.shape, np.float32))
                rho = threshold.proportional(counts, odds.rate, odds.floor, border.three_sums)
            never = counts.zeros if odds.floor == 0.0 else 0
            p = rho, odds.floor
            return _sample(
                n, lambda a, b, *out: sampling.draw_proportional(scores, a, b, *p, *key.words, *out), never, team, room
            )
        case TopAndOthers():
            score, above, ties = threshold.ranked(counts, odds.top * n, within)
            others = threshold.others(odds.top, odds.other)
            ranks = score, threshold.at_border(odds.top * n, above, ties, others), others
            return _sample(
                n, lambda a, b, *out: sampling.draw_by_rank(scores, a, b, *ranks, *key.words, *out), 0, team, room
            )
        case Heaviest():
            rows = np.flatnonzero(scores >= np.float32(threshold.heaviest(counts, odds.mass, within))).astype(np.int32)
            return Sample(rows, np.ones(len(rows), np.float32), n - len(rows))


def weigh(gradients: Gradients, sample: Sample, team: ThreadPool) -> Gradients:
    """The gradients of the drawn rows, times 1 / p. See ``Backend.weigh``."""
    if sample.rows is None:
        return gradients
    rows, by, m = sample.rows, sample.inverse_probability, gradients.multiplicity
    g, h = (np.empty((len(values), len(rows)), np.float32) for values in (gradients.g, gradients.h))

    def work(_: int, a: int, b: int) -> None:
        sampling.weigh(gradients.g, rows, by, a, b, g)
        sampling.weigh(gradients.h, rows, by, a, b, h)

    _in_parts(len(rows), work, team)
    return Gradients(g, h, None if m is None else m[rows])


def _scores(
    gradients: Gradients, kappa: float, losses: Array | None, team: ThreadPool, room: Workspace
) -> tuple[Array, Counts]:
    """(n,) float32, and how many there are of each size."""
    g, h = gradients.g, gradients.h
    m = NO_MULTIPLICITY if gradients.multiplicity is None else gradients.multiplicity
    scores = room.array("scores", g.shape[1:], np.float32)
    bits = scores.view(np.uint32)
    made_of = sampling.CURVATURE if kappa == inf else sampling.BOTH if kappa > 0.0 else sampling.GRADIENT
    bad, table = np.zeros(team.size, np.int64), np.zeros((team.size, 2, sampling.BUCKETS), np.int64)

    def work(part: int, begin: int, end: int) -> None:
        if losses is None:
            bad[part] = sampling.importance(g, h, m, made_of, kappa, begin, end, scores, *table[part])
        else:
            bad[part] = sampling.clip(losses, m, begin, end, scores)
            sampling.count(bits, begin, end, *table[part])

    _in_parts(len(scores), work, team)
    threshold.check(int(bad.sum()))
    return scores, Counts(*table.sum(axis=0))


def _sample(n: int, draw_stretch: Draw, never: int, team: ThreadPool, room: Workspace) -> Sample:
    rows, inverse = _drawn(n, draw_stretch, team, room)
    return Sample(rows, inverse, never)


def _drawn(n: int, draw_stretch: Draw, team: ThreadPool, room: Workspace) -> tuple[Array, Array]:
    """What every part drew, in the order of rows. Parts begin where a block of random numbers does."""
    rows, inverse = room.array("drawn", (n,), np.int32), room.array("inverse", (n,), np.float32)
    blocks = -(-n // philox.NUMBERS)
    parts = 1 if n < SMALL else team.size
    bounds = [min(share(blocks, part, parts)[0] * philox.NUMBERS, n) for part in range(parts)] + [n]
    count = [0] * parts

    def work(part: int) -> None:
        if part < parts:
            a, b = bounds[part], bounds[part + 1]
            count[part] = draw_stretch(a, b, rows[a:b], inverse[a:b])

    team.run(work) if parts > 1 else work(0)
    kept = [slice(bounds[part], bounds[part] + count[part]) for part in range(parts)]
    return np.concatenate([rows[one] for one in kept]), np.concatenate([inverse[one] for one in kept])


def _in_parts(n: int, work: Callable[[int, int, int], object], team: ThreadPool) -> None:
    """work(part, begin, end) on stretches of the rows, at once if there are enough of them."""
    if n < SMALL or team.size == 1:
        work(0, 0, n)
    else:
        team.run(lambda part: work(part, *share(n, part, team.size)))
