"""Smoothed ranking metrics on a device, with the bits of ``reference.smoothed_ranking``.

``kernels/gradients/smoothed_ranking.cu`` draws and sums; sorting and the float32 results are those of ``ranking.cu``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.codegen.formulas import density_formulas, list_formulas
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.inputs import KeyInput, RoundKey
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.rankings.ranking import FILES as RANKING_FILES
from gpuboost.backends.cuda.rankings.ranking import RUN, THREADS
from gpuboost.backends.cuda.rankings.sums_of_rows import SumsOfRows
from gpuboost.backends.cuda.target import DeviceGradients, Targets
from gpuboost.backends.reference.ranking import discounts_of, document_gains, gains_of
from gpuboost.backends.reference.smoothed_ranking import NU, drops_of, shifts_of
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.kernels.gradients import ranking
from gpuboost.keys import Key
from gpuboost.losses.protocol import SmoothedLoss
from gpuboost.types import Array, TrainingSet

FILES = ("common/common.cuh", "common/philox.cuh", "common/normal.cuh", "gradients/smoothed_ranking.cu")


@dataclass(frozen=True, slots=True, eq=False)
class _SmoothedLists:
    """The part that is the same in every round: q lists of n documents."""

    start: Array  # (q + 1,) int32
    list_of: Array  # (n,) int32
    scales: Array  # (q,) float64 1 / ideal DCG
    drops: Array  # (longest + 1,) float64
    gain: Array  # (n,) float32
    shift: Array  # (n,) float64
    truncation: int
    count: int  # q


class SmoothedRankingGradients:
    """The verb ``drawn_gradients`` for smoothed metrics."""

    def __init__(self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, targets: Targets) -> None:
        self._runtime, self._arrays, self._rounds = runtime, arrays, rounds
        self._lists_kernel, self._kernel = Kernels(runtime, *RANKING_FILES), Kernels(runtime, *FILES)
        self._key, self._finish = KeyInput(rounds), SumsOfRows(runtime, arrays, rounds, targets)

    def gradients(
        self, loss: SmoothedLoss, scores: Array, data: TrainingSet, curvature: float, key: Key
    ) -> DeviceGradients:
        """See the verb.

        Raises:
            InputError: if the data have no queries.
        """
        return self._estimated(loss, scores, data, curvature, self._key.set(key))

    @recorded_verb()
    def _estimated(
        self, loss: SmoothedLoss, scores: Array, data: TrainingSet, curvature: float, key: RoundKey
    ) -> DeviceGradients:
        n = data.n_rows
        lists = self._rounds.buffer(("smoothed lists", id(data), loss), lambda: self._lists_of(loss, data))
        a = self._rounds.buffer(("smoothed", n), lambda: self._scratch(n))
        for draw in range(loss.samples):
            self._add_draw(loss, scores, lists, a, key / draw, n, first=draw == 0)
        if loss.scale_free:
            blocks = (block_count(self._runtime, lists.count, THREADS),)
            self._kernel("project_lists", *density_formulas())(
                blocks, (THREADS,), scores=scores, start=lists.start, lists=lists.count, nu=NU, sums=a["sums"]
            )
        return self._finish(loss, a["sums"], a["sums"], data, curvature, lists.scales)

    # parts of the above

    def _add_draw(
        self, loss: SmoothedLoss, scores: Array, lists: _SmoothedLists, a: dict[str, Array], key: RoundKey, n: int, *,
        first: bool,
    ) -> None:  # fmt: skip
        pairs, density = list_formulas(loss), density_formulas()
        grid, of_row = (self._blocks(n), (THREADS,)), {"start": lists.start, "list_of": lists.list_of}
        clean = {"scores": scores, "shift": lists.shift}
        table = self._arrays.array(TABLE, np.float64)
        self._kernel("noisy_scores", *density)(
            *grid, **clean, sigma=loss.sigma, **key.arguments, table=table, n=n, noisy=a["noisy"]
        )
        self._lists_kernel("sort_runs", *pairs)(
            self._blocks(n), (RUN,), scores=a["noisy"], **of_row, n=n, keys=a["keys"], rows=a["rows"]
        )
        self._lists_kernel("place_documents", *pairs)(
            *grid, keys=a["keys"], rows=a["rows"], scores=a["noisy"], gain=lists.gain, **of_row, sigma=loss.sigma,
            n=n, place_of=a["place_of"], placed_score=a["score"], placed_power=a["power"], placed_gain=a["gain"],
        )  # fmt: skip
        self._kernel("put_in_places", *density)(
            *grid, noisy=a["noisy"], place_of=a["place_of"], n=n, placed=a["placed"]
        )
        self._kernel("add_draw", *density)(
            *grid, **clean, gain=lists.gain, placed=a["placed"], placed_gain=a["gain"], place_of=a["place_of"],
            **of_row, drops=lists.drops, truncation=lists.truncation, inverse=1.0 / loss.sigma, first=first, n=n,
            sums=a["sums"],
        )  # fmt: skip

    def _lists_of(self, loss: SmoothedLoss, data: TrainingSet) -> _SmoothedLists:
        start = np.ascontiguousarray(data.lists(), np.int64)
        lengths, gains, upload = np.diff(start), gains_of(loss), self._runtime.upload
        longest = int(lengths.max(initial=0))
        truncation = longest if loss.truncation is None else min(loss.truncation, longest)
        y = data.y if isinstance(data.y, np.ndarray) else self._runtime.download(self._arrays.array(data.y, float))
        scales = np.ones(len(lengths))
        ranking.scales(y, gains, start, discounts_of(longest), truncation, scales)
        return _SmoothedLists(
            start=upload(start.astype(np.int32)),
            list_of=upload(np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)),
            scales=upload(scales),
            drops=upload(drops_of(loss, longest)),
            gain=upload(document_gains(gains, y)),
            shift=upload(shifts_of(loss, y)),
            truncation=truncation,
            count=len(lengths),
        )

    def _scratch(self, n: int) -> dict[str, Array]:
        empty = self._runtime.empty
        return {name: empty(n, np.float32) for name in ("score", "power", "gain")} | {
            "noisy": empty(n, np.float64), "placed": empty(n, np.float64), "sums": empty(n, np.float64),
            "keys": empty(n, np.uint64), "rows": empty(n, np.int32), "place_of": empty(n, np.int32),
        }  # fmt: skip

    def _blocks(self, threads: int) -> tuple[int]:
        return (block_count(self._runtime, threads, THREADS),)
