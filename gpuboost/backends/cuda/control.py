"""Control variates on a device: gradients beside those of an earlier round, which are kept there."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cuda.device.resident import Resident
from gpuboost.backends.cuda.device.round import Round
from gpuboost.backends.cuda.device.runtime import Kernel, Runtime, source
from gpuboost.backends.cuda.importance import THRESHOLD_BYTES
from gpuboost.backends.cuda.target import EXTENT_THREADS, STRETCH, DeviceGradients, DeviceSample, Targets
from gpuboost.backends.cuda.tree import STATE, empty_records
from gpuboost.types import Array, Sample

NEAR_BYTES, SUM_THREADS = 48 << 10, 512  # of shared memory that need no opt-in; as in the kernels
FILES = (
    "common/common.cuh",
    "common/blocks.cuh",
    "common/tree.cuh",
    "common/fixed_point.cuh",
    "sampling/threshold.cuh",
    "sampling/control_variates.cu",
)


class Control:
    """The verbs ``keep``, ``node_control`` and ``leaf_control``."""

    def __init__(self, runtime: Runtime, resident: Resident, rounds: Round, targets: Targets) -> None:
        self._runtime, self._resident, self._rounds, self._targets = runtime, resident, rounds, targets
        self._kernels: dict[str, Kernel] = {}
        self._no_threshold = runtime.zeros(THRESHOLD_BYTES, np.uint8)

    def keep(self, gradients: DeviceGradients, rounds: int) -> DeviceGradients:
        """What will have been g, and its scales, that many rounds from now; its curvature is not kept.

        Between rounds there is nothing to wait for, and it is a copy.
        """
        (k, n), slots = gradients.g.shape, rounds if self._rounds.is_open else 1

        def make() -> list[DeviceGradients]:
            return [
                DeviceGradients(
                    self._runtime.zeros((k, n), np.float32), None, gradients.multiplicity,
                    states=empty_records(self._runtime, k, STATE),
                )
                for _ in range(slots)
            ]  # fmt: skip

        kept = self._rounds.buffer(("kept", k, n, slots), make)
        for to, by in zip(kept, [*kept[1:], gradients], strict=True):
            self._runtime.copy(to.g, by.g)
            self._runtime.copy(to.states, by.states)
        return kept[0]

    def node(self, gradients: DeviceGradients, sample: Sample, before: DeviceGradients, eta: float) -> DeviceGradients:
        """See the verb ``node_control``."""
        (k, n), times = gradients.g.shape, gradients.multiplicity
        made = self._rounds.buffer(("controlled", k, n), lambda: self._targets.drawn_room(k, n))
        sums, tops, arrived = self._targets.scratch(k, n)
        arguments = (
            gradients.g.reshape(-1), gradients.h.reshape(-1), before.g.reshape(-1), *self._times(times),
            *self._chances(sample), np.float64(eta), np.int32(n), made["g"].reshape(-1), made["h"].reshape(-1), sums,
            tops, made["weights"], made["most"], arrived, made["states"],
        )  # fmt: skip
        self._kernel("node_control")((*self._blocks(n, STRETCH), k), (EXTENT_THREADS,), arguments)
        lost = sample.lost if isinstance(sample, DeviceSample) else None
        return DeviceGradients(made["g"], made["h"], times, states=made["states"], lost=lost)

    def leaf(
        self,
        gradients: DeviceGradients,
        sample: Sample,
        before: DeviceGradients,
        eta: float,
        leaves: tuple[Array, ...],
        capacity: int,
    ) -> DeviceGradients:
        """See the verb ``leaf_control``; ``capacity``: the most nodes that a tree has."""
        (k, n), times = gradients.g.shape, gradients.multiplicity
        drawn = sample if isinstance(sample, DeviceSample) else None
        room = n if drawn is None else drawn.room
        made = self._rounds.buffer(("controlled", k, room), lambda: self._targets.drawn_room(k, room))
        sums, tops, arrived = self._targets.scratch(1, room)
        means = self._rounds.buffer(("means", capacity), lambda: self._runtime.zeros(2 * capacity, np.uint64))
        for output, leaf_of_row in enumerate(leaves):
            self._sum_by_leaf(before, output, leaf_of_row, capacity, means)
            arguments = (
                gradients.g[output], gradients.h[output], before.g[output], *self._times(times), *self._rows(drawn),
                leaf_of_row, means, before.states[output : output + 1], np.float64(eta), np.int32(room),
                np.int32(output == 0), made["g"][output], made["h"][output], made["times"], sums, tops,
                made["weights"][output : output + 1], made["most"][output : output + 1], arrived,
                made["states"][output : output + 1],
            )  # fmt: skip
            self._kernel("leaf_control")(self._blocks(room, STRETCH), (EXTENT_THREADS,), arguments)
        own = times if drawn is None or times is None else made["times"]
        lost = None if drawn is None else drawn.lost
        return DeviceGradients(made["g"], made["h"], own, states=made["states"], sample=drawn, lost=lost)

    # parts of the above

    def _sum_by_leaf(
        self, before: DeviceGradients, output: int, leaf_of_row: Array, capacity: int, means: Array
    ) -> None:
        n, near = before.g.shape[1], 8 * capacity
        own = near <= NEAR_BYTES
        self._runtime.fill(means, 0)
        arguments = (
            before.g[output], *self._times(before.multiplicity), leaf_of_row, np.int32(n),
            before.states[output : output + 1], np.int32(capacity), np.int32(own), means,
        )  # fmt: skip
        self._kernel("sum_by_leaf")(self._blocks(n, SUM_THREADS), (SUM_THREADS,), arguments, near if own else 0)

    def _times(self, times: Array | None) -> tuple[Array, np.int32]:
        return (self._resident.no_times, np.int32(0)) if times is None else (times, np.int32(1))

    def _chances(self, sample: Sample) -> tuple[object, ...]:
        """Of a sample as bits: masks, scores, threshold; 1 / p where it is one number; which of them there are."""
        nothing = self._resident.nothing
        no_scores = nothing.view(np.uint32), self._no_threshold
        if not isinstance(sample, DeviceSample):
            return nothing.view(np.uint16), *no_scores, np.float32(1.0), np.int32(0), np.int32(0)
        scored = sample.scores is not None
        scores = (sample.scores, sample.threshold) if scored else no_scores
        return sample.masks, *scores, np.float32(1.0 / sample.rate), np.int32(1), np.int32(scored)

    def _rows(self, sample: DeviceSample | None) -> tuple[object, ...]:
        """Of a sample as a list: rows, how many, whether there is one; 1 / p where it is one number, else of each."""
        no_times, no_each = self._resident.no_times, self._resident.nothing.view(np.float32)
        if sample is None:
            return no_times, no_times, np.int32(0), np.float32(1.0), no_each, np.int32(0)
        each = sample.inverse_probability
        by = np.float32(1.0 / sample.rate), no_each if each is None else each, np.int32(each is not None)
        return sample.rows, sample.m, np.int32(1), *by

    def _blocks(self, n: int, rows: int) -> tuple[int]:
        return (max(1, min(-(-n // rows), 4 * self._runtime.sm_count)),)

    def _kernel(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = self._runtime.kernel(source(*FILES), name)
        return self._kernels[name]
