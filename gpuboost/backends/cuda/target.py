"""What trees are fitted to: gradients, their scales, and rows that are drawn. All of it stays on the device."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from gpuboost.backends.cuda.bins import DeviceBins
from gpuboost.backends.cuda.codegen.formulas import formulas
from gpuboost.backends.cuda.device.resident import Resident
from gpuboost.backends.cuda.device.round import Round
from gpuboost.backends.cuda.device.runtime import Kernel, Runtime, source
from gpuboost.backends.cuda.draws import DrawLog, draw_log
from gpuboost.backends.cuda.shares import SHARDED, Shares
from gpuboost.backends.cuda.tree import STATE, empty_records
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.keys import Key
from gpuboost.losses.protocol import Loss
from gpuboost.types import Array, Gradients, Noise, Sample, TrainingSet

STRETCH, EXTENT_THREADS, DRAW_THREADS, GATHER_ROWS, CHUNK = 4096, 512, 256, 128, 4096  # as in the kernels
ROOM_BYTES = 64 << 20  # to work in for losses of several outputs
KEY, ITERATION, LOTS = 0, 9, 30  # among the round's inputs: four words of a sample's key, and one of two noises'
_TARGET = ("common/common.cuh", "common/tree.cuh", "common/fixed_point.cuh")
_SAMPLE = (
    "common/common.cuh", "common/blocks.cuh", "sampling/drawn.cuh", "common/tree.cuh", "common/fixed_point.cuh",
    "common/philox.cuh", "common/normal.cuh", "sampling/sample.cu",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class DeviceGradients(Gradients):
    """Gradients on the device. ``states`` (k,) STATE, as bytes: scales. Of drawn rows, only the first ``m`` count."""

    states: Array = None
    sample: DeviceSample | None = None
    lost: Array = None  # of the sample that they are made from


@dataclass(frozen=True, slots=True, eq=False)
class DeviceSample(Sample):
    """Drawn rows on the device: the first ``m`` of ``rows``, which has room for more."""

    room: int = 0  # entries of ``rows``
    m: Array = None  # (1,) int32
    lost: Array = None  # (1,) int32: what went wrong, see ``Lost`` of drawn.cuh
    masks: Array = None  # the same rows as bits: see drawn.cuh
    rate: float = 1.0  # where it is the same for every row; then ``inverse_probability`` is None, and so are these:
    scores: Array = None  # (n or more,) uint32 bits of each row's score
    threshold: Array = None  # the record of threshold.cuh, which says what p is of a score
    log: DrawLog | None = None
    number: int | None = None  # of the draw in the log, counted from 0; None: the last one


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRows:
    """The multiplicity of every row, and what is known of all of them."""

    times: Array | None
    total: int
    most: int


def rows_drawn_at_most(probability: float, n: int) -> int:
    """Room for a sample: ten standard deviations above its mean, in whole blocks of the gathering kernel."""
    mean = n * probability
    most = min(n, int(mean + 10.0 * sqrt(mean * (1.0 - probability))) + 64)
    return -(-most // GATHER_ROWS) * GATHER_ROWS


class Targets:
    """The verbs before a tree."""

    def __init__(self, runtime: Runtime, resident: Resident, rounds: Round, shares: Shares | None = None) -> None:
        self._runtime, self._resident, self._rounds, self._shares = runtime, resident, rounds, shares
        self._kernels: dict[Any, Kernel] = {}
        self._no_each = resident.nothing.view(np.float32)

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> DeviceGradients:
        k, n = scores.shape
        made, scratch = self._room(k, n), self.scratch(k, n)
        y = self._resident.array(data.y, np.float64)
        weighted, rows = data.weight is not None, self.rows_of(data)
        weight = self._resident.array(data.weight, np.float64) if weighted else self._resident.nothing
        constant = np.float64(-1.0 if curvature is None else curvature)
        before = y, scores.reshape(-1), weight, np.int32(weighted)
        g, h = made.g.reshape(-1), made.h.reshape(-1)
        formula = formulas(loss)
        if k > 1:
            room = self._rounds.buffer(("room", k), lambda: self._row_room(k))
            sizes = np.float64(loss.parameter), constant, np.int32(n), np.int32(k)
            kernel = self._kernel("row_gradients", (*_TARGET, "gradients/pointwise.cu"), formula)
            kernel((room.shape[0] // (2 * k * 256),), (256,), (*before, *sizes, g, h, room))
            self._measure(g, h, rows, made.states, scratch)
        else:
            measures = np.float64(loss.parameter), constant, np.int32(n), np.int64(rows.total), np.int32(rows.most)
            kernel = self._kernel("gradients", (*_TARGET, "gradients/pointwise.cu"), formula)
            times = self._times(rows)
            kernel(self._grid(n, STRETCH), (EXTENT_THREADS,), (*before, *times, *measures, g, h, *scratch, made.states))
            if self._shares is not None:
                self._shares.settle(scratch, made.states, n)
        return DeviceGradients(made.g, made.h, rows.times, states=made.states)

    def given(self, gradients: Gradients) -> DeviceGradients:
        """Gradients that come from elsewhere, measured."""
        if isinstance(gradients, DeviceGradients):
            return gradients
        g, h = (self._runtime.upload(np.ascontiguousarray(x, np.float32)) for x in (gradients.g, gradients.h))
        k, n = g.shape
        m = gradients.multiplicity
        rows = DeviceRows(None, n, 1) if m is None else self._multiplicity(m)
        states = empty_records(self._runtime, k, STATE)
        self._measure(g.reshape(-1), h.reshape(-1), rows, states, self.scratch(k, n))
        return DeviceGradients(g, h, rows.times, states=states)

    def sample(self, probability: float, n: int, key: Key) -> DeviceSample:
        """See the verb. The key is read from the round's inputs, which are set before."""
        room, limit = rows_drawn_at_most(probability, n), int(probability * 2.0**32)
        made = self._rounds.buffer(("sample", room, n), lambda: self._sample_room(room, n))
        chunks = max(1, -(-n // CHUNK))
        inputs = self._rounds.inputs[KEY : KEY + 4]
        log = self._rounds.buffer(("draws",), lambda: draw_log(self._runtime, self._rounds))
        counters = made["masks"], made["starts"], made["arrived"], made["m"], made["lost"], *log.arguments
        sizes = np.uint64(limit), np.float32(1.0 / probability), np.int32(n), np.int32(room)
        self._kernel("draw", _SAMPLE)(self._blocks(chunks), (DRAW_THREADS,), (inputs, *sizes, *counters))
        arguments = made["masks"], made["starts"], made["m"], np.int32(n), made["rows"]
        self._kernel("compact", _SAMPLE)(self._blocks(chunks), (DRAW_THREADS,), arguments)
        return DeviceSample(
            rows=made["rows"], room=room, m=made["m"], lost=made["lost"], masks=made["masks"], rate=probability, log=log
        )

    def weigh(self, gradients: DeviceGradients, sample: DeviceSample) -> DeviceGradients:
        (k, n), room = gradients.g.shape, sample.room
        made = self._rounds.buffer(("drawn", k, room), lambda: self.drawn_room(k, room))
        sums, tops, arrived = self.scratch(k, room)
        times, m = gradients.multiplicity, made["times"]
        weighted, each = times is not None, sample.inverse_probability
        arguments = (
            gradients.g.reshape(-1), gradients.h.reshape(-1), times if weighted else self._resident.no_times,
            np.int32(weighted), sample.rows, sample.m, np.float32(1.0 / sample.rate),
            self._no_each if each is None else each, np.int32(each is not None), np.int32(n), np.int32(room),
            made["g"].reshape(-1), made["h"].reshape(-1), m, sums, tops, made["weights"], made["most"], arrived,
            made["states"],
        )  # fmt: skip
        self._kernel("weigh", _SAMPLE)((*self._grid(room, STRETCH), k), (EXTENT_THREADS,), arguments)
        own = m if weighted else None
        return DeviceGradients(made["g"], made["h"], own, states=made["states"], sample=sample, lost=sample.lost)

    def noise(self, gradients: DeviceGradients, noise: Noise) -> DeviceGradients:
        """See the verb. The iteration of the key is read from the round's inputs, which are set before."""
        (k, room), sample, times = gradients.g.shape, gradients.sample, gradients.multiplicity
        made = self._rounds.buffer(("noisy", k, room), lambda: self.drawn_room(k, room))
        names = [(noise.key / output).words[3] for output in range(k)]
        streams = self._rounds.buffer(("names", *names), lambda: self._runtime.upload(np.array(names, np.uint32)))
        seed_low, seed_high, _, _ = noise.key.words
        nothing = self._resident.no_times
        arguments = (
            gradients.g.reshape(-1), gradients.h.reshape(-1), nothing if times is None else times,
            np.int32(times is not None), nothing if sample is None else sample.rows, np.int32(sample is not None),
            nothing if sample is None else sample.m, np.int32(room), np.float64(noise.deviation), np.uint32(seed_low),
            np.uint32(seed_high), self._rounds.inputs[ITERATION : ITERATION + 1], streams,
            self._resident.array(TABLE, np.float64).reshape(-1), made["g"].reshape(-1), *self.scratch(k, room)[:2],
            made["weights"], made["most"], self.scratch(k, room)[2], made["states"],
        )  # fmt: skip
        self._kernel("perturb", _SAMPLE)((*self._grid(room, STRETCH), k), (EXTENT_THREADS,), arguments)
        lost = gradients.lost
        return DeviceGradients(made["g"], gradients.h, times, states=made["states"], sample=sample, lost=lost)

    def lots(self, noise: Noise | None) -> tuple[Any, ...] | None:
        """The kernels' arguments for ``Lots``; the iteration is read from the round's inputs, which are set before."""
        if noise is None:
            return None
        seed_low, seed_high, _, name = noise.key.words
        stream = np.uint32(seed_low), np.uint32(seed_high), self._rounds.inputs[LOTS : LOTS + 1], np.uint32(name)
        return np.float64(noise.deviation), *stream, self._resident.array(TABLE, np.float64).reshape(-1)

    def gather(self, bins: DeviceBins, sample: DeviceSample, again: bool) -> DeviceBins:
        """The bins of the drawn rows, side by side. In a round, once is enough: ``again`` is False for the others."""
        room = sample.room
        made = self._rounds.buffer(("bins", room, bins.d), lambda: self._bins_room(bins, room))
        if self._rounds.is_open and not again:
            return made
        sizes = (np.int32(number) for number in (bins.n, room, bins.d, bins.width))
        arguments = bins.rows, sample.rows, sample.m, *sizes, made.rows, made.columns
        self._kernel("gather", _SAMPLE)((*self._blocks(room // GATHER_ROWS), bins.tiles), (256,), arguments)
        return made

    def losses(self, loss: Loss, scores: Array, data: TrainingSet) -> Array:
        """(n,) float64 the loss of each row, times its weight."""
        (k, n), weight = scores.shape, data.weight
        found = self._rounds.buffer(("losses", n), lambda: self._runtime.empty(n, np.float64))
        weights = self._resident.nothing if weight is None else self._resident.array(weight, np.float64)
        arguments = (
            self._resident.array(data.y, np.float64), scores.reshape(-1), weights, np.int32(weight is not None),
            np.float64(loss.parameter), np.int32(n), np.int32(k), found,
        )  # fmt: skip
        kernel = self._kernel("row_losses", (*_TARGET, "gradients/pointwise.cu"), formulas(loss))
        kernel(self._grid(n, 256), (256,), arguments)
        return found

    def loss_total(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        """The weighted sum of the loss; waits for it."""
        k, n = scores.shape
        sums, total = self._runtime.empty(max(1, -(-n // STRETCH)), np.float64), self._runtime.empty(1, np.float64)
        arrived = self._runtime.zeros(1, np.uint32)
        weights = self._resident.nothing if weight is None else self._resident.array(weight, np.float64)
        arguments = (
            self._resident.array(y, np.float64), scores.reshape(-1), weights, np.int32(weight is not None),
            np.float64(loss.parameter), np.int32(n), np.int32(k), sums, arrived, total,
        )  # fmt: skip
        kernel = self._kernel("loss_total", (*_TARGET, "gradients/pointwise.cu"), formulas(loss))
        kernel(self._grid(n, STRETCH), (EXTENT_THREADS,), arguments)
        if self._shares is not None:
            self._shares.total(sums, total)
        return float(self._runtime.download(total)[0])

    def rows_of(self, data: TrainingSet) -> DeviceRows:
        """The multiplicities of a training set."""
        if data.multiplicity is None:
            return DeviceRows(None, data.n_rows, 1)
        return self._rounds.buffer(("rows", id(data)), lambda: self._multiplicity(data.multiplicity))

    def room(self, k: int, n: int) -> tuple[DeviceGradients, tuple[Array, Array, Array]]:
        """Gradients of n rows to be filled, and what to measure them with: see ``scratch``."""
        return self._room(k, n), self.scratch(k, n)

    # parts of the above

    def _multiplicity(self, m: Any) -> DeviceRows:
        adopted = self._resident.array(m, np.int32)
        host = m if isinstance(m, np.ndarray) else self._runtime.download(adopted)
        return DeviceRows(adopted, int(host.sum(dtype=np.int64)), int(host.max(initial=1)))

    def _times(self, rows: DeviceRows) -> tuple[Array, np.int32]:
        return (self._resident.no_times, np.int32(0)) if rows.times is None else (rows.times, np.int32(1))

    def _measure(self, g: Array, h: Array, rows: DeviceRows, states: Array, scratch: tuple[Array, ...]) -> None:
        n, k = g.shape[0] // states.shape[0], states.shape[0]
        sizes = np.int32(n), np.int64(rows.total), np.int32(rows.most)
        grid = (*self._grid(n, STRETCH), k)
        self._kernel("extents_of", _SAMPLE)(
            grid, (EXTENT_THREADS,), (g, h, *self._times(rows), *sizes, *scratch, states)
        )
        if self._shares is not None:
            self._shares.settle(scratch, states, n)

    def _room(self, k: int, n: int) -> DeviceGradients:
        def make() -> DeviceGradients:
            empty = self._runtime.empty
            states = empty_records(self._runtime, k, STATE)
            return DeviceGradients(empty((k, n), np.float32), empty((k, n), np.float32), None, states=states)

        return self._rounds.buffer(("gradients", k, n), make)

    def scratch(self, k: int, n: int) -> tuple[Array, Array, Array]:
        """Sums of stretches, largest sizes and block counters of k outputs."""

        def make() -> tuple[Array, Array, Array]:
            stretches = max(1, -(-n // STRETCH))
            zeros = self._runtime.zeros
            return zeros(2 * k * stretches, np.float64), zeros(2 * k, np.uint64), zeros(k, np.uint32)

        return self._rounds.buffer(("scratch", k, n), make)

    def _row_room(self, k: int) -> Array:
        threads = max(1, min(8 * self._runtime.sm_count, ROOM_BYTES // (16 * k * 256))) * 256
        return self._runtime.empty(2 * k * threads, np.float64)

    def _sample_room(self, room: int, n: int) -> dict[str, Array]:
        chunks, zeros = max(1, -(-n // CHUNK)), self._runtime.zeros
        return {
            "masks": zeros(chunks * DRAW_THREADS, np.uint16), "starts": zeros(chunks + 1, np.int32),
            "arrived": zeros(1, np.uint32), "m": zeros(1, np.int32), "lost": zeros(1, np.int32),
            "rows": zeros(room, np.int32),
        }  # fmt: skip

    def drawn_room(self, k: int, room: int) -> dict[str, Array]:
        empty, zeros = self._runtime.empty, self._runtime.zeros
        return {
            "g": empty((k, room), np.float32), "h": empty((k, room), np.float32), "times": empty(room, np.int32),
            "weights": zeros(k, np.uint64), "most": zeros(k, np.int32),
            "states": empty_records(self._runtime, k, STATE),
        }  # fmt: skip

    def _bins_room(self, bins: DeviceBins, room: int) -> DeviceBins:
        rows = self._runtime.zeros(bins.tiles * room * bins.width, np.uint8)
        return DeviceBins(rows, self._runtime.zeros(max(1, bins.d * room), np.uint8), room, bins.d, bins.width)

    def _grid(self, n: int, rows: int) -> tuple[int]:
        return self._blocks(-(-n // rows))

    def _blocks(self, most: int) -> tuple[int]:
        return (max(1, min(most, 4 * self._runtime.sm_count)),)

    def _kernel(self, name: str, files: tuple[str, ...], before: str = "") -> Kernel:
        before = before if self._shares is None else SHARDED + before
        if (name, before) not in self._kernels:
            self._kernels[name, before] = self._runtime.kernel(source(*files, before=before), name)
        return self._kernels[name, before]
