"""Components on a device: it sums rows by cell and adds functions of cells to scores.

The host solves the equations, which have the size of a basis (``backends.host.penalised_least_squares``): the sums of a
round are a few hundred kilobytes at most, the systems are banded and sequential, and the host chooses the best space
anyway. So a round waits for the device once per output, and is launched verb by verb.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.bins import DeviceBins
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.leaves import Grown
from gpuboost.backends.cuda.target import DeviceGradients
from gpuboost.backends.cuda.trees.tree import NODE, STATE, as_records
from gpuboost.backends.cuda.trees.tree_ring import check_error
from gpuboost.backends.host.penalised_least_squares import Penalised
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.smoothing import Fits, SmoothingPlan, Tables
from gpuboost.components import Grid
from gpuboost.errors import DeviceError
from gpuboost.types import Array, Bins, Gradients, Structure

SUM_THREADS, ADD_THREADS, LEAST_ROWS, MOST_TOGETHER, HEAD = 512, 256, 2048, 8, 4  # as in the kernels
CELLS_TOGETHER = 2048  # of the grids that a block adds up at once: 16 KB, so that a multiprocessor has several blocks
NEAR_CELLS = 6000  # that fit in a block's 48 KB beside its grids: those of one large grid
_FILES = ("common/common.cuh", "common/tree.cuh", "smoothing/components.cu")

Measured = Callable[[Gradients], DeviceGradients]


@dataclass(frozen=True, slots=True, eq=False)
class _Grids:
    """Grids in the layout of ``cell_sums``, one after the other. Its input is in ``_Buffers.asked``."""

    numbers: tuple[int, ...]  # which they are
    cells: int  # of all of them
    batches: int
    near: int  # cells that a block adds up in shared memory


@dataclass(slots=True, eq=False)
class _Buffers:
    """Device memory for the fits of one plan, and host memory for its sums."""

    plan: SmoothingPlan
    number: dict[Grid, int]
    first_table: list[int]
    tables: Array  # int32, 256 for each feature of each grid
    sums: Array  # (HEAD + 2 cells,) uint64
    landed: NDArray[np.uint64]  # the same, pinned
    asked: Array  # int32 records of the wanted grids (Grid of components.cu), and where their batches begin
    sent: NDArray[np.int32]  # the same, pinned
    wanted: _Grids | None  # the last time
    workspace: Workspace


class CudaSmoothing(Penalised):
    """``Smoothing`` on a device, for one caller at a time. ``measured``: gradients on the device, with their scales;
    ``pool``: threads of the host."""

    def __init__(
        self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, measured: Measured, pool: ThreadPool
    ) -> None:
        super().__init__(pool)
        self._runtime, self._arrays, self._rounds, self._measured = runtime, arrays, rounds, measured
        self._kernel = Kernels(runtime, *_FILES)
        self._last: _Buffers | None = None

    def codes(self, bins: Bins, feature: int) -> Array:
        on_device = self._arrays.bins(bins)
        return self._runtime.download(on_device.columns[feature * on_device.n : (feature + 1) * on_device.n])

    def cells(self, gradients: Gradients, rows: Array | None, output: int, grid: Grid, bins: Bins) -> Array:
        last = self._last
        if last is None or grid not in last.number:
            last = self._last = self._room_of(SmoothingPlan.of((), (grid,)))
        number = last.number[grid]
        sums, units = self._sums(last, (number,), gradients, rows, output, bins)
        begin, end = last.plan.cell_start[number : number + 2].tolist()
        return sums[begin:end] * np.array(units)

    def fit(
        self, plan: SmoothingPlan, gradients: Gradients, rows: Array | None, output: int, chosen: Array, bins: Bins
    ) -> Fits:
        if self._last is None or self._last.plan is not plan:
            self._last = self._room_of(plan)
        room, wanted = self._last, tuple(np.unique(plan.grid[chosen]).tolist())
        sums, units = self._sums(room, wanted, gradients, rows, output, bins)
        return self._fits(plan, sums, units, chosen, room.workspace)

    def add(self, scores: Array, steps: Array, grid: Grid, bins: Bins) -> None:
        self.add_all(scores, ((grid, steps),), bins)

    def add_all(self, scores: Array, tables: Tables, bins: Bins) -> None:
        """Add all tables in one launch, after one copy to the device."""
        if not tables:
            return
        on_device, grids = self._arrays.bins(bins), [grid for grid, _ in tables]
        steps = np.concatenate([np.asarray(each, np.float64) for _, each in tables])
        records, cells = _records(grids, range(len(grids)), _first_tables(grids)), _tables(grids)
        parts = [part.reshape(-1).view(np.uint8) for part in (steps, records, cells)]
        begins = [0, *accumulate(map(len, parts))]
        sent = self._runtime.upload(np.concatenate(parts))
        sections = [sent[a:b] for a, b in pairwise(begins)]
        self._kernel("add_cells")(
            (block_count(self._runtime, on_device.n, ADD_THREADS),), (ADD_THREADS,),
            grids=sections[1].view(np.int32), count=len(grids), tables=sections[2].view(np.int32),
            steps=sections[0].view(np.float64), columns=on_device.columns, n=on_device.n, scores=scores,
        )  # fmt: skip

    def kept_tree(self, structure: Structure, own_sums: bool) -> tuple[Structure, Array, Array]:
        """A copy, since the next tree is grown in the same memory. Waits for the device."""
        handle: Any = structure
        held, nodes, state = self._kept_tree(handle.grown, own_sums)
        head = as_records(state, STATE)[0]
        check_error(int(head["error"]))
        records = as_records(nodes, NODE)[: int(head["n_nodes"])]
        leaves = records[records["feature"] < 0]
        return replace(handle, grown=held), leaves["sum_g"] * head["unit_g"], leaves["sum_h"] * head["unit_h"]

    def fit_lines(self, *arguments: Any) -> NoReturn:
        self._refuse("fitted")

    def add_lines(self, *arguments: Any) -> NoReturn:
        self._refuse("added")

    # parts of the above

    @recorded_verb()
    def _kept_tree(self, grown: Grown, own_sums: bool) -> tuple[Grown, Array, Array]:
        nodes, state = self._copied(grown.nodes), self._copied(grown.state)
        held = replace(grown, nodes=nodes, state=state, leaf_of_row=None, own_sums=own_sums)
        return held, self._runtime.download(nodes), self._runtime.download(state)

    def _sums(
        self, room: _Buffers, wanted: tuple[int, ...], gradients: Gradients, rows: Array | None, output: int, bins: Bins
    ) -> tuple[Array, tuple[float, float]]:
        """(cells of the plan, 2) int64 sums, written for the wanted grids only; and the units of g and h."""
        self._land(room, wanted, gradients, rows, output, bins)
        return self._expanded(room, wanted)

    @recorded_verb()
    def _land(
        self, room: _Buffers, wanted: tuple[int, ...], gradients: Gradients, rows: Array | None, output: int, bins: Bins
    ) -> None:
        """Copy the sums to the host. This waits for the device, so its round is not replayed."""
        target, on_device = self._measured(gradients), self._arrays.bins(bins)
        if room.wanted is None or room.wanted.numbers != wanted:
            room.wanted = self._ask(room, wanted)
        size = HEAD + 2 * room.wanted.cells
        self._runtime.fill(room.sums[:size], 0)
        self._launch(target, self._drawn(target, rows), output, on_device, room, room.wanted)
        self._runtime.read(room.sums[:size], room.landed[:size])
        self._runtime.wait()

    def _expanded(self, room: _Buffers, wanted: tuple[int, ...]) -> tuple[Array, tuple[float, float]]:
        head, starts = room.landed[:HEAD], room.plan.cell_start.tolist()
        error, lost = int(head[2]), int(head[3])
        check_error((1 if error or lost & 2 else 0) | (2 if lost & 1 else 0))
        cells = sum(starts[grid + 1] - starts[grid] for grid in wanted)
        landed = room.landed[HEAD : HEAD + 2 * cells].view(np.int64).reshape(-1, 2)
        units: list[float] = head[:2].view(np.float64).tolist()
        sums = room.workspace.array("sums", (starts[-1], 2), np.int64)
        begin = 0
        for grid in wanted:
            size = starts[grid + 1] - starts[grid]
            sums[starts[grid] : starts[grid + 1]] = landed[begin : begin + size]
            begin += size
        return sums, (units[0], units[1])

    def _launch(
        self, target: DeviceGradients, rows: Array | None, output: int, bins: DeviceBins, room: _Buffers, wanted: _Grids
    ) -> None:
        unused = self._arrays.no_times
        across, records = -(-4 * self._runtime.sm_count // wanted.batches), 4 * len(wanted.numbers) + 4
        grid = max(1, min(-(-target.g.shape[1] // LEAST_ROWS), across)), wanted.batches
        self._kernel("cell_sums")(
            grid, (SUM_THREADS,),
            g=target.g[output], h=target.h[output], **self._arrays.times(target.multiplicity),
            rows=unused if rows is None else rows, has_rows=rows is not None, state=target.states[output : output + 1],
            lost=unused if target.lost is None else target.lost, columns=bins.columns, n=bins.n,
            grids=room.asked[:records], batches=room.asked[records : records + wanted.batches + 1],
            tables=room.tables, near_cells=wanted.near, sums=room.sums, shared_mem=8 * wanted.near,
        )  # fmt: skip

    def _copied(self, array: Array) -> Array:
        copy = self._runtime.empty(array.shape, array.dtype)
        self._runtime.copy(copy, array)
        return copy

    def _drawn(self, target: DeviceGradients, rows: Array | None) -> Array | None:
        """The rows of the target, on the device; None for all."""
        if rows is None:
            return None
        return target.sample.rows if target.sample is not None else self._arrays.array(rows, np.int32)

    def _room_of(self, plan: SmoothingPlan) -> _Buffers:
        size = HEAD + 2 * int(plan.cell_start[-1])
        sums, landed = self._runtime.zeros(size, np.uint64), self._runtime.pinned(size, np.uint64)
        number = {grid: i for i, grid in enumerate(plan.grids)}
        tables, size_of_request = self._runtime.upload(_tables(plan.grids)), 5 * (len(plan.grids) + 1)
        asked, sent = self._runtime.empty(size_of_request, np.int32), self._runtime.pinned(size_of_request, np.int32)
        return _Buffers(plan, number, _first_tables(plan.grids), tables, sums, landed, asked, sent, None, Workspace())

    def _ask(self, room: _Buffers, wanted: tuple[int, ...]) -> _Grids:
        """Queue the upload of the wanted grids. Earlier uploads are complete, since their sums were awaited."""
        records = _records(room.plan.grids, wanted, room.first_table)
        batches, near = _batches(records[:, 3])
        size = records.size + len(batches)
        room.sent[:size] = np.concatenate([records.reshape(-1), batches])
        self._runtime.write(room.asked[:size], room.sent[:size])
        return _Grids(wanted, int(records[-1, 3]), len(batches) - 1, near)

    def _refuse(self, what: str) -> NoReturn:
        raise DeviceError(
            f"base_learner: lines in the leaves of trees are {what} on the CPU, and this is {self._runtime.name}. Use "
            "device='cpu' or 'auto'."
        )


def _first_tables(grids: Sequence[Grid]) -> list[int]:
    """The number of the first table of each grid, among the tables of all grids."""
    return [0, *accumulate(len(grid.features) for grid in grids)][:-1]


def _tables(grids: Sequence[Grid]) -> NDArray[np.int32]:
    """(features of all grids, 256) the cells of bins."""
    return np.concatenate([np.asarray(cells, np.int32)[None] for grid in grids for cells in grid.cells])


def _records(grids: Sequence[Grid], wanted: Sequence[int], first_table: list[int]) -> NDArray[np.int32]:
    """(t + 1, 4) Grid of components.cu for each wanted grid, and one for the end."""
    records, begin = np.zeros((len(wanted) + 1, 4), np.int32), 0
    for i, number in enumerate(wanted):
        features = grids[number].features
        records[i] = features[0], features[1] if len(features) == 2 else -1, first_table[number], begin
        begin += grids[number].n_cells
    records[-1, 3] = begin
    return records


def _batches(begins: NDArray[np.int32]) -> tuple[NDArray[np.int32], int]:
    """First grids of the batches that a block sums at once, and the largest number of cells of a batch."""
    starts, near = [0], 0
    for i in range(1, len(begins)):
        together = int(begins[i] - begins[starts[-1]])
        if i > starts[-1] + 1 and (together > CELLS_TOGETHER or i - starts[-1] > MOST_TOGETHER):
            starts.append(i - 1)
            together = int(begins[i] - begins[i - 1])
        near = max(near, together if together <= NEAR_CELLS else 0)
    return np.array([*starts, len(begins) - 1], np.int32), near
