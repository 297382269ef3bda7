"""Metrics of scores on the device, with the bits of ``gpuboost.metrics``. Sums, or a number of each list, leave it.

The launches of a metric are the same in every round. ``recorded`` makes them a part of the round and of its graph. By
``begun`` they are done one by one at the first call, and become a graph of their own at the second one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.codegen.formulas import probability_formulas, term_formulas
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.launches import Launch
from gpuboost.backends.cuda.device.radix_sort import RADIX, blocks_of_digits, chunks_of
from gpuboost.backends.cuda.device.recorder import Recorder
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.prediction.answers import LINKS
from gpuboost.backends.cuda.recorded_values import RecordedValues
from gpuboost.losses.averages import pieces_scale
from gpuboost.scoring import curves
from gpuboost.scoring.device_metrics import (
    AreasOfClasses,
    ClassScore,
    CurveArea,
    HitShare,
    ListMean,
    ScoreMetric,
    TermMean,
)
from gpuboost.types import Array

THREADS, KEY_BITS, PIECES = 256, 64, 3  # as in the kernels
CURVES = {"roc": 0, "precision_recall": 1}  # as in curves.cu
TERMS = {
    "squared": 0, "absolute": 1, "relative": 2, "symmetric": 3, "logarithmic": 4, "poisson": 5, "gamma": 6,
    "tweedie": 7, "quantile": 8, "expectile": 9, "huber": 10, "coverage": 11, "width": 12,
}  # fmt: skip
RULES = {"ndcg": 0, "map": 1, "mrr": 2, "precision": 3, "recall": 3}  # as in lists.cu
_HITS = ("common/common.cuh", "metrics/pieces.cuh", "metrics/hits.cu")
_SORT = ("common/common.cuh", "common/blocks.cuh", "common/ordered_float.cuh", "common/radix.cuh")
_CURVES = (*_SORT, "metrics/pieces.cuh", "metrics/curves.cu")
OF_TERMS = ("common/common.cuh", "common/links.cuh", "metrics/pieces.cuh", "metrics/terms.cu")
OF_CLASSES = ("common/common.cuh", "common/links.cuh", "common/ordered_float.cuh", "metrics/one_vs_rest.cu")
_LISTS = ("common/common.cuh", "gradients/ordering.cuh", "metrics/lists.cu")


@dataclass(slots=True)
class _Launched:
    """The launches that compute one metric of one array of scores."""

    scores: Array
    result: Array  # the argument of the metric's ``value``
    launches: list[Launch]
    graph: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class _SortRoom:
    """Memory for n scores in order, which the areas of one number of rows use one after the other: 40 bytes a row."""

    pairs: tuple[tuple[Array, Array], ...]  # twice (n,) uint64 keys and (n,) uint32 marks
    counts: Array
    bases: Array
    of_chunks: dict[str, Array]  # (chunks + 1,) uint64 each
    steps: dict[str, Array]  # (n,) uint64 each
    arrived: Array  # (1,) uint32, 0 between launches


class ScoreMetrics:
    """The verb ``score_metric``. The memory of a metric is kept as long as its record."""

    def __init__(self, runtime: Recorder, arrays: ArrayCache, rounds: RecordedRound) -> None:
        self._runtime, self._arrays, self._rounds = runtime, arrays, rounds
        self._hits, self._curves, self._lists = (Kernels(runtime, *files) for files in (_HITS, _CURVES, _LISTS))
        self._of_classes, self._terms = (Kernels(runtime, *files) for files in (OF_CLASSES, OF_TERMS))
        self._launched: dict[int, _Launched] = {}
        self._rooms: dict[int, _SortRoom] = {}  # by the number of rows

    def begun(self, metric: ScoreMetric, scores: Array) -> Callable[[], float]:
        """See the verb."""
        known = self._launched.get(id(metric))
        if known is None or known.scores is not scores:
            if known is None:
                weakref.finalize(metric, self._launched.pop, id(metric), None)
            work = self._work(metric, scores)
            result, launches, _ = self._runtime.record(work)
            known = self._launched[id(metric)] = _Launched(scores, result, launches)
        else:
            if known.graph is None:
                known.graph = self._runtime.captured([[known.launches]])
            known.graph()
        kept = self._runtime.empty(known.result.shape, known.result.dtype)  # the next call writes to the result
        self._runtime.copy(kept, known.result)
        return lambda: metric.value(self._runtime.download(kept))

    @recorded_verb()
    def recorded(self, metric: ScoreMetric, scores: Array) -> RecordedValues:
        """The metric after each round; this one's is computed."""

        def make() -> RecordedValues:
            return RecordedValues(self._runtime, self._work(metric, scores), metric.value)

        values = self._rounds.buffer(("values", id(metric), id(scores)), make)
        values.compute()
        return values

    def _work(self, metric: ScoreMetric, scores: Array) -> Callable[[], Array]:
        """The function that launches the kernels of a metric, and returns the array of their result."""
        by_kind: dict[type, Callable[[Any, Array], Callable[[], Array]]] = {
            HitShare: self._hit_share,
            ClassScore: self._class_score,
            CurveArea: self._curve_area,
            AreasOfClasses: self._areas_of_classes,
            TermMean: self._term_mean,
            ListMean: self._list_mean,
        }
        return by_kind[type(metric)](metric, scores)

    def _hit_share(self, metric: HitShare, scores: Array) -> Callable[[], Array]:
        k, n = scores.shape
        sums = self._runtime.zeros(PIECES, np.int64)
        rows = {"y": self._arrays.array(metric.y, np.float64), **self._arrays.weight(metric.weight)}

        def work() -> Array:
            self._runtime.fill(sums, 0)
            self._hits("sum_hits")(
                self._blocks(n), (THREADS,),
                **rows, scores=scores, n=n, k=k, places=metric.places, later_leads=metric.later_leads,
                scale=pieces_scale(metric.largest), sums=sums,
            )  # fmt: skip
            return sums

        return work

    def _class_score(self, metric: ClassScore, scores: Array) -> Callable[[], Array]:
        k, n = scores.shape
        y, cells = self._arrays.array(metric.y, np.float64), self._runtime.empty(n, np.int32)
        weight, sums = self._arrays.weight(metric.weight), self._runtime.zeros(metric.shape, np.int64)
        classes = len(metric.true)
        of_class = max(1, min(*self._blocks(n), 8 * self._runtime.sm_count // classes))

        def work() -> Array:
            self._runtime.fill(sums, 0)
            grid, block = self._blocks(n), (THREADS,)
            self._hits("predict_classes")(grid, block, y=y, scores=scores, n=n, k=k, cells=cells)
            self._hits("sum_cells")(
                (of_class, classes), block,
                cells=cells, **weight, n=n, scale=pieces_scale(metric.largest), sums=sums,
            )  # fmt: skip
            return sums

        return work

    def _curve_area(self, metric: CurveArea, scores: Array) -> Callable[[], Array]:
        n, room = scores.shape[1], self._room(scores.shape[1])
        ones, sums = self._arrays.array(metric.ones, np.uint8), self._runtime.zeros(PIECES, np.int64)
        units, bound = self._units(metric.units), curves.bound(metric.curve, metric.positive, metric.negative)

        def work() -> Array:
            self._runtime.fill(sums, 0)
            keys, marks = room.pairs[0]
            made = {"n": n, "keys": keys, "marks": marks}
            self._curves("make_keys")(self._blocks(n), (THREADS,), scores=scores[0], ones=ones, **made)
            self._sum_terms(room, n, units, metric.curve, bound, sums)
            return sums

        return work

    def _areas_of_classes(self, metric: AreasOfClasses, scores: Array) -> Callable[[], Array]:
        (k, n), room = scores.shape, self._room(scores.shape[1])
        y, sums = self._arrays.array(metric.y, np.float64), self._runtime.zeros((k, PIECES), np.int64)
        tops, totals = (self._runtime.empty(n, np.float64) for _ in range(2))
        units, bounds = (
            self._units(metric.units),
            [curves.bound("roc", *both) for both in zip(metric.positive, metric.negative, strict=True)],
        )

        def work() -> Array:
            grid, block, exp = self._blocks(n), (THREADS,), probability_formulas()
            self._runtime.fill(sums, 0)
            odds = {"n": n, "tops": tops, "totals": totals}
            self._of_classes("sum_odds", *exp)(grid, block, scores=scores, k=k, **odds)
            for c in range(k):
                keys, marks = room.pairs[0]
                made = {"y": y, "own": scores[c], "number": c, "keys": keys, "marks": marks}
                self._of_classes("make_class_keys", *exp)(grid, block, **made, **odds)
                self._sum_terms(room, n, units, "roc", bounds[c], sums[c])
            return sums

        return work

    def _units(self, units: Array | None) -> dict[str, Any]:
        """Arguments of kernels that sum integer weights, if any."""
        if units is None:
            return {"units": self._arrays.nothing.view(np.int64), "has_units": False}
        return {"units": self._arrays.array(units, np.int64), "has_units": True}

    def _sum_terms(
        self, room: _SortRoom, n: int, units: dict[str, Any], curve: curves.Curve, bound: float, sums: Array
    ) -> None:
        """Launch what adds up the pieces of a curve's terms, of the keys and marks in the first pair of ``room``."""
        chunks = chunks_of(n)
        grid, block = self._chunks(chunks), (THREADS,)
        (keys, marks), moved = room.pairs
        of_chunks = {"chunks": chunks, "counts": room.counts}
        for shift in range(0, KEY_BITS, 8):
            digit = {"n": n, "shift": shift, **of_chunks}
            self._curves("count_scores")(grid, block, keys=keys, **digit)
            self._curves("place_scores")(
                blocks_of_digits(chunks), block, **of_chunks, bases=room.bases, arrived=room.arrived
            )
            self._curves("order_scores")(
                grid, block,
                keys=keys, marks=marks, **digit, bases=room.bases, moved_keys=moved[0], moved_marks=moved[1],
            )  # fmt: skip
            (keys, marks), moved = moved, (keys, marks)
        rows = {"keys": keys, "marks": marks, **units, "n": n, "chunks": chunks, **room.of_chunks}
        self._curves("sum_chunks")(grid, block, **rows, arrived=room.arrived)
        self._curves("write_steps")(grid, block, **rows, **room.steps)
        self._curves("sum_terms")(
            self._blocks(n), block,
            **room.steps, steps=room.of_chunks["ends"][chunks:], curve=CURVES[curve], scale=pieces_scale(bound),
            sums=sums,
        )  # fmt: skip

    def _term_mean(self, metric: TermMean, scores: Array) -> Callable[[], Array]:
        k, n = scores.shape
        y, terms = self._arrays.array(metric.y, np.float64), self._runtime.empty(n, np.float64)
        weight, sums = self._arrays.weight(metric.weight), self._runtime.zeros(PIECES + 2, np.int64)

        def work() -> Array:
            self._runtime.fill(sums, 0)
            grid, block, above, functions = self._blocks(n), (THREADS,), sums[PIECES:], term_formulas()
            rows = {"y": y, "scores": scores, "n": n, "k": k, "terms": terms}
            if metric.link == "softmax":
                self._terms("write_class_terms", *functions)(grid, block, **rows)
            else:
                of: dict[str, Any] = {
                    "link": LINKS[metric.link],
                    "scale": metric.scale,
                    "rule": TERMS[metric.rule],
                    "a": metric.parameter,
                }
                self._terms("write_terms", *functions)(grid, block, **rows, **of)
            self._terms("find_largest", *functions)(grid, block, terms=terms, n=n, above=above)
            self._terms("sum_weighted", *functions)(
                grid, block, terms=terms, **weight, n=n, above=above, heaviest=metric.heaviest, sums=sums
            )
            return sums

        return work

    def _list_mean(self, metric: ListMean, scores: Array) -> Callable[[], Array]:
        (_, n), lists, upload = scores.shape, len(metric.divisors), self._runtime.upload
        start = upload(metric.start.astype(np.int32))
        list_of = upload(np.repeat(np.arange(lists, dtype=np.int32), np.diff(metric.start)))
        gain, worth, divisors = (upload(array) for array in (metric.gain, metric.worth, metric.divisors))
        keys, rows = self._runtime.empty(n, np.uint64), self._runtime.empty(n, np.int32)
        placed, values = self._runtime.empty(n, np.float64), self._runtime.empty(lists, np.float64)

        def work() -> Array:
            of_row: dict[str, Any] = {"start": start, "list_of": list_of, "n": n, "keys": keys, "rows": rows}
            self._lists("sort_runs")(self._blocks(n), (THREADS,), scores=scores, **of_row)
            self._lists("place_gains")(self._blocks(n), (THREADS,), gain=gain, placed=placed, **of_row)
            self._lists("value_lists")(
                self._blocks(32 * lists), (THREADS,),
                placed=placed, start=start, worth=worth, divisors=divisors, lists=lists, places=metric.places,
                rule=RULES[metric.rule], values=values,
            )  # fmt: skip
            return values

        return work

    def _room(self, n: int) -> _SortRoom:
        if n not in self._rooms:
            chunks, empty = chunks_of(n), self._runtime.empty
            self._rooms[n] = _SortRoom(
                pairs=tuple((empty(n, np.uint64), empty(n, np.uint32)) for _ in range(2)),
                counts=empty(chunks * RADIX, np.uint32),
                bases=empty(RADIX, np.uint32),
                of_chunks={name: empty(chunks + 1, np.uint64) for name in ("ones", "others", "ends")},
                steps={name: empty(n, np.uint64) for name in ("positive", "negative")},
                arrived=self._runtime.zeros(1, np.uint32),
            )
        return self._rooms[n]

    def _blocks(self, threads: int) -> tuple[int]:
        return (block_count(self._runtime, threads, THREADS),)

    def _chunks(self, chunks: int) -> tuple[int]:
        return (block_count(self._runtime, chunks),)
