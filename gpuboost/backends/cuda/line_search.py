"""Line searches on the device: ``backends.numerics.line_search`` without waiting for the host.

Each pass over the rows ends with a step of Newton's method. The maximum number of passes is launched; those after
convergence are no-ops. If leaves have their own lengths, rows are first sorted by leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.codegen.formulas import formulas
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.radix_sort import RADIX, blocks_of_digits, chunks_of
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.leaves import LeafOfRow, Leaves
from gpuboost.backends.cuda.target import ROOM_BYTES
from gpuboost.backends.cuda.trees.tree_ring import TreeRing
from gpuboost.backends.numerics.line_search import MOST, TOLERANCE
from gpuboost.losses.protocol import Loss
from gpuboost.types import Array, TrainingSet

STRETCH, DIGITS, SEARCH_THREADS, THREADS = 4096, 256, 512, 256  # as in the kernels
LENGTH, FOUND = 6, 3  # numbers that are known of a length, and the place of the answer among them
QUANTILE = 4  # numbers that are known of a quantile
_SEARCH = ("common/common.cuh", "common/tree.cuh", "common/fixed_point.cuh", "leaves/line_search.cu")
_LENGTHS = ("common/common.cuh", "common/tree.cuh", "common/ordered_float.cuh", "leaves/line_search_select.cu")
_ORDER = ("common/common.cuh", "common/blocks.cuh", "common/radix.cuh", "leaves/sort_rows_by_leaf.cu")


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A direction: ``values[leaf_of_row[i]]`` for row i."""

    leaf_of_row: Array  # (n,) int32
    values: Array  # (v,) float64
    output: int


class LineSearch:
    """The step length along a tree of leaf values ``found.values``, which are multiplied by it."""

    def __init__(self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, leaves: Leaves) -> None:
        self._runtime, self._arrays, self._rounds, self._leaves = runtime, arrays, rounds, leaves
        self._search, self._lengths = Kernels(runtime, *_SEARCH), Kernels(runtime, *_LENGTHS)
        self._sort = Kernels(runtime, *_ORDER)

    @recorded_verb()
    def along(
        self, leaves: LeafOfRow, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool, ring: TreeRing
    ) -> None:
        """See the verb."""
        way = Way(leaves.leaf_of_row, leaves.values, leaves.grown.output)
        if loss.leaf_quantile is not None:
            length, stride = self._pinball(way, loss.leaf_quantile, scores, data), 0
        else:
            length, stride = self._newton(way, loss, scores, data, per_leaf), LENGTH * per_leaf
        grown, capacity = leaves.grown, leaves.values.shape[0]
        self._lengths("go_along")(
            self._blocks(capacity), (THREADS,),
            state=grown.state, nodes=grown.nodes, length=length, stride=stride, values=leaves.values,
        )  # fmt: skip
        self._leaves.keep(leaves, ring)

    def length(self, loss: Loss, scores: Array, output: int, along: NDArray[np.float64], data: TrainingSet) -> float:
        """See ``Trainer.length_along``. Every row is a leaf of its own. Waits for the result."""
        each = self._runtime.upload(np.arange(len(along), dtype=np.int32))
        way = Way(each, self._runtime.upload(along), output)
        if loss.leaf_quantile is not None:
            length = self._pinball(way, loss.leaf_quantile, scores, data)
        else:
            length = self._newton(way, loss, scores, data, per_leaf=False)
        return float(self._runtime.download(length[:1])[0])

    def _newton(self, way: Way, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool) -> Array:
        """(.,) float64: the first leaf's length, and every ``LENGTH`` numbers the next leaf's."""
        (k, n), groups = scores.shape, way.values.shape[0] if per_leaf else 1
        order = self._order(way.leaf_of_row, n, groups) if per_leaf else self._no_order
        stretches = n // STRETCH + 1 + (groups if per_leaf else 0)
        sums = self._room("search", 2 * stretches, np.float64)
        lengths = self._room("lengths", LENGTH * groups, np.float64)
        left, arrived = self._room("left", 1, np.int32), self._room("search arrived", 1, np.uint32)
        grid = block_count(self._runtime, stretches, per_multiprocessor=4)
        room = self._arrays.nothing
        if k > 1:
            grid = max(1, min(grid, ROOM_BYTES // (24 * k * SEARCH_THREADS)))
            room = self._room("search of rows", 3 * k * grid * SEARCH_THREADS, np.float64)
        search, rows = self._search("search_along", *formulas(loss)), self._arrays.rows(data)
        for step in range(MOST + 1):  # the first one looks where there is a way to go
            search(
                (grid,), (SEARCH_THREADS,),
                **rows, scores=scores, a=loss.parameter, n=n, k=k, output=way.output,
                leaf_of_row=way.leaf_of_row, values=way.values, **order, grouped=per_leaf, groups=groups,
                start=step == 0, tolerance=TOLERANCE, most_stretches=stretches, sums=sums, lengths=lengths, left=left,
                arrived=arrived, room=room,
            )  # fmt: skip
        return lengths[FOUND:]

    def _pinball(self, way: Way, alpha: float, scores: Array, data: TrainingSet) -> Array:
        """(1,) float64 the length."""
        n, capacity = scores.shape[1], way.values.shape[0]
        length, quantile = self._room("length", 1, np.float64), self._room("quantile", QUANTILE, np.uint64)
        counts = self._room("digits", DIGITS, np.uint64)  # 0 before and after
        arrived = self._room("length arrived", 1, np.uint32)
        self._runtime.fill(quantile, 0)
        rows = {
            **self._arrays.rows_of_output(data, way.output, self._rounds), "scores": scores[way.output],
            "leaf_of_row": way.leaf_of_row, "values": way.values, "n": n, "quantile": quantile,
        }  # fmt: skip
        self._lengths("find_largest")(self._blocks(n), (THREADS,), **rows)
        for shift in range(56, -1, -8):
            self._lengths("next_digit")(
                self._blocks(max(n, capacity)), (THREADS,),
                **rows, shift=shift, alpha=alpha, counts=counts, arrived=arrived, length=length,
            )  # fmt: skip
        return length

    @property
    def _no_order(self) -> dict[str, Array]:
        return dict.fromkeys(("ordered", "begins", "first_stretch"), self._arrays.no_times)

    def _order(self, leaf_of_row: Array, n: int, leaves: int) -> dict[str, Array]:
        """Rows in the order of leaves, the first row of each leaf, and the numbers of their first stretches."""
        chunks = chunks_of(n)
        counts, bases = self._room("chunks", chunks * RADIX, np.uint32), self._room("bases", RADIX, np.uint32)
        rows, ordered = (self._room(name, n, np.int32) for name in ("ordered", "reordered"))
        begins, firsts = (self._room(name, leaves + 1, np.int32) for name in ("begins", "first stretches"))
        arrived = self._room("order arrived", 1, np.uint32)
        grid, block = self._chunks(chunks), (THREADS,)
        for shift in range(0, max(1, (leaves - 1).bit_length()), 8):
            so_far = {
                "leaf_of_row": leaf_of_row, "rows": rows, "given": shift > 0, "n": n, "shift": shift, "chunks": chunks,
                "counts": counts,
            }  # fmt: skip
            self._sort("count_leaves")(grid, block, **so_far)
            self._sort("place_leaves")(
                blocks_of_digits(chunks), block, chunks=chunks, counts=counts, bases=bases, arrived=arrived
            )
            self._sort("order_leaves")(grid, block, **so_far, bases=bases, ordered=ordered)
            rows, ordered = ordered, rows
        self._sort("find_begins")(
            self._blocks(n), block,
            leaf_of_row=leaf_of_row, rows=rows, n=n, leaves=leaves, begins=begins, first_stretch=firsts,
            arrived=arrived,
        )  # fmt: skip
        return {"ordered": rows, "begins": begins, "first_stretch": firsts}

    def _room(self, name: str, size: int, dtype: Any) -> Array:
        return self._rounds.buffer((name, size), lambda: self._runtime.zeros(max(1, size), dtype))

    def _blocks(self, items: int) -> tuple[int]:
        return (block_count(self._runtime, items, THREADS),)

    def _chunks(self, chunks: int) -> tuple[int]:
        return (block_count(self._runtime, chunks),)
