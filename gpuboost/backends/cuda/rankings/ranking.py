"""Ranking losses on a device, with the bits of ``reference.ranking``, by ``kernels/gradients/ranking.cu``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.codegen.formulas import list_formulas
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.target import EXTENT_THREADS, STRETCH, DeviceGradients, Targets
from gpuboost.backends.reference.ranking import discounts_of, document_gains, gains_of
from gpuboost.kernels.gradients import ranking
from gpuboost.losses.protocol import ListLoss
from gpuboost.types import Array, TrainingSet

RUN, THREADS = 256, 256  # as in ordering.cuh and ranking.cu
_MEASURED = ("common/common.cuh", "common/tree.cuh", "common/fixed_point.cuh")
FILES = (*_MEASURED, "gradients/ordering.cuh", "gradients/ranking.cu")


@dataclass(frozen=True, slots=True, eq=False)
class _QueryConstants:
    """The part that is the same in every round: q queries of n documents, l of which are within the truncation."""

    start: Array  # (q + 1,) int32
    list_of: Array  # (n,) int32
    leaders: Array  # (l,) int32 the places that count
    leader_start: Array  # (q + 1,) int32
    scales: Array  # (q,) float64 factors of pair weights
    discounts: Array  # (longest,) float32
    gain: Array  # (n,) float32 of each document
    most: int  # places that count in a list
    n_leaders: int


class RankingGradients:
    """The verb ``gradients`` for ranking losses. Places are numbered over the documents of all queries."""

    def __init__(self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, targets: Targets) -> None:
        self._runtime, self._arrays, self._rounds, self._targets = runtime, arrays, rounds, targets
        self._kernel = Kernels(runtime, *FILES)

    @recorded_verb()
    def gradients(self, loss: ListLoss, scores: Array, data: TrainingSet, curvature: float | None) -> DeviceGradients:
        """See the verb.

        Raises:
            InputError: if the data have no queries.
        """
        n, lists = data.n_rows, self._rounds.buffer(("lists", id(data), loss), lambda: self._lists_of(loss, data))
        made, scratch = self._targets.room(1, n)
        a = self._rounds.buffer(("placed", n, lists.n_leaders), lambda: self._scratch(n, lists))
        formulas, of_row = list_formulas(loss), {"start": lists.start, "list_of": lists.list_of}
        placed = {f"placed_{name}": a[name] for name in ("score", "power", "gain")}
        leaders = {"leader_start": lists.leader_start, "n_leaders": lists.n_leaders, "scales": lists.scales}
        sums = {name: a[name] for name in ("above_g", "above_h", "below", "factors")}
        how: dict[str, Any] = {"sigma": loss.parameter, "even": loss.evens_lists}

        self._kernel("sort_runs", *formulas)(
            self._blocks(n), (RUN,), scores=scores, **of_row, n=n, keys=a["keys"], rows=a["rows"]
        )
        self._kernel("place_documents", *formulas)(
            self._blocks(n), (THREADS,),
            keys=a["keys"], rows=a["rows"], scores=scores, gain=lists.gain, **of_row, sigma=loss.parameter, n=n,
            place_of=a["place_of"], **placed,
        )  # fmt: skip
        marks = {"upper": lists.discounts, "lower": lists.discounts}
        if loss.weighs_precision:
            names, q = ("upper", "lower"), lists.scales.shape[0]
            marks = {name: self._rounds.buffer((name, n), lambda: self._runtime.empty(n, np.float32)) for name in names}
            self._kernel("mark_places", *formulas)(
                self._blocks(32 * q), (THREADS,), placed_gain=a["gain"], start=lists.start, lists=q, **marks
            )
        self._kernel("pair_lambdas", *formulas)(
            self._blocks(max(n, 16 * lists.n_leaders), 16), (THREADS,),
            **placed, **marks, of_lists=loss.weighs_precision, **of_row, leaders=lists.leaders, **leaders, n=n,
            most=lists.most, **how, closer=loss.prefers_close, **sums, arrived=a["arrived"],
        )  # fmt: skip
        rows = self._targets.rows_of(data)
        self._kernel("finish_lists", *formulas)(
            (block_count(self._runtime, n, STRETCH, 4),), (EXTENT_THREADS,),
            **sums, **of_row, **leaders, place_of=a["place_of"], **how, **self._arrays.weight(data.weight),
            **self._arrays.times(rows.times), curvature=-1.0 if curvature is None else curvature, n=n, **rows.sizes,
            g=made.g, h=made.h, **scratch, state=made.states,
        )  # fmt: skip
        return DeviceGradients(made.g, made.h, rows.times, states=made.states)

    # parts of the above

    def _lists_of(self, loss: ListLoss, data: TrainingSet) -> _QueryConstants:
        start = np.ascontiguousarray(data.lists(), np.int64)
        lengths, gains, upload = np.diff(start), gains_of(loss), self._runtime.upload
        longest = int(lengths.max(initial=0))
        truncation = longest if loss.truncation is None else min(loss.truncation, longest)
        count = np.minimum(truncation, np.maximum(lengths - 1, 0))  # the last place has nothing below it
        leader_start = np.concatenate([[0], np.cumsum(count)])
        leaders = np.arange(leader_start[-1]) + np.repeat(start[:-1] - leader_start[:-1], count)
        discounts, scales = discounts_of(longest), np.ones(len(lengths))
        y = data.y if isinstance(data.y, np.ndarray) else self._runtime.download(self._arrays.array(data.y, float))
        if loss.uses_ideal:
            worth = (np.ones(longest), longest) if loss.weighs_precision else (discounts, truncation)
            ranking.scales(y, gains, start, *worth, scales)
        return _QueryConstants(
            start=upload(start.astype(np.int32)),
            list_of=upload(np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)),
            leaders=upload(_one_or_more(leaders.astype(np.int32))),
            leader_start=upload(leader_start.astype(np.int32)),
            scales=upload(scales),
            discounts=upload(discounts.astype(np.float32)),
            gain=upload(document_gains(gains, y)),
            most=truncation,
            n_leaders=len(leaders),
        )

    def _scratch(self, n: int, lists: _QueryConstants) -> dict[str, Array]:
        empty, zeros, q = self._runtime.empty, self._runtime.zeros, lists.scales.shape[0]
        placed = {name: empty(n, np.float32) for name in ("score", "power", "gain")}
        return placed | {
            "above_g": empty(n, np.float64), "above_h": empty(n, np.float64),
            "keys": empty(n, np.uint64), "rows": empty(n, np.int32), "place_of": empty(n, np.int32),
            "below": empty(3 * max(1, lists.n_leaders), np.float64), "factors": empty(q, np.float64),
            "arrived": zeros(q, np.uint32),
        }  # fmt: skip

    def _blocks(self, threads: int, for_each: int = 8) -> tuple[int]:
        return (block_count(self._runtime, threads, THREADS, for_each),)


def _one_or_more(x: Array) -> Array:
    """x, or one zero if it is empty: a kernel needs a valid address."""
    return x if len(x) else np.zeros(1, x.dtype)
