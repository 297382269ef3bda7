"""One of several GPUs that hold some rows each of a training set: what it tells the others, and when.

Every GPU runs the same launches and comes to the same decisions, since what decides is the same everywhere: sums of
integers over all rows, which are exact in any order, and sums of stretches that lie side by side. Between two launches
of a tree stands one sum over the GPUs:

    gradients       extents of all rows        two 64-bit numbers for each stretch of 4,096 rows, and the maxima
    histograms      sums of the built lines    16 bytes a cell (24 where rows are counted)
    partition       rows of the counted lines  4 bytes a line

A graph recorded on one device cannot hold them, so rounds are launched verb by verb.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gpuboost.backends.cuda.device.plan import Plan
from gpuboost.backends.cuda.device.runtime import Kernel, Runtime, source
from gpuboost.types import Array

if TYPE_CHECKING:
    from gpuboost.backends.cuda.device.arena import Arena

SHARDED = "#define SHARDED 1\n"
HEAD = 2  # SHARED_HEAD of tree.cuh
STRETCH, EXTENT_THREADS = 4096, 512  # as in the kernels
_EXTENTS = ("common/common.cuh", "common/tree.cuh", "common/fixed_point.cuh", "sharding/shared_extents.cu")


class Collective(Protocol):
    """Over all GPUs of a training set, in place, in device memory, queued on the device's stream.

    Arrays are C-ordered, of integers of 32 or 64 bits, and as long with every GPU; each makes the same calls in the
    same order.
    """

    name: str  # "nccl", "host"

    def sum(self, device: Array) -> None: ...
    def max(self, device: Array) -> None: ...
    def abort(self) -> None:
        """Let whoever waits for this GPU go: it will not come."""
        ...


@dataclass(frozen=True, slots=True)
class Share:
    """What one GPU has to know of the rows of all. ``first``, the number of its first row, begins a stretch."""

    collective: Collective
    first: int
    rows: int  # of all GPUs
    weight: int  # sum of all multiplicities
    most: int  # the largest
    unit: float  # what weights are multiplied with to be counted: see ``leaf_values.weight_scale``

    @property
    def stretches(self) -> int:
        return max(1, -(-self.rows // STRETCH))


class Shares:
    """What is not of one tree: extents, and other sums."""

    def __init__(self, runtime: Runtime, share: Share) -> None:
        self._runtime, self.share = runtime, share
        self._kernels: dict[str, Kernel] = {}
        self._rooms: dict[int, tuple[Array, Array]] = {}

    def sum(self, device: Array) -> None:
        """Add up what every GPU has there."""
        self._runtime.beyond(lambda: self.share.collective.sum(device))

    def settle(self, scratch: tuple[Array, Array, Array], states: Array, m: int) -> None:
        """The target's part of the states (k, itemsize), of which the GPU has measured its own m rows."""
        k, share = states.shape[0], self.share
        sums, tops = self._spread(scratch[0], scratch[1], 2 * k)
        self._runtime.beyond(lambda: share.collective.max(tops))
        sizes = np.int32(share.stretches), np.int32(m), np.int64(share.weight), np.int32(share.most)
        self._kernel("settle_shared_extents")((k,), (EXTENT_THREADS,), (sums, tops, *sizes, states))

    def total(self, sums: Array, total: Array) -> None:
        """total (1,) = the sum in the fixed order of all rows; sums: of this GPU's stretches."""
        every, _ = self._spread(sums, self._runtime.zeros(1, np.uint64), 1)
        self._kernel("shared_total")((1,), (EXTENT_THREADS,), (every, np.int32(self.share.stretches), total))

    def _spread(self, sums: Array, tops: Array, planes: int) -> tuple[Array, Array]:
        """Sums of all stretches, float64, and the tops of this GPU."""
        share, all_stretches = self.share, self.share.stretches
        if planes not in self._rooms:
            zeros = self._runtime.zeros
            self._rooms[planes] = zeros(planes * all_stretches, np.uint64), zeros(planes, np.uint64)
        every, own_tops = self._rooms[planes]
        own = sums.shape[0] // planes
        sizes = (np.int32(number) for number in (planes, own, share.first // STRETCH, all_stretches))
        grid = (max(1, min(64, planes * all_stretches // 256)),)
        self._kernel("spread")(grid, (256,), (sums, tops, *sizes, every, own_tops))
        self.sum(every)
        return every.view(np.float64), own_tops

    def _kernel(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = self._runtime.kernel(source(*_EXTENTS), name)
        return self._kernels[name]


class SharedTree:
    """Of trees of one shape: ``sums`` of the lines over all GPUs, and ``here``, the rows of each node on this one."""

    def __init__(self, runtime: Runtime, plan: Plan, share: Share) -> None:
        self._runtime, self._plan, self._share = runtime, plan, share
        self._in_line = plan.tiles * plan.width * plan.cells * (2 + int(plan.counts))  # at most
        self.sums = runtime.zeros(HEAD + plan.batch * self._in_line, np.int64)
        self.here = runtime.zeros(max(plan.most_nodes, 2 * plan.most_slots), np.int32)
        self._everywhere = runtime.zeros(plan.most_lines, np.uint32)
        shape = f"{SHARDED}#define CELLS {plan.cells}\n#define COUNTS {int(plan.counts)}\n"
        text = source(
            "common/common.cuh", "common/tree.cuh", "common/fixed_point.cuh", "sharding/shards.cu", before=shape
        )
        self._sum_lines, self._plant = (runtime.kernel(text, name) for name in ("sum_lines", "plant_shared_root"))

    def add_up(self, arena: Arena, state: Array, first: int, last: int) -> None:
        """The sums of lines first .. last - 1, whose stretches were just built."""
        a, lines = arena.array, last - first
        some = np.int32(first), np.int32(last)
        arguments = a["partials"], a["partial_counts"], arena.contest, a["lines"], state, *some, self.sums
        self._sum_lines((4 * self._plan.sm_count,), (256,), arguments)
        used = self.sums[: HEAD + lines * self._in_line]
        self._runtime.beyond(lambda: self._share.collective.sum(used))

    def plant(self, arena: Arena, state: Array, nodes: Array) -> None:
        """The root, whose stretches were just built."""
        self.add_up(arena, state, 0, 1)
        self._plant((1,), (1,), (self.sums, np.int32(self._share.rows), state, nodes, self.here, arena.rule))

    def cut(self, arena: Arena, state: Array, nodes: Array) -> None:
        """Rows were just routed: count them everywhere, and cut the lists of those that are here."""
        plan, a, everywhere = self._plan, arena.array, self._everywhere
        self._runtime.copy(everywhere, a["cursor"])
        self._runtime.beyond(lambda: self._share.collective.sum(everywhere))
        arena.cut_shared_lists(
            (1,), (512,),
            (
                a["cursor"], everywhere, self.here, a["stretches"], state, nodes, a["lines"], arena.contest, arena.rule,
                np.int32(plan.least_rows), np.int32(plan.stretches),
            ),
        )  # fmt: skip
