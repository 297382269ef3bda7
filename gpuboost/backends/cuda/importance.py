"""Importance sampling on a device: threshold and draw, without transfers to the host."""

from __future__ import annotations

from functools import cache
from math import inf

import numpy as np

from gpuboost.backends.cuda.codegen.functions import Kind
from gpuboost.backends.cuda.codegen.row_kernels import row_kernel
from gpuboost.backends.cuda.device.inputs import Input
from gpuboost.backends.cuda.device.kernels import Kernels, Launcher
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Functions, Runtime
from gpuboost.backends.cuda.draws import draw_log
from gpuboost.backends.cuda.resident import Resident
from gpuboost.backends.cuda.target import (
    CHUNK,
    DRAW_THREADS,
    KEY_WORDS,
    DeviceGradients,
    DeviceSample,
    rows_drawn_at_most,
)
from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.kernels.sampling.row_scores import row_scores
from gpuboost.keys import Key
from gpuboost.types import Array, RowScore

COUNT_THREADS, COUNT_ROWS, LEAST_ROWS, APPROACH_ROWS = 512, 1 << 14, 2048, 4 * 256  # as in the kernels
THRESHOLD_BYTES, SEEN_BYTES = 80, 16
GRADIENT, BOTH, CURVATURE, LOSSES = 0, 1, 2, 3  # inputs of a score
FILES = (
    "common/common.cuh",
    "common/blocks.cuh",
    "sampling/drawn.cuh",
    "common/philox.cuh",
    "sampling/threshold.cuh",
    "sampling/importance.cu",
)


@cache
def _row_scores_kernel(score: RowScore) -> tuple[str, str, Functions]:
    """Text, name and functions of the kernel ``row_scores`` of a user's function."""
    parameters: dict[str, Kind] = {"g": "const u32*", "h": "const u32*", "n": "i32", "k": "i32", "out": "f64*"}
    return row_kernel("row_scores", row_scores(score), parameters)


def room_for(rule: ProbabilityRule, n: int) -> int:
    """Capacity of a list of drawn rows.

    The variance of a sum of independent draws of mean r n is at most that of n draws of probability r.
    """
    return rows_drawn_at_most(rule.largest_rate, n)


def _made_of(kappa: float, losses: Array | None) -> int:
    if losses is not None:
        return LOSSES
    return CURVATURE if kappa == inf else BOTH if kappa > 0.0 else GRADIENT


class Importance:
    """The verb ``draw``."""

    def __init__(self, runtime: Runtime, resident: Resident, rounds: RecordedRound) -> None:
        self._runtime, self._resident, self._rounds = runtime, resident, rounds
        self._kernel, self._key = Kernels(runtime, *FILES), Input(rounds, KEY_WORDS)
        self._row_factors = Kernels(runtime, "common/common.cuh", "sampling/row_factors.cu")

    def draw(
        self, gradients: DeviceGradients, kappa: float, rule: ProbabilityRule, key: Key,
        losses: Array | RowScore | None,
    ) -> DeviceSample:  # fmt: skip
        """See the verb."""
        losses = self._row_scores(gradients, losses) if callable(losses) else losses
        return self._draw(gradients, kappa, rule, self._key.set(*key.words), losses)

    @recorded_verb()
    def score_rows(self, gradients: DeviceGradients, kappa: float, losses: Array | None, factor: Array | None) -> Array:
        """See the verb."""
        (k, n), nothing = gradients.g.shape, self._resident.nothing
        of_rows = None if losses is None else self._resident.array(losses, np.float64)
        scores = self._rounds.buffer(("kept row scores", n), lambda: self._runtime.zeros(n, np.float64))
        self._row_factors("row_factors")(
            self._blocks(n, 256), (256,),
            g=gradients.g, h=gradients.h, losses=nothing if of_rows is None else of_rows,
            made_of=_made_of(kappa, of_rows), kappa=0.0 if kappa == inf else kappa,
            factor=nothing if factor is None else self._resident.array(factor, np.float64),
            has_factor=factor is not None, n=n, k=k, out=scores,
        )  # fmt: skip
        return scores

    @recorded_verb()
    def _row_scores(self, gradients: DeviceGradients, score: RowScore) -> Array:
        """(n,) float64: scores by a user's function, by a kernel of numba.cuda."""
        k, n = gradients.g.shape
        scores = self._rounds.buffer(("row scores", n), lambda: self._runtime.empty(n, np.float64))
        launch = Launcher(self._runtime, *_row_scores_kernel(score))
        launch(
            self._blocks(n, 256), (256,),
            g=gradients.g.view(np.uint32), h=gradients.h.view(np.uint32), n=n, k=k, out=scores,
        )  # fmt: skip
        return scores

    @recorded_verb()
    def _draw(
        self, gradients: DeviceGradients, kappa: float, rule: ProbabilityRule, key: Input, losses: Array | None
    ) -> DeviceSample:
        n = gradients.g.shape[1]
        room = room_for(rule, n)
        made = self._rounds.buffer(("scored", room, n), lambda: self._room(room, n))
        self._score(gradients, kappa, rule, losses, made)
        rows = {"scores": made["scores"], "n": n, "threshold": made["threshold"]}
        if rule.search == "newton":
            for _ in range(threshold.STEPS):
                self._kernel("approach")(
                    self._blocks(n, APPROACH_ROWS), (256,), **rows, sums=made["sums"], arrived=made["arrived"]
                )
        elif rule.search == "bits":
            span = self._span(n)
            for level in range(1, 1 + len(threshold.LEVELS)):
                self._kernel("refine")(
                    self._blocks(n, span), (COUNT_THREADS,),
                    **rows, level=level, span=span, counts=made["counts"], arrived=made["arrived"],
                )  # fmt: skip
        drawn, grid = {name: made[name] for name in ("masks", "starts", "m")}, self._blocks(n, CHUNK)
        log = self._rounds.buffer(("draws",), lambda: draw_log(self._runtime, self._rounds))
        self._kernel("draw_scored")(
            grid, (DRAW_THREADS,),
            stream=key.words, **rows, room=room, **drawn, bad=made["bad"], seen=made["seen"], arrived=made["arrived"],
            lost=made["lost"], **log.arguments,
        )  # fmt: skip
        self._kernel("compact_scored")(
            grid, (DRAW_THREADS,), **rows, **drawn, rows=made["rows"], inverse=made["inverse"]
        )
        return DeviceSample(
            made["rows"], made["inverse"], room=room, m=made["m"], lost=made["lost"], masks=made["masks"],
            scores=made["scores"], threshold=made["threshold"], log=log,
        )  # fmt: skip

    # parts of the above

    def _score(
        self, gradients: DeviceGradients, kappa: float, rule: ProbabilityRule, losses: Array | None,
        made: dict[str, Array],
    ) -> None:  # fmt: skip
        """Queue the scores and the start of the threshold search."""
        (k, n), of_rows = gradients.g.shape, self._resident.nothing
        a, b = rule.settings
        made_of = _made_of(kappa, losses)
        if losses is not None:
            of_rows = self._resident.array(losses, np.float64)
        span = self._span(n)
        self._kernel("score_rows")(
            self._blocks(n, span), (COUNT_THREADS,),
            g=gradients.g, h=gradients.h, losses=of_rows, made_of=made_of, kappa=kappa,
            **self._resident.times(gradients.multiplicity), n=n, k=k, kind=rule.kind, a=a, b=b, span=span,
            scores=made["scores"], counts=made["counts"], bad=made["bad"], arrived=made["arrived"],
            threshold=made["threshold"],
        )  # fmt: skip

    def _room(self, room: int, n: int) -> dict[str, Array]:
        chunks, zeros = max(1, -(-n // CHUNK)), self._runtime.zeros
        return {
            "scores": zeros(max(4, -(-n // 4) * 4), np.uint32), "counts": zeros(2 * threshold.BUCKETS, np.uint64),
            "sums": zeros(3, np.uint64), "threshold": zeros(THRESHOLD_BYTES, np.uint8), "bad": zeros(1, np.uint32),
            "seen": zeros(SEEN_BYTES, np.uint8),
            "masks": zeros(chunks * DRAW_THREADS, np.uint16), "starts": zeros(chunks + 1, np.int32),
            "arrived": zeros(1, np.uint32), "m": zeros(1, np.int32), "lost": zeros(1, np.int32),
            "rows": zeros(room, np.int32), "inverse": zeros(room, np.float32),
        }  # fmt: skip

    def _span(self, n: int) -> int:
        """Number of rows per block until it adds its counts to the total: few enough to occupy every multiprocessor."""
        even = -(-n // (4 * self._runtime.sm_count))
        return max(LEAST_ROWS, min(COUNT_ROWS, -(-even // COUNT_THREADS) * COUNT_THREADS))

    def _blocks(self, n: int, rows: int) -> tuple[int]:
        return (max(1, min(-(-n // rows), 4 * self._runtime.sm_count)),)
