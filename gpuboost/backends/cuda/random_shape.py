"""Trees whose shape is drawn on the device: ``grow`` with a key, and what is counted in them afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.backends.cuda.device.resident import Resident
from gpuboost.backends.cuda.device.round import Round
from gpuboost.backends.cuda.device.runtime import Kernel, Runtime, source
from gpuboost.backends.cuda.tree import NODE, STATE, empty_records
from gpuboost.backends.numerics.random_trees import splits_of, usable_features
from gpuboost.keys import Key
from gpuboost.types import Array, Candidates, Cuts, Limits

ITERATION = 31  # among the round's inputs
THREADS, UPLOADS = 256, 16  # UPLOADS: lists of features that may be on their way
NEAR_BYTES = 48 << 10  # of shared memory that need no opt-in
_FILES = ("common/common.cuh", "common/philox.cuh", "common/tree.cuh", "growth/random_trees.cu")


@dataclass(frozen=True, slots=True, eq=False)
class _Room:
    """One output's tree."""

    nodes: Array  # (most nodes,) NODE, as bytes
    state: Array  # (1,) STATE, as bytes


class RandomShapes:
    """The kernels, and the features that have a cut."""

    def __init__(self, runtime: Runtime, resident: Resident, rounds: Round) -> None:
        self._runtime, self._resident, self._rounds = runtime, resident, rounds
        self._kernels: dict[str, Kernel] = {}

    def room(self, cuts: Cuts, limits: Limits, output: int) -> _Room:
        """For a tree of these limits."""
        size = 2 * splits_of(limits) + 1
        runtime = self._runtime
        return self._rounds.buffer(
            ("random shape", id(cuts), size, output),
            lambda: _Room(empty_records(runtime, size, NODE), empty_records(runtime, 1, STATE)),
        )

    def prepare(self, cuts: Cuts, candidates: Candidates, key: Key) -> Array:
        """Queue what changes from round to round: its number and, if they are others, the features. Returns these."""
        self._rounds.set_inputs(ITERATION, (key.words[2],))
        features = self._rounds.buffer(("usable", id(cuts)), lambda: _Features(self._runtime, cuts.n_features))
        return features.bring(usable_features(cuts, candidates))

    def draw(self, room: _Room, features: Array, cuts: Cuts, limits: Limits, key: Key) -> None:
        """A shape from the stream of the key."""
        seed_low, seed_high, _, name = key.words
        iteration = self._rounds.inputs[ITERATION : ITERATION + 1]
        stream = np.uint32(seed_low), np.uint32(seed_high), iteration, np.uint32(name)
        splits = splits_of(limits)
        arguments = features, *self._resident.kinds(cuts), *stream, np.uint32((key / "sets").words[3])
        tree = np.int32(limits.symmetric), np.int32(splits), room.state, room.nodes
        self._kernel("random_shape")(self._blocks(2 * splits + 1), (THREADS,), (*arguments, *tree))

    def count(self, state: Array, all_rows: Array, nodes: Array, leaf_of_row: Array, n: int, sums: Array) -> None:
        """Sums and rows of every node, once those of the leaves are known."""
        capacity = nodes.shape[0]
        name = "rows of leaves", capacity
        counts = self._rounds.buffer(name, lambda: self._runtime.zeros(capacity, np.uint32))
        own = 4 * capacity <= NEAR_BYTES
        self._runtime.fill(counts, 0)
        arguments = leaf_of_row, np.int32(n), np.int32(capacity), np.int32(own), counts
        self._kernel("count_rows")(self._blocks(n), (THREADS,), arguments, 4 * capacity if own else 0)
        self._kernel("climb")((1,), (THREADS,), (state, all_rows, nodes, sums, counts))

    def _blocks(self, most: int) -> tuple[int]:
        return (max(1, min(-(-most // THREADS), 8 * self._runtime.sm_count)),)

    def _kernel(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = self._runtime.kernel(source(*_FILES), name)
        return self._kernels[name]


class _Features:
    """How many features may be drawn, and which, on the device."""

    def __init__(self, runtime: Runtime, n_features: int) -> None:
        self._runtime = runtime
        self._array = runtime.zeros(1 + n_features, np.int32)
        self._hosts: list[Any] = [runtime.pinned(1 + n_features, np.int32) for _ in range(UPLOADS)]
        self._last, self._written = np.full(1, -1, np.int32), 0

    def bring(self, features: Array) -> Array:
        if not np.array_equal(features, self._last):
            if self._written and self._written % UPLOADS == 0:
                self._runtime.wait()  # the buffer about to be written may still be read
            host = self._hosts[self._written % UPLOADS]
            self._written, self._last = self._written + 1, features.copy()
            host[0], host[1 : 1 + len(features)] = len(features), features
            self._runtime.write(self._array, host)
        return self._array
