"""A worker's slot on a GPU: its own stream, and its own memory for growing trees, beside the server's.

Results of the server's rounds on the device are valid until the next round, and a worker's tree takes several rounds.
So the server's stream copies the target, and an event orders the copy before the next work of the worker's stream. The
worker's stream copies the tree, and the worker's thread waits for that copy. Both copies are overwritten only after the
slot's next copy of a target: by then the server has queued all reads of the tree, and the event of the new copy follows
them. The server's thread never waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gpuboost.backends.cuda.device.recorder import Recorder
from gpuboost.backends.cuda.device.round import RecordedRound
from gpuboost.backends.cuda.leaves import DeviceStructure, Grown
from gpuboost.backends.cuda.target import DeviceGradients, DeviceSample
from gpuboost.backends.protocol import Backend
from gpuboost.backends.workers import BuildFunction
from gpuboost.errors import DeviceError, GpuBoostError
from gpuboost.types import Array, Sample, Structure, Target


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One machine with its stream and its rounds."""

    machine: Backend
    runtime: Recorder
    rounds: RecordedRound


class CudaSlot:
    """See ``WorkerSlot``. ``numbers`` counts the copies of targets in all slots of a training, and so the draws."""

    def __init__(self, server: Side, worker: Side, numbers: Iterator[int]) -> None:
        self._server, self._worker, self._numbers = server, worker, numbers
        self._target_copies: dict[Any, DeviceGradients] = {}  # by shape, of which a training has one
        self._tree_copies: dict[Any, tuple[Array, Array, Array | None]] = {}

    @property
    def machine(self) -> Backend:
        """The machine that builds this slot's trees."""
        return self._worker.machine

    def copy_target(self, target: Target, sample: Sample) -> tuple[Target, Sample]:
        copied = self._server.rounds.call(CudaSlot._copy_target, self, cast(DeviceGradients, target.gradients))
        number, drawn = next(self._numbers), copied.sample
        if drawn is None:
            return replace(target, gradients=copied.as_gradients()), sample
        drawn = replace(drawn, log=cast(DeviceSample, sample).log, number=number)
        return replace(target, rows=drawn.rows, gradients=copied.as_gradients()), drawn.as_sample()

    def build(self, work: BuildFunction) -> tuple[Structure, ...]:
        machine, rounds = self._worker.machine, self._worker.rounds
        try:
            with rounds.enclosed():
                rounds.call(_begin)  # a round that begins otherwise is another training's
                built = cast("tuple[DeviceStructure, ...]", work(machine))
                copied = rounds.call(CudaSlot._copy_trees, self, tuple(structure.grown for structure in built))
        except BaseException:
            self._wait()  # for the reads of the copies, and to raise the error of a stream that failed
            raise
        self._wait()
        pairs = zip(copied, built, strict=True)
        return tuple(cast(Structure, DeviceStructure(grown, of.version)) for grown, of in pairs)

    def sibling(self) -> CudaSlot:
        return CudaSlot(self._server, self._worker, self._numbers)

    def close(self) -> None:
        self._server.runtime.wait()  # it may still read the slot's trees
        if not self._worker.rounds.is_open:  # no thread that was left to itself is building there
            self._worker.rounds.forget()

    # parts of the above

    def _copy_target(self, of: DeviceGradients) -> DeviceGradients:
        """Queue the copies, before all later work of the worker's stream."""
        shape = *of.g.shape, of.sample is None
        if shape not in self._target_copies:
            self._target_copies[shape] = self._room_for(of)
        copied, copy = self._target_copies[shape], self._server.runtime.copy
        for destination, source in zip(_parts(copied), _parts(of), strict=True):
            copy(destination, source)
        self._worker.runtime.follow(self._server.runtime.mark())
        return copied

    def _room_for(self, of: DeviceGradients) -> DeviceGradients:
        """Memory for copies of the arrays that change from round to round. Multiplicities of all rows do not change."""

        def like(array: Array | None) -> Array | None:
            return None if array is None else self._server.runtime.empty(array.shape, array.dtype)

        if of.sample is None:
            return DeviceGradients(like(of.g), like(of.h), of.multiplicity, states=like(of.states))
        lost, each = like(of.sample.lost), of.sample.inverse_probability
        sample = DeviceSample(
            like(of.sample.rows), like(each), room=of.sample.room, m=like(of.sample.m), lost=lost, rate=of.sample.rate
        )
        times = like(of.multiplicity)
        return DeviceGradients(like(of.g), like(of.h), times, states=like(of.states), sample=sample, lost=lost)

    def _copy_trees(self, grown: tuple[Grown, ...]) -> list[Grown]:
        return [self._copy_tree(tree) for tree in grown]

    def _copy_tree(self, grown: Grown) -> Grown:
        nodes, state, leaf_of_row = grown.nodes, grown.state, grown.leaf_of_row
        shape = grown.output, nodes.shape[0], leaf_of_row is None
        if shape not in self._tree_copies:
            empty = self._worker.runtime.empty
            leaves = None if leaf_of_row is None else empty(leaf_of_row.shape, np.int32)
            self._tree_copies[shape] = empty(nodes.shape, np.uint8), empty(state.shape, np.uint8), leaves
        to, copy = self._tree_copies[shape], self._worker.runtime.copy
        for place, array in zip(to, (nodes, state, leaf_of_row), strict=True):
            if array is not None:
                copy(place, array)
        return replace(grown, nodes=to[0], state=to[1], leaf_of_row=to[2])

    def _wait(self) -> None:
        """Wait for the queued work. Raises DeviceError if it failed."""
        try:
            self._worker.runtime.wait()
        except GpuBoostError:
            raise
        except Exception as error:  # CuPy's own kinds
            raise DeviceError(
                f"device: a worker's stream on {self._worker.runtime.name} failed ({error}). Nothing may run there any "
                "more: start the process again, with fewer workers or device='cpu'; GPUBOOST_SYNC=1 finds the kernel."
            ) from error


def _begin() -> None:
    """The first verb of a worker's round."""


def _parts(of: DeviceGradients) -> list[Array]:
    """The arrays of a target that are copied."""
    sample = of.sample
    if sample is None:
        return [of.g, of.h, of.states]
    drawn = [sample.rows, sample.m, sample.lost, sample.inverse_probability, of.multiplicity]
    return [of.g, of.h, of.states, *(array for array in drawn if array is not None)]
