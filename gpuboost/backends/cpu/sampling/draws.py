"""Row sampling on the CPU: each thread draws from its own stretch of rows, and the results are concatenated."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeAlias

import numpy as np

from gpuboost.backends.cpu import formulas
from gpuboost.backends.cpu.sampling.threshold_search import search_among
from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.kernels.common import philox
from gpuboost.kernels.sampling import draw as uniform_draw
from gpuboost.kernels.sampling import importance, row_factors
from gpuboost.keys import Key
from gpuboost.types import Array, Gradients, RowScore, Sample

SMALL = 16_384  # rows below which waking another thread costs more than it saves
NO_MULTIPLICITY = np.empty(0, np.int32)

Draw: TypeAlias = Callable[[int, int, Array, Array], tuple[int, int]]
"""(start, stop, rows, inverse) -> (number of rows drawn, number of rows of p 0), of the rows start .. stop - 1.

The rows drawn, and 1 / p of each, are written to ``rows`` and ``inverse``.
"""


def uniform(probability: float, n_rows: int, key: Key, pool: ThreadPool, workspace: Workspace) -> Sample:
    """Sample of rows with equal probability. See ``Backend.sample``."""
    limit = limit_of(probability)

    def draw_stretch(start: int, stop: int, rows: Array, inverse: Array) -> tuple[int, int]:
        return uniform_draw.drawn_rows(start, stop, limit, *key.words, rows), 0

    rows, _, _ = _drawn(n_rows, draw_stretch, pool, workspace)
    return Sample(rows, np.full(len(rows), 1.0 / probability, dtype=np.float32))


def limit_of(probability: float) -> np.uint64:
    """The uint64 limit: a row is drawn if its 32 random bits are below it."""
    return np.uint64(int(probability * 2.0**32))


def draw(
    gradients: Gradients, kappa: float, rule: ProbabilityRule, key: Key, losses: Array | RowScore | None,
    pool: ThreadPool, workspace: Workspace,
) -> Sample:  # fmt: skip
    """See ``Backend.draw``. ``workspace`` is scratch memory."""
    losses = row_scores(gradients, losses, pool) if callable(losses) else losses
    scores, counts = _scores(gradients, kappa, losses, pool, workspace)
    parameters = np.array(rule.solve(search_among(scores, counts, pool, workspace)), np.float64)

    def draw_stretch(start: int, stop: int, rows: Array, inverse: Array) -> tuple[int, int]:
        drawn, excluded = importance.draw(scores, start, stop, rule.kind, parameters, *key.words, rows, inverse)
        return drawn, excluded

    return Sample(*_drawn(len(scores), draw_stretch, pool, workspace))


def row_scores(gradients: Gradients, score: RowScore, pool: ThreadPool | None = None) -> Array:
    """(n,) float64: the sum over outputs of a user's score of each row; on the calling thread without a pool."""
    run, (k, n) = formulas.row_scores(score), gradients.g.shape
    g, h = _bits(gradients)
    scores = np.empty(n)
    if pool is None:
        run(0, n, 1, g, h, n, k, scores)
    else:
        _in_parts(n, lambda _, begin, end: run(begin, end, 1, g, h, n, k, scores), pool)
    return scores


def score_rows(
    gradients: Gradients, kappa: float, losses: Array | None, factor: Array | None, pool: ThreadPool
) -> Array:
    """(n,) float64: see ``Backend.score_rows``."""
    (k, n), (g, h) = gradients.g.shape, _bits(gradients)
    scores, nothing, made_of = np.empty(n), np.empty(0), terms_of(kappa)
    if losses is not None:
        made_of = row_factors.LOSSES
    of = np.asarray(losses, np.float64) if losses is not None else nothing
    by = np.asarray(factor, np.float64) if factor is not None else nothing

    def work(_: int, begin: int, end: int) -> None:
        row_factors.row_factors(begin, end, 1, g, h, of, made_of, kappa, by, factor is not None, n, k, scores)

    _in_parts(n, work, pool)
    threshold.check(int(np.isnan(scores).sum()) if losses is None else 0)
    return scores


def weigh(gradients: Gradients, sample: Sample, pool: ThreadPool) -> Gradients:
    """The gradients of the drawn rows, times 1 / p, for a sample that is not of all rows. See ``Backend.weigh``."""
    rows, by, m = sample.rows, sample.inverse_probability, gradients.multiplicity
    assert rows is not None
    g, h = (np.empty((len(values), len(rows)), np.float32) for values in (gradients.g, gradients.h))

    def work(_: int, a: int, b: int) -> None:
        importance.weigh(gradients.g, rows, by, a, b, g)
        importance.weigh(gradients.h, rows, by, a, b, h)

    _in_parts(len(rows), work, pool)
    return Gradients(g, h, None if m is None else m[rows])


def _scores(
    gradients: Gradients, kappa: float, losses: Array | None, pool: ThreadPool, workspace: Workspace
) -> tuple[Array, Array]:
    """(n,) float32 scores; (2, 2048) int64 rows and significands in each bucket."""
    g, h = gradients.g, gradients.h
    m = NO_MULTIPLICITY if gradients.multiplicity is None else gradients.multiplicity
    scores = workspace.array("scores", g.shape[1:], np.float32)
    made_of, parts = terms_of(kappa), 1 if len(scores) < SMALL else pool.size
    bad, table = [0] * parts, np.zeros((parts, 2, importance.BUCKETS), np.int64)

    def work(part: int, begin: int, end: int) -> None:
        if losses is None:
            bad[part] = importance.importance(g, h, m, made_of, kappa, begin, end, scores, *table[part])
        else:
            bad[part] = importance.clip(losses, m, begin, end, scores)
            importance.count(scores.view(np.uint32), begin, end, *table[part])

    _in_parts(len(scores), work, pool)
    threshold.check(sum(bad))
    return scores, table[0] if parts == 1 else table.sum(axis=0)


def terms_of(kappa: float) -> int:
    """The terms that a score is made of, as ``kernels.sampling.importance`` numbers them."""
    made_of: int = importance.CURVATURE if kappa == inf else importance.BOTH if kappa > 0.0 else importance.GRADIENT
    return made_of


def _bits(gradients: Gradients) -> tuple[Array, Array]:
    """g and h as uint32, output by output."""
    g, h = (np.ascontiguousarray(values, np.float32) for values in (gradients.g, gradients.h))
    return g.view(np.uint32).reshape(-1), h.view(np.uint32).reshape(-1)


def _drawn(n: int, draw_stretch: Draw, pool: ThreadPool, workspace: Workspace) -> tuple[Array, Array, int]:
    """The rows drawn by all parts, in order, their 1 / p, and the number of rows of p 0.

    Parts begin where a block of random numbers does.
    """
    rows, inverse = workspace.array("drawn", (n,), np.int32), workspace.array("inverse", (n,), np.float32)
    blocks = -(-n // philox.NUMBERS)
    parts = 1 if n < SMALL else pool.size
    bounds = [min(share(blocks, part, parts)[0] * philox.NUMBERS, n) for part in range(parts)] + [n]
    drawn, excluded = [0] * parts, [0] * parts

    def work(part: int) -> None:
        a, b = bounds[part], bounds[part + 1]
        drawn[part], excluded[part] = draw_stretch(a, b, rows[a:b], inverse[a:b])

    pool.run_parts(parts, work)
    if parts == 1:
        return rows[: drawn[0]].copy(), inverse[: drawn[0]].copy(), excluded[0]
    stretches = [slice(bounds[part], bounds[part] + drawn[part]) for part in range(parts)]
    drawn_rows = np.concatenate([rows[stretch] for stretch in stretches])
    return drawn_rows, np.concatenate([inverse[stretch] for stretch in stretches]), sum(excluded)


def _in_parts(n: int, work: Callable[[int, int, int], object], pool: ThreadPool) -> None:
    """Call work(part, begin, end) on stretches of the rows, in parallel if there are enough of them."""
    if n < SMALL or pool.size == 1:
        work(0, 0, n)
    else:
        pool.run(lambda part: work(part, *share(n, part, pool.size)))
