"""Rows drawn by their scores, on a device: threshold and draw, of which the host is told nothing."""

from __future__ import annotations

from math import inf

import numpy as np

from gpuboost.backends.cuda.device.inputs import Input
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.resident import Resident
from gpuboost.backends.cuda.device.round import Round, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.draws import draw_log
from gpuboost.backends.cuda.target import (
    CHUNK,
    DRAW_THREADS,
    KEY_WORDS,
    DeviceGradients,
    DeviceSample,
    rows_drawn_at_most,
)
from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.probabilities import Heaviest, Odds, Proportional, TopAndOthers
from gpuboost.keys import Key
from gpuboost.types import Array

COUNT_THREADS, COUNT_ROWS, LEAST_ROWS, APPROACH_ROWS = 512, 1 << 14, 2048, 4 * 256  # as in the kernels
THRESHOLD_BYTES, SEEN_BYTES = 80, 16
GRADIENT, BOTH, CURVATURE, LOSSES = 0, 1, 2, 3  # what a score is made of
FIXED, SOLVED, RANKED, HEAVIEST = 0, 1, 2, 3
FLOOR_SLACK = 1.0 / 64.0  # of a rate that is solved for with a floor, whose last step may be a little too long
FILES = (
    "common/common.cuh",
    "common/blocks.cuh",
    "sampling/drawn.cuh",
    "common/philox.cuh",
    "sampling/threshold.cuh",
    "sampling/importance.cu",
)


def settings(odds: Odds) -> tuple[int, float, float]:
    """The kind of odds, and two numbers that say what they are, as ``score_rows`` takes them."""
    match odds:
        case Proportional(rate=None):
            return FIXED, 0.0 if odds.rho is None else odds.rho, odds.floor
        case Proportional():
            return SOLVED, float(odds.rate or 0.0), odds.floor
        case TopAndOthers():
            return RANKED, odds.top, threshold.others(odds.top, odds.other)
        case Heaviest():
            return HEAVIEST, odds.mass, 0.0


def room_for(odds: Odds, n: int) -> int:
    """Entries of a list of drawn rows. Sums of p are known, but for a rho that is given, and for ties of the heaviest.

    A sum of independent draws of mean r n varies no more than one of n draws of probability r.
    """
    match odds:
        case Proportional(rate=float(rate)):
            return rows_drawn_at_most(min(1.0, rate * (1.0 + FLOOR_SLACK * (odds.floor > 0.0))), n)
        case TopAndOthers():
            return rows_drawn_at_most(min(1.0, odds.top + odds.other), n)
    return rows_drawn_at_most(1.0, n)


class Importance:
    """The verb ``draw``."""

    def __init__(self, runtime: Runtime, resident: Resident, rounds: Round) -> None:
        self._runtime, self._resident, self._rounds = runtime, resident, rounds
        self._kernel, self._key = Kernels(runtime, *FILES), Input(rounds, KEY_WORDS)

    def draw(
        self, gradients: DeviceGradients, kappa: float, odds: Odds, key: Key, losses: Array | None
    ) -> DeviceSample:
        """See the verb."""
        return self._draw(gradients, kappa, odds, self._key.set(*key.words), losses)

    @recorded_verb()
    def _draw(
        self, gradients: DeviceGradients, kappa: float, odds: Odds, key: Input, losses: Array | None
    ) -> DeviceSample:
        n = gradients.g.shape[1]
        room = room_for(odds, n)
        made = self._rounds.buffer(("scored", room, n), lambda: self._room(room, n))
        kind = self._score(gradients, kappa, odds, losses, made)
        rows = {"scores": made["scores"], "n": n, "threshold": made["threshold"]}
        if kind == SOLVED:
            for _ in range(threshold.STEPS):
                self._kernel("approach")(
                    self._blocks(n, APPROACH_ROWS), (256,), **rows, sums=made["sums"], arrived=made["arrived"]
                )
        elif kind != FIXED:
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
        self, gradients: DeviceGradients, kappa: float, odds: Odds, losses: Array | None, made: dict[str, Array]
    ) -> int:
        """Queue the scores and the beginning of the search. Returns the kind of odds."""
        (k, n), of_rows = gradients.g.shape, self._resident.nothing
        kind, a, b = settings(odds)
        made_of = CURVATURE if kappa == inf else BOTH if kappa > 0.0 else GRADIENT
        if losses is not None:
            made_of, of_rows = LOSSES, self._resident.array(losses, np.float64)
        span = self._span(n)
        self._kernel("score_rows")(
            self._blocks(n, span), (COUNT_THREADS,),
            g=gradients.g, h=gradients.h, losses=of_rows, made_of=made_of, kappa=kappa,
            **self._resident.times(gradients.multiplicity), n=n, k=k, kind=kind, a=a, b=b, span=span,
            scores=made["scores"], counts=made["counts"], bad=made["bad"], arrived=made["arrived"],
            threshold=made["threshold"],
        )  # fmt: skip
        return kind

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
        """Rows of a block before it hands on its counts: few enough for every multiprocessor to have some."""
        even = -(-n // (4 * self._runtime.sm_count))
        return max(LEAST_ROWS, min(COUNT_ROWS, -(-even // COUNT_THREADS) * COUNT_THREADS))

    def _blocks(self, n: int, rows: int) -> tuple[int]:
        return (max(1, min(-(-n // rows), 4 * self._runtime.sm_count)),)
