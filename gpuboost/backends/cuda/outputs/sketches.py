"""Sketches of gradients on a device: the verbs of ``OneTreeGrower`` besides growth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.target import EXTENT_THREADS, STRETCH, DeviceGradients, Targets
from gpuboost.backends.cuda.trees.all_reduce import SHARDED, AllReduce
from gpuboost.types import Array

OF_SKETCH, THREADS = 8, 256  # as in the kernels
_FILES = (
    "common/common.cuh", "common/blocks.cuh", "common/tree.cuh", "common/fixed_point.cuh", "gradients/sketches.cu",
)  # fmt: skip


class DeviceSketches:
    """The kernels. What is chosen or drawn comes from the host, so these verbs are never replayed."""

    def __init__(
        self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, targets: Targets,
        all_reduce: AllReduce | None = None,
    ) -> None:  # fmt: skip
        self._runtime, self._arrays, self._rounds, self._targets = runtime, arrays, rounds, targets
        self._kernel = Kernels(runtime, *_FILES, before="" if all_reduce is None else SHARDED)
        self._all_reduce = all_reduce

    @recorded_verb()
    def squared_norms(self, gradients: DeviceGradients) -> NDArray[np.float64]:
        """See the verb. Waits."""
        k, room = gradients.g.shape
        scratch, norms = self._targets.scratch(k, room), self._runtime.empty(k, np.float64)
        self._kernel("squared_norms")(
            (self._blocks(-(-room // STRETCH)), k), (EXTENT_THREADS,),
            g=gradients.g, **self._arrays.times(gradients.multiplicity), room=room, states=gradients.states,
            sums=scratch["sums"], arrived=scratch["arrived"], norms=norms,
        )  # fmt: skip
        if self._all_reduce is not None:
            stretches = scratch["sums"].shape[0] // (2 * k)
            for output in range(k):
                of_output = scratch["sums"][output * stretches : (output + 1) * stretches]
                self._all_reduce.total(of_output, norms[output : output + 1])
        return self._runtime.download(norms)

    @recorded_verb()
    def chosen(self, gradients: DeviceGradients, outputs: Array, factors: Array) -> DeviceGradients:
        """See ``chosen_outputs``."""
        room, s = gradients.g.shape[1], len(outputs)
        made, upload = self._made(s, room), self._runtime.upload
        self._kernel("chosen_outputs")(
            (self._blocks(-(-room // THREADS)), s), (THREADS,),
            g=gradients.g, h=gradients.h, room=room, states=gradients.states, chosen=upload(outputs.astype(np.int32)),
            factors=upload(factors.astype(np.float64)), chosen_g=made["g"], chosen_h=made["h"],
        )  # fmt: skip
        return self._measured(gradients, made)

    @recorded_verb()
    def projected(self, gradients: DeviceGradients, matrix: Array) -> DeviceGradients:
        """See ``projected_outputs``."""
        (k, room), s = gradients.g.shape, matrix.shape[1]
        made = self._made(s, room)
        self._kernel("projected_outputs")(
            (self._blocks(-(-room // THREADS)), -(-s // OF_SKETCH)), (THREADS,),
            g=gradients.g, h=gradients.h, room=room, k=k, s=s, states=gradients.states,
            matrix=self._runtime.upload(np.ascontiguousarray(matrix, np.float64)), sums_g=made["g"],
            means_h=made["h"],
        )  # fmt: skip
        return self._measured(gradients, made)

    # parts of the above

    def _made(self, s: int, room: int) -> dict[str, Array]:
        return self._rounds.buffer(("sketch", s, room), lambda: self._targets.drawn_room(s, room))

    def _measured(self, of: DeviceGradients, made: dict[str, Array]) -> DeviceGradients:
        self._targets.measure_drawn(made["g"], made["h"], of, made)
        return DeviceGradients(
            made["g"], made["h"], of.multiplicity, states=made["states"], sample=of.sample, lost=of.lost
        )

    def _blocks(self, max_blocks: int) -> int:
        return block_count(self._runtime, max_blocks, per_multiprocessor=4)
