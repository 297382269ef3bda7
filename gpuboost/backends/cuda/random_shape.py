"""Random tree shapes on a device: ``grow`` with a key, and the later counts of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.inputs import KeyInput, RoundKey
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.trees.tree import NODE, STATE, empty_records
from gpuboost.backends.numerics.random_trees import splits_of, usable_features
from gpuboost.keys import Key, Stream
from gpuboost.types import Array, Candidates, Cuts, Limits

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

    def __init__(self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound) -> None:
        self._runtime, self._arrays, self._rounds = runtime, arrays, rounds
        self._kernel, self._key = Kernels(runtime, *_FILES), KeyInput(rounds)

    def room(self, cuts: Cuts, limits: Limits, output: int) -> _Room:
        """Device memory for a tree of these limits."""
        size = 2 * splits_of(limits) + 1
        runtime = self._runtime
        return self._rounds.buffer(
            ("random shape", id(cuts), size, output),
            lambda: _Room(empty_records(runtime, size, NODE), empty_records(runtime, 1, STATE)),
        )

    def features(self, cuts: Cuts, candidates: Candidates) -> Array:
        """Queue the upload of the candidate features, if they changed. Returns their device array."""
        features = self._rounds.buffer(("usable", id(cuts)), lambda: _Features(self._runtime, cuts.n_features))
        return features.bring(usable_features(cuts, candidates))

    def key(self, key: Key) -> RoundKey:
        """Set the random stream of the next shape."""
        return self._key.set(key)

    def draw(self, room: _Room, features: Array, cuts: Cuts, limits: Limits, key: RoundKey) -> None:
        """Draw a shape from the stream of the key."""
        splits, (n_bins, categorical) = splits_of(limits), self._arrays.kinds(cuts)
        self._kernel("random_shape")(
            self._blocks(2 * splits + 1), (THREADS,),
            usable=features, n_bins=n_bins, categorical=categorical, **key.arguments,
            name_of_sets=(key / Stream.SETS).arguments["name"], symmetric=limits.symmetric, most_splits=splits,
            state=room.state, nodes=room.nodes,
        )  # fmt: skip

    def count(self, state: Array, all_rows: Array, nodes: Array, leaf_of_row: Array, n: int, sums: Array) -> None:
        """Compute the sums and rows of every node from those of the leaves."""
        capacity = nodes.shape[0]
        name = "rows of leaves", capacity
        counts = self._rounds.buffer(name, lambda: self._runtime.zeros(capacity, np.uint32))
        in_shared_memory = 4 * capacity <= NEAR_BYTES
        self._runtime.fill(counts, 0)
        self._kernel("count_rows")(
            self._blocks(n), (THREADS,),
            leaf_of_row=leaf_of_row, n=n, capacity=capacity, own=in_shared_memory, counts=counts,
            shared_mem=4 * capacity if in_shared_memory else 0,
        )  # fmt: skip
        self._kernel("climb")((1,), (THREADS,), state=state, all=all_rows, nodes=nodes, sums=sums, counts=counts)

    def _blocks(self, threads: int) -> tuple[int]:
        return (block_count(self._runtime, threads, THREADS),)


class _Features:
    """The number of features with a cut, and the features, in the kernel's layout."""

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
