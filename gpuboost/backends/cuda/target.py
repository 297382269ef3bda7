"""Targets of trees on a device: gradients, their scales, and the drawn rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, cast, final

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.bins import DeviceBins
from gpuboost.backends.cuda.codegen.formulas import formulas
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.inputs import Input, KeyInput, RoundNoise
from gpuboost.backends.cuda.device.kernels import Kernels, Launcher
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.draws import DrawLog, draw_log
from gpuboost.backends.cuda.recorded_values import RecordedValues
from gpuboost.backends.cuda.trees.all_reduce import SHARDED, AllReduce
from gpuboost.backends.cuda.trees.tree import STATE, empty_records
from gpuboost.backends.cuda.user_kernels import noise_kernel
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.keys import Key
from gpuboost.losses.protocol import Loss
from gpuboost.types import Array, Gradients, Noise, Sample, TrainingSet

STRETCH, EXTENT_THREADS, DRAW_THREADS, GATHER_ROWS, CHUNK = 4096, 512, 256, 128, 4096  # as in the kernels
ROOM_BYTES = 64 << 20  # to work in for losses of several outputs
KEY_WORDS = 4
_POINTWISE = ("common/common.cuh", "common/tree.cuh", "common/fixed_point.cuh", "gradients/pointwise.cu")
_MEASURED = ("common/common.cuh", "common/blocks.cuh", "common/tree.cuh", "common/fixed_point.cuh")
_EXTENTS = (*_MEASURED, "gradients/extents.cu")
_SAMPLE = (*_MEASURED, "sampling/sample.cu")
_NOISE = (*_MEASURED, "common/philox.cuh", "common/normal.cuh", "sampling/noise.cu")
_DRAW = ("common/common.cuh", "common/blocks.cuh", "sampling/drawn.cuh", "common/philox.cuh", "sampling/draw.cu")


@final
@dataclass(frozen=True, slots=True, eq=False)
class DeviceGradients:
    """Gradients on the device, in the place of ``Gradients``: the loop passes them on, and reads the first four."""

    disposable: ClassVar[bool] = False  # their memory is that of all rounds

    g: Array  # (k, n or capacity of the sample) float32
    h: Array  # the same
    multiplicity: Array | None = None  # (n or capacity,) int32
    states: Array = None  # (k,) STATE, as bytes: scales
    sample: DeviceSample | None = None  # the rows that they are of: the first ``m`` are valid
    lost: Array = None  # of the sample that they are made from

    def as_gradients(self) -> Gradients:
        """This handle, typed as ``Gradients``."""
        return cast(Gradients, self)


@final
@dataclass(frozen=True, slots=True, eq=False)
class DeviceSample:
    """Drawn rows on the device, in the place of ``Sample``: the first ``m`` of ``rows``, which has room for more."""

    rows: Array  # (room,) int32, increasing
    inverse_probability: Array | None = None  # (room,) float32
    n_excluded: int = 0  # not known on the host: see ``log``
    room: int = 0  # entries of ``rows``
    m: Array = None  # (1,) int32
    lost: Array = None  # (1,) int32: errors, see ``Lost`` of drawn.cuh
    masks: Array = None  # the same rows as bits: see drawn.cuh
    rate: float = 1.0  # where it is the same for every row; then ``inverse_probability`` is None, and so are these:
    scores: Array = None  # (n or more,) uint32 bits of each row's score
    threshold: Array = None  # the record of threshold.cuh, which maps a score to p
    log: DrawLog | None = None
    number: int | None = None  # of the draw in the log, counted from 0; None: the last one

    def as_sample(self) -> Sample:
        """This handle, typed as a ``Sample``."""
        return cast(Sample, self)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRows:
    """The multiplicity of every row, and their sum and maximum."""

    times: Array | None
    total: int
    most: int

    @property
    def sizes(self) -> dict[str, int]:
        """Arguments of kernels that measure gradients."""
        return {"total_times": self.total, "most": self.most}


def rows_drawn_at_most(probability: float, n: int) -> int:
    """Capacity of a sample: ten standard deviations above its mean size, in whole blocks of the gathering kernel."""
    mean = n * probability
    max_rows = min(n, int(mean + 10.0 * sqrt(mean * (1.0 - probability))) + 64)
    return -(-max_rows // GATHER_ROWS) * GATHER_ROWS


class Targets:
    """The verbs before a tree."""

    def __init__(
        self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, all_reduce: AllReduce | None = None
    ) -> None:
        self._runtime, self._arrays, self._rounds, self._all_reduce = runtime, arrays, rounds, all_reduce
        before = "" if all_reduce is None else SHARDED
        self._kernel, self._measure, self._perturb = (
            Kernels(runtime, *files, before=before) for files in (_SAMPLE, _EXTENTS, _NOISE)
        )
        self._drawing = Kernels(runtime, *_DRAW)
        self._pointwise = Kernels(runtime, *_POINTWISE, before=before)
        self._no_each = arrays.nothing.view(np.float32)
        self._key, self._noise, self._strength = Input(rounds, KEY_WORDS), KeyInput(rounds), KeyInput(rounds)

    @recorded_verb()
    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> DeviceGradients:
        k, n = scores.shape
        made, scratch = self._room(k, n), self.scratch(k, n)
        rows, curvature = self.rows_of(data), -1.0 if curvature is None else curvature
        of_loss = {
            "y": self._arrays.array(data.y, np.float64), "scores": scores, **self._arrays.weight(data.weight),
            "a": loss.parameter, "curvature": curvature, "n": n, "g": made.g, "h": made.h,
        }  # fmt: skip
        if k > 1:
            room = self._rounds.buffer(("room", k), lambda: self._row_room(k))
            kernel = self._pointwise("row_gradients", *formulas(loss))
            kernel((room.shape[0] // (2 * k * 256),), (256,), **of_loss, k=k, room=room)
            self.measure(made.g, made.h, rows, made.states, scratch)
        else:
            kernel = self._pointwise("gradients", *formulas(loss))
            measures = {**self._arrays.times(rows.times), **rows.sizes, **scratch, "state": made.states}
            kernel(self._grid(n, STRETCH), (EXTENT_THREADS,), **of_loss, **measures)
            if self._all_reduce is not None:
                self._all_reduce.settle(scratch, made.states, n)
        return DeviceGradients(made.g, made.h, rows.times, states=made.states)

    def given(self, gradients: Gradients) -> DeviceGradients:
        """Gradients from the host or another verb, on the device and measured."""
        if isinstance(gradients, DeviceGradients):
            return gradients
        g, h = (self._runtime.upload(np.ascontiguousarray(x, np.float32)) for x in (gradients.g, gradients.h))
        k, n = g.shape
        m = gradients.multiplicity
        rows = DeviceRows(None, n, 1) if m is None else self._multiplicity(m)
        states = empty_records(self._runtime, k, STATE)
        self.measure(g, h, rows, states, self.scratch(k, n))
        return DeviceGradients(g, h, rows.times, states=states)

    def sample(self, probability: float, n: int, key: Key) -> DeviceSample:
        """See the verb."""
        return self._sample(probability, n, self._key.set_key(key))

    @recorded_verb()
    def _sample(self, probability: float, n: int, key: Input) -> DeviceSample:
        room, limit = rows_drawn_at_most(probability, n), int(probability * 2.0**32)
        made = self._rounds.buffer(("sample", room, n), lambda: self._sample_room(room, n))
        log = self._rounds.buffer(("draws",), lambda: draw_log(self._runtime, self._rounds))
        grid, block = self._blocks(max(1, -(-n // CHUNK))), (DRAW_THREADS,)
        masks, starts, m, lost = made["masks"], made["starts"], made["m"], made["lost"]
        self._drawing("draw")(
            grid, block,
            stream=key.words, limit=limit, by=1.0 / probability, n=n, room=room, masks=masks, starts=starts,
            arrived=made["arrived"], m=m, lost=lost, **log.arguments,
        )  # fmt: skip
        self._drawing("compact")(grid, block, masks=masks, starts=starts, m=m, n=n, rows=made["rows"])
        return DeviceSample(rows=made["rows"], room=room, m=m, lost=lost, masks=masks, rate=probability, log=log)

    @recorded_verb()
    def weigh(self, gradients: DeviceGradients, sample: DeviceSample) -> DeviceGradients:
        """See the verb."""
        (k, n), room = gradients.g.shape, sample.room
        made = self._rounds.buffer(("drawn", k, room), lambda: self.drawn_room(k, room))
        each = sample.inverse_probability
        self._kernel("weigh")(
            (*self._grid(room, STRETCH), k), (EXTENT_THREADS,),
            g=gradients.g, h=gradients.h, **self._arrays.times(gradients.multiplicity), rows=sample.rows, m=sample.m,
            by=1.0 / sample.rate, each=self._no_each if each is None else each, has_each=each is not None, n=n,
            room=room, drawn_g=made["g"], drawn_h=made["h"], drawn_times=made["times"], **self.scratch(k, room),
            weights=made["weights"], most=made["most"], state=made["states"],
        )  # fmt: skip
        times = None if gradients.multiplicity is None else made["times"]
        return DeviceGradients(made["g"], made["h"], times, states=made["states"], sample=sample, lost=sample.lost)

    def noise(self, gradients: DeviceGradients, noise: Noise) -> DeviceGradients:
        """See the verb."""
        return self._disturbed(gradients, self._noise.set_noise(noise))

    @recorded_verb()
    def _disturbed(self, gradients: DeviceGradients, noise: RoundNoise | None) -> DeviceGradients:
        assert noise is not None
        (k, room), sample, times = gradients.g.shape, gradients.sample, gradients.multiplicity
        made = self._rounds.buffer(("noisy", k, room), lambda: self.drawn_room(k, room))
        of_outputs = [(noise.key / output).arguments for output in range(k)]
        names = [stream["name"] for stream in of_outputs]
        streams = self._rounds.buffer(("names", *names), lambda: self._runtime.upload(np.array(names, np.uint32)))
        drawn = {"rows": self._arrays.no_times, "m": self._arrays.no_times}
        if sample is not None:
            drawn = {"rows": sample.rows, "m": sample.m}
        stream = {name: of_outputs[0][name] for name in ("seed_low", "seed_high", "iteration")}
        asked = {**drawn, "drawn": sample is not None, **self._arrays.times(times), "deviation": noise.deviation}
        asked |= {**stream, "names": streams, "table": self._arrays.array(TABLE, np.float64)}
        measures = {**self.scratch(k, room), "weights": made["weights"], "most": made["most"], "state": made["states"]}
        grid = (*self._grid(room, STRETCH), k)
        if noise.scale is None:
            self._perturb("perturb")(
                grid, (EXTENT_THREADS,), g=gradients.g, h=gradients.h, room=room, noisy_g=made["g"], **asked, **measures
            )
        else:
            g, h, noisy = (array.view(np.uint32) for array in (gradients.g, gradients.h, made["g"]))
            launch = Launcher(self._runtime, *noise_kernel(noise.scale))
            launch(self._blocks(-(-room // 256)), (256,), g=g, h=h, n=room, k=k, out=noisy, **asked)
            self.measure_drawn(made["g"], gradients.h, gradients, made)
        lost = gradients.lost
        return DeviceGradients(made["g"], gradients.h, times, states=made["states"], sample=sample, lost=lost)

    def strength(self, noise: Noise | None) -> RoundNoise | None:
        """Noise on split gains, as an input of the round."""
        return self._strength.set_noise(noise)

    def gain_noise(self, noise: RoundNoise | None) -> dict[str, Any] | None:
        """The kernels' arguments for ``GainNoise``."""
        if noise is None:
            return None
        return {**noise.arguments, "table": self._arrays.array(TABLE, np.float64)}

    def gathered(self, bins: DeviceBins, sample: DeviceSample) -> DeviceBins:
        """Memory for the bins of the drawn rows, side by side."""
        return self._rounds.buffer(("bins", sample.room, bins.d), lambda: self._bins_room(bins, sample.room))

    def gather(self, bins: DeviceBins, sample: DeviceSample) -> DeviceBins:
        """The bins of the drawn rows, side by side."""
        made, room = self.gathered(bins, sample), sample.room
        self._kernel("gather")(
            (*self._blocks(room // GATHER_ROWS), bins.tiles), (256,),
            all_rows=bins.rows, drawn=sample.rows, m=sample.m, n=bins.n, room=room, d=bins.d, width=bins.width,
            rows=made.rows, columns=made.columns,
        )  # fmt: skip
        return made

    @recorded_verb()
    def losses(self, loss: Loss, scores: Array, data: TrainingSet) -> Array:
        """(n,) float64 the loss of each row, times its weight."""
        k, n = scores.shape
        losses = self._rounds.buffer(("losses", n), lambda: self._runtime.empty(n, np.float64))
        self._pointwise("row_losses", *formulas(loss))(
            self._grid(n, 256), (256,),
            y=self._arrays.array(data.y, np.float64), scores=scores, **self._arrays.weight(data.weight),
            a=loss.parameter, n=n, k=k, losses=losses,
        )  # fmt: skip
        return losses

    def loss_total(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> Callable[[], float]:
        """The weighted sum of the loss, for which the call waits."""
        total = self._total(loss, scores, y, weight)()
        return lambda: float(self._runtime.download(total)[0])

    @recorded_verb()
    def recorded_mean(
        self, loss: Loss, scores: Array, y: Array, weight: Array | None, total_weight: float
    ) -> RecordedValues:
        """The mean of the loss after each round; this one's is computed."""

        def make() -> RecordedValues:
            work = self._total(loss, scores, y, weight)
            return RecordedValues(self._runtime, work, lambda total: float(total[0]) / total_weight)

        values = self._rounds.buffer(("mean", loss, id(scores), id(y)), make)
        values.compute()
        return values

    def _total(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> Callable[[], Array]:
        """The function that launches the sum of the loss, and returns where it will be."""
        k, n = scores.shape
        sums, total = self._runtime.empty(max(1, -(-n // STRETCH)), np.float64), self._runtime.empty(1, np.float64)
        rows = {"y": self._arrays.array(y, np.float64), **self._arrays.weight(weight)}
        arrived = self._runtime.zeros(1, np.uint32)

        def work() -> Array:
            self._pointwise("loss_total", *formulas(loss))(
                self._grid(n, STRETCH), (EXTENT_THREADS,),
                **rows, scores=scores, a=loss.parameter, n=n, k=k, sums=sums, arrived=arrived, total=total,
            )  # fmt: skip
            if self._all_reduce is not None:
                self._all_reduce.total(sums, total)
            return total

        return work

    def rows_of(self, data: TrainingSet) -> DeviceRows:
        """The multiplicities of a training set."""
        if data.multiplicity is None:
            return DeviceRows(None, data.n_rows, 1)
        return self._rounds.buffer(("rows", id(data)), lambda: self._multiplicity(data.multiplicity))

    def room(self, k: int, n: int) -> tuple[DeviceGradients, dict[str, Array]]:
        """Memory for the gradients of n rows, and for their measurement: see ``scratch``."""
        return self._room(k, n), self.scratch(k, n)

    def written(
        self, data: TrainingSet, shape: tuple[int, int], write: Callable[[DeviceGradients], None]
    ) -> DeviceGradients:
        """Gradients that ``write`` puts into (k, n) arrays between the launches of a round, which is not replayed."""
        made, scratch = self.room(*shape)
        rows = self.rows_of(data)
        self._runtime.beyond(lambda: write(made))
        self.measure(made.g, made.h, rows, made.states, scratch)
        return DeviceGradients(made.g, made.h, rows.times, states=made.states)

    # parts of the above

    def _multiplicity(self, m: Any) -> DeviceRows:
        on_device = self._arrays.array(m, np.int32)
        host = m if isinstance(m, np.ndarray) else self._runtime.download(on_device)
        return DeviceRows(on_device, int(host.sum(dtype=np.int64)), int(host.max(initial=1)))

    def measure(self, g: Array, h: Array, rows: DeviceRows, states: Array, scratch: dict[str, Array]) -> None:
        """Write the states of the (k, n) gradients; ``scratch``: see ``room``."""
        k, n = g.shape
        self._measure("extents_of")(
            (*self._grid(n, STRETCH), k), (EXTENT_THREADS,),
            g=g, h=h, **self._arrays.times(rows.times), n=n, **rows.sizes, **scratch, state=states,
        )  # fmt: skip
        if self._all_reduce is not None:
            self._all_reduce.settle(scratch, states, n)

    def measure_drawn(self, g: Array, h: Array, of: DeviceGradients, made: dict[str, Array]) -> None:
        """Write ``made["states"]`` of (k, room) gradients of the rows of others. made: see ``drawn_room``."""
        (k, room), sample = g.shape, of.sample
        scratch = self.scratch(k, room)
        self._measure("measure_noisy")(
            (*self._grid(room, STRETCH), k), (EXTENT_THREADS,),
            g=g, h=h, **self._arrays.times(of.multiplicity), drawn=sample is not None,
            m=self._arrays.no_times if sample is None else sample.m, room=room, **scratch,
            weights=made["weights"], most=made["most"], state=made["states"],
        )  # fmt: skip
        if self._all_reduce is not None:
            self._all_reduce.settle(scratch, made["states"], room)

    def _room(self, k: int, n: int) -> DeviceGradients:
        def make() -> DeviceGradients:
            empty = self._runtime.empty
            states = empty_records(self._runtime, k, STATE)
            return DeviceGradients(empty((k, n), np.float32), empty((k, n), np.float32), None, states=states)

        return self._rounds.buffer(("gradients", k, n), make)

    def scratch(self, k: int, n: int) -> dict[str, Array]:
        """Kernels' arguments: sums of stretches, maxima and block counters of k outputs."""

        def make() -> dict[str, Array]:
            stretches, zeros = max(1, -(-n // STRETCH)), self._runtime.zeros
            sums, tops = zeros(2 * k * stretches, np.float64), zeros(2 * k, np.uint64)
            return {"sums": sums, "tops": tops, "arrived": zeros(k, np.uint32)}

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

    def _blocks(self, max_blocks: int) -> tuple[int]:
        return (block_count(self._runtime, max_blocks, per_multiprocessor=4),)
