"""Data-parallel training on several GPUs, each with some of the rows: the sums over all GPUs, and their schedule.

Every GPU runs the same launches and makes the same decisions, since these depend only on sums over all rows: sums of
integers, which are exact in any order, and sums of stretches, which are combined in order. Between two launches of a
tree is one sum over the GPUs:

    gradients       extents of all rows        two 64-bit numbers for each stretch of 4,096 rows, and the maxima
    histograms      sums of the built lines    16 bytes a cell (24 where rows are counted)
    partition       rows of the counted lines  4 bytes a line

A graph recorded on one device cannot contain them, so rounds are launched verb by verb.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.trees.plan import ROOT_SUMS, ArenaPlan
from gpuboost.types import Array

if TYPE_CHECKING:
    from gpuboost.backends.cuda.trees.arena import Arena

SHARDED = "#define SHARDED 1\n"
STRETCH, EXTENT_THREADS = 4096, 512  # as in the kernels
_EXTENTS = ("common/common.cuh", "common/tree.cuh", "common/fixed_point.cuh", "sharding/shared_extents.cu")
_SUMS = ("common/common.cuh", "common/tree.cuh", "common/fixed_point.cuh", "sharding/shards.cu")


class Collective(Protocol):
    """All-reduce over the GPUs of a training set, in place, in device memory, queued on the device's stream.

    Arrays are C-ordered, of 32- or 64-bit integers, and of equal length on every GPU. Every GPU makes the same calls in
    the same order.
    """

    name: str  # "nccl", "host"

    def sum(self, device: Array) -> None: ...
    def max(self, device: Array) -> None: ...
    def abort(self) -> None:
        """Stop other GPUs from waiting for this one, which failed."""
        ...


@dataclass(frozen=True, slots=True)
class RowsOfGpu:
    """One GPU's range of rows. ``first``, the number of its first row, is the start of a stretch."""

    collective: Collective
    first: int
    rows: int  # of all GPUs
    weight: int  # sum of all multiplicities
    most: int  # the largest
    unit: float  # factor of weights that makes them integers: see ``leaf_values.weight_scale``

    @property
    def stretches(self) -> int:
        return max(1, -(-self.rows // STRETCH))


class AllReduce:
    """Sums over all GPUs outside of trees: extents, losses, counts."""

    def __init__(self, runtime: Runtime, shard: RowsOfGpu) -> None:
        self._runtime, self.shard = runtime, shard
        self._kernel = Kernels(runtime, *_EXTENTS)
        self._rooms: dict[int, tuple[Array, Array]] = {}

    def sum(self, device: Array) -> None:
        """Sum the array over all GPUs, in place."""
        self._runtime.beyond(lambda: self.shard.collective.sum(device))

    def settle(self, scratch: dict[str, Array], states: Array, m: int) -> None:
        """Complete the target's part of the states (k, itemsize), which hold measurements of this GPU's m rows."""
        k, shard = states.shape[0], self.shard
        sums, tops = self._spread(scratch["sums"], scratch["tops"], 2 * k)
        self._runtime.beyond(lambda: shard.collective.max(tops))
        self._kernel("settle_shared_extents")(
            (k,), (EXTENT_THREADS,),
            all_sums=sums, all_tops=tops, all=shard.stretches, m=m, weight=shard.weight, most=shard.most, state=states,
        )  # fmt: skip

    def total(self, sums: Array, total: Array) -> None:
        """total (1,) = the fixed-order sum over all rows; sums: those of this GPU's stretches."""
        every, _ = self._spread(sums, self._runtime.zeros(1, np.uint64), 1)
        self._kernel("shared_total")((1,), (EXTENT_THREADS,), all_sums=every, all=self.shard.stretches, total=total)

    def _spread(self, sums: Array, tops: Array, planes: int) -> tuple[Array, Array]:
        """The float64 sums of all stretches, and this GPU's maxima."""
        shard, all_stretches = self.shard, self.shard.stretches
        if planes not in self._rooms:
            zeros = self._runtime.zeros
            self._rooms[planes] = zeros(planes * all_stretches, np.uint64), zeros(planes, np.uint64)
        every, own_tops = self._rooms[planes]
        self._kernel("spread")(
            (max(1, min(64, planes * all_stretches // 256)),), (256,),
            sums=sums, tops=tops, planes=planes, own=sums.shape[0] // planes, first=shard.first // STRETCH,
            all=all_stretches, all_sums=every, all_tops=own_tops,
        )  # fmt: skip
        self.sum(every)
        return every.view(np.float64), own_tops


class TreeAllReduce:
    """Sharing for trees of one shape: sums of lines over all GPUs, and ``here``, each node's rows on this GPU."""

    def __init__(self, runtime: Runtime, plan: ArenaPlan, shard: RowsOfGpu) -> None:
        self._runtime, self._plan, self._shard = runtime, plan, shard
        self._in_line = plan.tiles * plan.width * plan.cells * (2 + int(plan.counts))  # at most
        self.here = runtime.zeros(max(plan.most_nodes, 2 * plan.most_slots), np.int32)
        self._everywhere = runtime.zeros(plan.most_lines, np.uint32)
        self._kernel = Kernels(runtime, *_SUMS, before=SHARDED)

    def add_up(self, arena: Arena, lines: int) -> None:
        """Sum this many lines, whose rows were just added up, over all GPUs."""
        used = arena.array["line_sums"][: ROOT_SUMS + lines * self._in_line]
        self._runtime.beyond(lambda: self._shard.collective.sum(used))

    def init_root(self, arena: Arena, state: Array, nodes: Array) -> None:
        """Sum the root, whose rows were just added up, over all GPUs."""
        sums = arena.array["line_sums"]
        self._kernel("share_root")((1,), (1,), state=state, sums=sums)
        self.add_up(arena, 1)
        self._kernel("init_shared_root")(
            (1,), (1,),
            sums=sums, rows=self._shard.rows, state=state, nodes=nodes, here=self.here, rule=arena.rule,
        )  # fmt: skip

    def finish_lists(self, arena: Arena, state: Array, nodes: Array) -> None:
        """Count the rows that were just routed over all GPUs, and finish the lists of this GPU's rows."""
        a, everywhere = arena.array, self._everywhere
        self._runtime.copy(everywhere, a["cursor"])
        self._runtime.beyond(lambda: self._shard.collective.sum(everywhere))
        arena.finish_shared_lists(
            (1,), (512,),
            cursor=a["cursor"], everywhere=everywhere, here=self.here, state=state, nodes=nodes, lines=a["lines"],
            rule=arena.rule,
        )  # fmt: skip
