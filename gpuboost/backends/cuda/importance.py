"""Rows drawn by their scores, on a device: threshold and draw, of which the host is told nothing."""

from __future__ import annotations

from math import inf

import numpy as np

from gpuboost.backends.cuda.device.resident import Resident
from gpuboost.backends.cuda.device.round import Round
from gpuboost.backends.cuda.device.runtime import Kernel, Runtime, source
from gpuboost.backends.cuda.draws import draw_log
from gpuboost.backends.cuda.target import CHUNK, DRAW_THREADS, KEY, DeviceGradients, DeviceSample, rows_drawn_at_most
from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.types import Array

COUNT_THREADS, COUNT_ROWS, LEAST_ROWS, APPROACH_ROWS = 512, 1 << 14, 2048, 4 * 256  # as in the kernels
THRESHOLD_BYTES, SEEN_BYTES = 80, 16
GRADIENT, BOTH, CURVATURE, LOSSES = 0, 1, 2, 3  # what a score is made of
FILES = (
    "common/common.cuh",
    "common/blocks.cuh",
    "sampling/drawn.cuh",
    "common/philox.cuh",
    "sampling/threshold.cuh",
    "sampling/importance.cu",
)


def room_for(rule: ProbabilityRule, n: int) -> int:
    """Entries of a list of drawn rows.

    A sum of independent draws of mean r n varies no more than one of n draws of probability r.
    """
    return rows_drawn_at_most(rule.largest_rate, n)


class Importance:
    """The verb ``draw``."""

    def __init__(self, runtime: Runtime, resident: Resident, rounds: Round) -> None:
        self._runtime, self._resident, self._rounds = runtime, resident, rounds
        self._kernels: dict[str, Kernel] = {}

    def draw(
        self, gradients: DeviceGradients, kappa: float, rule: ProbabilityRule, losses: Array | None
    ) -> DeviceSample:
        """See the verb. The key is read from the round's inputs, which are set before."""
        n = gradients.g.shape[1]
        room = room_for(rule, n)
        made = self._rounds.buffer(("scored", room, n), lambda: self._room(room, n))
        self._score(gradients, kappa, rule, losses, made)
        scores, state, size = made["scores"], made["threshold"], np.int32(n)
        if rule.search == "newton":
            for _ in range(threshold.STEPS):
                arguments = scores, size, made["sums"], made["arrived"], state
                self._kernel("approach")(self._blocks(n, APPROACH_ROWS), (256,), arguments)
        elif rule.search == "bits":
            span = self._span(n)
            for level in range(1, 1 + len(threshold.LEVELS)):
                counted = scores, size, np.int32(level), np.int32(span), made["counts"], made["arrived"], state
                self._kernel("refine")(self._blocks(n, span), (COUNT_THREADS,), counted)
        drawn = made["masks"], made["starts"]
        inputs, grid = self._rounds.inputs[KEY : KEY + 4], self._blocks(n, CHUNK)
        log = self._rounds.buffer(("draws",), lambda: draw_log(self._runtime, self._rounds))
        ends = made["bad"], made["seen"], made["arrived"], made["m"], made["lost"], *log.arguments
        self._kernel("draw_scored")(grid, (DRAW_THREADS,), (inputs, state, scores, size, np.int32(room), *drawn, *ends))
        lists = made["m"], size, made["rows"], made["inverse"]
        self._kernel("compact_scored")(grid, (DRAW_THREADS,), (state, scores, *drawn, *lists))
        return DeviceSample(
            made["rows"], made["inverse"], room=room, m=made["m"], lost=made["lost"], masks=made["masks"],
            scores=scores, threshold=state, log=log,
        )  # fmt: skip

    # parts of the above

    def _score(
        self, gradients: DeviceGradients, kappa: float, rule: ProbabilityRule, losses: Array | None,
        made: dict[str, Array],
    ) -> None:  # fmt: skip
        """Queue the scores and the beginning of the search."""
        (k, n), times, nothing = gradients.g.shape, gradients.multiplicity, self._resident.nothing
        a, b = rule.settings
        made_of = CURVATURE if kappa == inf else BOTH if kappa > 0.0 else GRADIENT
        if losses is not None:
            made_of, nothing = LOSSES, self._resident.array(losses, np.float64)
        span = self._span(n)
        arguments = (
            gradients.g.reshape(-1), gradients.h.reshape(-1), nothing, np.int32(made_of), np.float64(kappa),
            self._resident.no_times if times is None else times, np.int32(times is not None), np.int32(n), np.int32(k),
            np.int32(rule.kind), np.float64(a), np.float64(b), np.int32(span), made["scores"], made["counts"],
            made["bad"], made["arrived"], made["threshold"],
        )  # fmt: skip
        self._kernel("score_rows")(self._blocks(n, span), (COUNT_THREADS,), arguments)

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

    def _kernel(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = self._runtime.kernel(source(*FILES), name)
        return self._kernels[name]
