"""Importance sampling on a device: threshold and draw, without transfers to the host."""

from __future__ import annotations

from math import inf

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.inputs import Input
from gpuboost.backends.cuda.device.kernels import Kernels, Launcher
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
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
from gpuboost.backends.cuda.user_kernels import draws_kernel, factors_kernel, scores_kernel
from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.probabilities import FIXED_THRESHOLD, ProbabilityRule
from gpuboost.keys import Key
from gpuboost.types import Array, RowScore

COUNT_THREADS, COUNT_ROWS, LEAST_ROWS, APPROACH_ROWS = 512, 1 << 14, 2048, 4 * 256  # as in the kernels
THRESHOLD_BYTES, SEEN_BYTES = 80, 16
THRESHOLD = np.dtype(
    {
        "names": ["rho", "floor", "kind", "done"], "formats": ["f8", "f8", "i4", "i4"], "offsets": [0, 8, 68, 72],
        "itemsize": THRESHOLD_BYTES,
    }
)  # fmt: skip
"""Fields of ``Threshold`` in threshold.cuh that the host writes"""
GRADIENT, BOTH, CURVATURE, LOSSES = 0, 1, 2, 3  # inputs of a score
FILES = (
    "common/common.cuh",
    "common/blocks.cuh",
    "sampling/drawn.cuh",
    "common/philox.cuh",
    "sampling/threshold.cuh",
    "sampling/importance.cu",
)


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

    def __init__(self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound) -> None:
        self._runtime, self._arrays, self._rounds = runtime, arrays, rounds
        self._kernel, self._key = Kernels(runtime, *FILES), Input(rounds, KEY_WORDS)

    def draw(
        self, gradients: DeviceGradients, kappa: float, rule: ProbabilityRule, key: Key,
        losses: Array | RowScore | None,
    ) -> DeviceSample:  # fmt: skip
        """See the verb."""
        if callable(losses) and rule.kind == FIXED_THRESHOLD:
            return self._draw_by(gradients, losses, rule, self._key.set_key(key))
        losses = self._row_scores(gradients, losses) if callable(losses) else losses
        return self._draw(gradients, kappa, rule, self._key.set_key(key), losses)

    @recorded_verb()
    def score_rows(self, gradients: DeviceGradients, kappa: float, losses: Array | None, factor: Array | None) -> Array:
        """See the verb."""
        (k, n), nothing = gradients.g.shape, self._arrays.nothing
        of_rows = None if losses is None else self._arrays.array(losses, np.float64)
        scores = self._rounds.buffer(("kept row scores", n), lambda: self._runtime.zeros(n, np.float64))
        Launcher(self._runtime, *factors_kernel())(
            self._blocks(n, 256), (256,),
            g=gradients.g.view(np.uint32), h=gradients.h.view(np.uint32),
            losses=nothing if of_rows is None else of_rows, made_of=_made_of(kappa, of_rows),
            kappa=0.0 if kappa == inf else kappa,
            factor=nothing if factor is None else self._arrays.array(factor, np.float64),
            has_factor=factor is not None, n=n, k=k, out=scores,
        )  # fmt: skip
        return scores

    @recorded_verb()
    def _row_scores(self, gradients: DeviceGradients, score: RowScore) -> Array:
        """(n,) float64: scores by a user's function, by a kernel of numba.cuda."""
        k, n = gradients.g.shape
        scores = self._rounds.buffer(("row scores", n), lambda: self._runtime.empty(n, np.float64))
        launch = Launcher(self._runtime, *scores_kernel(score))
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
        return self._listed(made, n, room, key)

    @recorded_verb()
    def _draw_by(self, gradients: DeviceGradients, score: RowScore, rule: ProbabilityRule, key: Input) -> DeviceSample:
        """Scores by a user's function, probabilities and draws by one kernel of numba.cuda."""
        (k, n), (rho, floor) = gradients.g.shape, rule.settings
        room = room_for(rule, n)
        made = dict(self._rounds.buffer(("scored", room, n), lambda: self._room(room, n)))
        made["threshold"] = self._rounds.buffer(("given", rho, floor), lambda: self._given(rule.kind, rho, floor))
        entries = max(1, -(-n // CHUNK)) * DRAW_THREADS
        Launcher(self._runtime, *draws_kernel(score))(
            self._blocks(entries, 256), (256,),
            g=gradients.g.view(np.uint32), h=gradients.h.view(np.uint32),
            **self._arrays.times(gradients.multiplicity), rows=n, k=k, n=entries, rho=rho, floor=floor,
            stream=key.words, scores=made["scores"], masks=made["masks"], bad=made["bad"],
        )  # fmt: skip
        return self._listed(made, n, room)

    # parts of the above

    def _listed(self, made: dict[str, Array], n: int, room: int, key: Input | None = None) -> DeviceSample:
        """Queue the draw, unless its masks are there (no key), and the list of its rows."""
        rows = {"scores": made["scores"], "n": n, "threshold": made["threshold"]}
        drawn, grid = {name: made[name] for name in ("masks", "starts", "m")}, self._blocks(n, CHUNK)
        log = self._rounds.buffer(("draws",), lambda: draw_log(self._runtime, self._rounds))
        counted = {**rows, "room": room, **drawn, **{name: made[name] for name in ("bad", "seen", "arrived", "lost")}}
        if key is None:
            self._kernel("count_draws")(grid, (DRAW_THREADS,), **counted, **log.arguments)
        else:
            self._kernel("draw_scored")(grid, (DRAW_THREADS,), stream=key.words, **counted, **log.arguments)
        self._kernel("compact_scored")(
            grid, (DRAW_THREADS,), **rows, **drawn, rows=made["rows"], inverses=made["inverse"]
        )
        return DeviceSample(
            made["rows"], made["inverse"], room=room, m=made["m"], lost=made["lost"], masks=made["masks"],
            scores=made["scores"], threshold=made["threshold"], log=log,
        )  # fmt: skip

    def _given(self, kind: int, rho: float, floor: float) -> Array:
        """The record ``Threshold`` of threshold.cuh where nothing is searched."""
        record = np.zeros(1, THRESHOLD)
        record["rho"], record["floor"], record["kind"], record["done"] = rho, floor, kind, 1
        return self._runtime.upload(record.view(np.uint8))

    def _score(
        self, gradients: DeviceGradients, kappa: float, rule: ProbabilityRule, losses: Array | None,
        made: dict[str, Array],
    ) -> None:  # fmt: skip
        """Queue the scores and the start of the threshold search."""
        (k, n), of_rows = gradients.g.shape, self._arrays.nothing
        a, b = rule.settings
        made_of = _made_of(kappa, losses)
        if losses is not None:
            of_rows = self._arrays.array(losses, np.float64)
        span = self._span(n)
        self._kernel("score_rows")(
            self._blocks(n, span), (COUNT_THREADS,),
            g=gradients.g, h=gradients.h, losses=of_rows, made_of=made_of, kappa=kappa,
            **self._arrays.times(gradients.multiplicity), n=n, k=k, kind=rule.kind, a=a, b=b, span=span,
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
        return (block_count(self._runtime, n, rows, 4),)
