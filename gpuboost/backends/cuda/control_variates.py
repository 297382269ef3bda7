"""Control variates on a device, with the gradients of an earlier round, which it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.importance import THRESHOLD_BYTES
from gpuboost.backends.cuda.target import EXTENT_THREADS, STRETCH, DeviceGradients, DeviceSample, Targets
from gpuboost.backends.cuda.trees.tree import STATE, empty_records
from gpuboost.types import Array

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
    """The verbs ``keep_gradients``, ``node_control_variate``, ``leaf_control_variate`` and ``horvitz_thompson``."""

    def __init__(self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, targets: Targets) -> None:
        self._runtime, self._arrays, self._rounds, self._targets = runtime, arrays, rounds, targets
        self._kernel = Kernels(runtime, *FILES)
        self._no_threshold = runtime.zeros(THRESHOLD_BYTES, np.uint8)

    @recorded_verb()
    def keep_gradients(self, gradients: DeviceGradients, rounds: int) -> DeviceGradients:
        """Keep g and its scales. The result holds them in the round that is ``rounds`` later.

        Curvature is not kept. Outside of rounds the result is a copy of g.
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

    @recorded_verb()
    def node(
        self, gradients: DeviceGradients, sample: DeviceSample | None, before: DeviceGradients | None, eta: float
    ) -> DeviceGradients:
        """See the verb ``node_control_variate``, and ``horvitz_thompson`` for no gradients from before."""
        (k, n), times = gradients.g.shape, gradients.multiplicity
        made = self._rounds.buffer(("controlled", k, n), lambda: self._targets.drawn_room(k, n))
        self._kernel("node_control_variate")(
            (*self._blocks(n, STRETCH), k), (EXTENT_THREADS,),
            g=gradients.g, h=gradients.h, old_g=(gradients if before is None else before).g,
            **self._arrays.times(times), **self._chances(sample), eta=eta,
            plain=before is None, n=n, made_g=made["g"], made_h=made["h"], **self._targets.scratch(k, n),
            weights=made["weights"], most=made["most"], state=made["states"],
        )  # fmt: skip
        lost = None if sample is None else sample.lost
        return DeviceGradients(made["g"], made["h"], times, states=made["states"], lost=lost)

    @recorded_verb()
    def leaf(
        self,
        gradients: DeviceGradients,
        sample: DeviceSample | None,
        before: DeviceGradients,
        eta: float,
        leaves: tuple[Array, ...],
        capacity: int,
    ) -> DeviceGradients:
        """See the verb ``leaf_control_variate``; ``capacity``: maximum number of nodes of a tree."""
        (k, n), times = gradients.g.shape, gradients.multiplicity
        room = n if sample is None else sample.room
        made = self._rounds.buffer(("controlled", k, room), lambda: self._targets.drawn_room(k, room))
        means = self._rounds.buffer(("means", capacity), lambda: self._runtime.zeros(2 * capacity, np.uint64))
        for output, leaf_of_row in enumerate(leaves):
            self._sum_by_leaf(before, output, leaf_of_row, capacity, means)
            output_range = slice(output, output + 1)
            self._kernel("leaf_control_variate")(
                self._blocks(room, STRETCH), (EXTENT_THREADS,),
                g=gradients.g[output], h=gradients.h[output], old_g=before.g[output], **self._arrays.times(times),
                **self._rows(sample), leaf_of_row=leaf_of_row, means=means, old=before.states[output_range], eta=eta,
                room=room, first=output == 0, made_g=made["g"][output], made_h=made["h"][output],
                made_times=made["times"], **self._targets.scratch(1, room), weights=made["weights"][output_range],
                most=made["most"][output_range], state=made["states"][output_range],
            )  # fmt: skip
        multiplicity = times if sample is None or times is None else made["times"]
        lost = None if sample is None else sample.lost
        return DeviceGradients(made["g"], made["h"], multiplicity, states=made["states"], sample=sample, lost=lost)

    # parts of the above

    def _sum_by_leaf(
        self, before: DeviceGradients, output: int, leaf_of_row: Array, capacity: int, means: Array
    ) -> None:
        n, near = before.g.shape[1], 8 * capacity
        in_shared_memory = near <= NEAR_BYTES
        self._runtime.fill(means, 0)
        self._kernel("sum_by_leaf")(
            self._blocks(n, SUM_THREADS), (SUM_THREADS,),
            old_g=before.g[output], **self._arrays.times(before.multiplicity), leaf_of_row=leaf_of_row, n=n,
            old=before.states[output : output + 1], capacity=capacity, own=in_shared_memory, sums=means,
            shared_mem=near if in_shared_memory else 0,
        )  # fmt: skip

    def _chances(self, sample: DeviceSample | None) -> dict[str, Any]:
        """Arguments of a sample as bits: masks, scores, threshold; 1 / p if it is one number; flags of both."""
        nothing = self._arrays.nothing
        no_scores = {"scores": nothing.view(np.uint32), "threshold": self._no_threshold, "has_scores": False}
        if sample is None:
            return {"masks": nothing.view(np.uint16), "has_masks": False, "by": 1.0, **no_scores}
        drawn = {"masks": sample.masks, "has_masks": True, "by": 1.0 / sample.rate}
        if sample.scores is None:
            return {**drawn, **no_scores}
        return {**drawn, "scores": sample.scores, "threshold": sample.threshold, "has_scores": True}

    def _rows(self, sample: DeviceSample | None) -> dict[str, Any]:
        """Arguments of a sample as a list: rows, their number; 1 / p as one number or per row."""
        no_times, no_each = self._arrays.no_times, self._arrays.nothing.view(np.float32)
        if sample is None:
            return {"rows": no_times, "m": no_times, "drawn": False, "by": 1.0, "each": no_each, "has_each": False}
        each = sample.inverse_probability
        inverse = {"by": 1.0 / sample.rate, "each": no_each if each is None else each, "has_each": each is not None}
        return {"rows": sample.rows, "m": sample.m, "drawn": True, **inverse}

    def _blocks(self, n: int, rows: int) -> tuple[int]:
        return (block_count(self._runtime, n, rows, 4),)
