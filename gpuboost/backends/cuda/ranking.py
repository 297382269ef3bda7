"""List-wise losses on a device: the bits of ``reference.ranking``, by ``kernels/gradients/ranking.cu``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.backends.cuda.codegen.formulas import list_formulas
from gpuboost.backends.cuda.device.resident import Resident
from gpuboost.backends.cuda.device.round import Round
from gpuboost.backends.cuda.device.runtime import Kernel, Runtime, source
from gpuboost.backends.cuda.target import EXTENT_THREADS, STRETCH, DeviceGradients, Targets
from gpuboost.backends.reference.ranking import discounts_of, document_gains, gains_of
from gpuboost.kernels.gradients import ranking
from gpuboost.losses.protocol import ListLoss
from gpuboost.types import Array, TrainingSet

RUN, THREADS = 256, 256  # as in ranking.cu
_FILES = ("common/common.cuh", "common/tree.cuh", "common/fixed_point.cuh", "gradients/ranking.cu")


@dataclass(frozen=True, slots=True, eq=False)
class _QueryConstants:
    """Constants of q queries with n documents, l of which stand in places that count; the same in every round."""

    start: Array  # (q + 1,) int32
    list_of: Array  # (n,) int32
    leaders: Array  # (l,) int32 the places that count
    leader_start: Array  # (q + 1,) int32
    scales: Array  # (q,) float64 what pair weights are multiplied with
    discounts: Array  # (longest,) float32
    worth: Array  # (n,) float32 of each document
    most: int  # places that count in a list
    n_leaders: int


class RankingGradients:
    """The verb ``gradients`` for losses of lists. A place is counted from the first document of all."""

    def __init__(self, runtime: Runtime, resident: Resident, rounds: Round, targets: Targets) -> None:
        self._runtime, self._resident, self._rounds, self._targets = runtime, resident, rounds, targets
        self._kernels: dict[Any, Kernel] = {}

    def gradients(self, loss: ListLoss, scores: Array, data: TrainingSet, curvature: float | None) -> DeviceGradients:
        """See the verb.

        Raises:
            InputError: if the data have no queries.
        """
        n, lists = data.n_rows, self._rounds.buffer(("lists", id(data), loss), lambda: self._lists_of(loss, data))
        made, scratch = self._targets.room(1, n)
        a = self._rounds.buffer(("placed", n, lists.n_leaders), lambda: self._scratch(n, lists))
        of_row, sigma = (lists.start, lists.list_of), np.float64(loss.parameter)
        placed, n_rows, n_leaders = (a["score"], a["power"], a["worth"]), np.int32(n), np.int32(lists.n_leaders)
        even, closer, scores = np.int32(loss.evens_lists), np.int32(loss.prefers_close), scores.reshape(-1)
        sums = a["above_g"], a["above_h"], a["below"], a["factors"]

        run = self._kernel("sort_runs", loss)
        run(self._blocks(n), (RUN,), (scores, *of_row, n_rows, a["keys"], a["rows"]))
        given = a["keys"], a["rows"], scores, lists.worth, *of_row, sigma, n_rows
        self._kernel("place_documents", loss)(self._blocks(n), (THREADS,), (*given, a["place_of"], *placed))
        places = *placed, lists.discounts, lists.scales, *of_row, lists.leaders, lists.leader_start, n_rows, n_leaders
        how = np.int32(lists.most), sigma, closer, even
        grid = self._blocks(max(n, 16 * lists.n_leaders), 16)
        self._kernel("pair_lambdas", loss)(grid, (THREADS,), (*places, *how, *sums, a["arrived"]))
        found = *sums, lists.scales, *of_row, lists.leader_start, a["place_of"], n_leaders, even, sigma
        self._finish(loss, data, curvature, found, made, scratch)
        return DeviceGradients(made.g, made.h, self._targets.rows_of(data).times, states=made.states)

    def _finish(
        self, loss: ListLoss, data: TrainingSet, curvature: float | None, found: tuple[Any, ...], made: DeviceGradients,
        scratch: tuple[Array, ...],
    ) -> None:  # fmt: skip
        n, rows, weight, resident = data.n_rows, self._targets.rows_of(data), data.weight, self._resident
        weights = resident.nothing if weight is None else resident.array(weight, np.float64)
        times = resident.no_times if rows.times is None else rows.times
        arguments = (
            *found, weights, np.int32(weight is not None), times, np.int32(rows.times is not None),
            np.float64(-1.0 if curvature is None else curvature), np.int32(n), np.int64(rows.total),
            np.int32(rows.most), made.g.reshape(-1), made.h.reshape(-1), *scratch, made.states,
        )  # fmt: skip
        grid = (max(1, min(-(-n // STRETCH), 4 * self._runtime.sm_count)),)
        self._kernel("finish_lists", loss)(grid, (EXTENT_THREADS,), arguments)

    def _lists_of(self, loss: ListLoss, data: TrainingSet) -> _QueryConstants:
        start = np.ascontiguousarray(data.lists(), np.int64)
        lengths, gains, upload = np.diff(start), gains_of(loss), self._runtime.upload
        longest = int(lengths.max(initial=0))
        most = longest if loss.truncation is None else min(loss.truncation, longest)
        count = np.minimum(most, np.maximum(lengths - 1, 0))  # the last place has nothing below it
        leader_start = np.concatenate([[0], np.cumsum(count)])
        leaders = np.arange(leader_start[-1]) + np.repeat(start[:-1] - leader_start[:-1], count)
        discounts, scales = discounts_of(longest), np.ones(len(lengths))
        y = data.y if isinstance(data.y, np.ndarray) else self._runtime.download(self._resident.array(data.y, float))
        if loss.uses_ideal:
            ranking.scales(y, gains, start, discounts, most, scales)
        return _QueryConstants(
            start=upload(start.astype(np.int32)),
            list_of=upload(np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)),
            leaders=upload(_one_or_more(leaders.astype(np.int32))),
            leader_start=upload(leader_start.astype(np.int32)),
            scales=upload(scales),
            discounts=upload(discounts.astype(np.float32)),
            worth=upload(document_gains(gains, y)),
            most=most,
            n_leaders=len(leaders),
        )

    def _scratch(self, n: int, lists: _QueryConstants) -> dict[str, Array]:
        empty, zeros, q = self._runtime.empty, self._runtime.zeros, lists.scales.shape[0]
        placed = {name: empty(n, np.float32) for name in ("score", "power", "worth")}
        return placed | {
            "above_g": empty(n, np.float64), "above_h": empty(n, np.float64),
            "keys": empty(n, np.uint64), "rows": empty(n, np.int32), "place_of": empty(n, np.int32),
            "below": empty(3 * max(1, lists.n_leaders), np.float64), "factors": empty(q, np.float64),
            "arrived": zeros(q, np.uint32),
        }  # fmt: skip

    def _blocks(self, threads: int, for_each: int = 8) -> tuple[int]:
        return (max(1, min(-(-threads // THREADS), for_each * self._runtime.sm_count)),)

    def _kernel(self, name: str, loss: ListLoss) -> Kernel:
        formulas = list_formulas(loss)
        if (name, formulas) not in self._kernels:
            self._kernels[name, formulas] = self._runtime.kernel(source(*_FILES, before=formulas), name)
        return self._kernels[name, formulas]


def _one_or_more(x: Array) -> Array:
    """x, or one zero if it is empty: a kernel needs a valid address."""
    return x if len(x) else np.zeros(1, x.dtype)
