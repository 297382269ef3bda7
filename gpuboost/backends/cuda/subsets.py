"""The features that compete in a node, drawn on the device: for every node that a tree may have, in one launch.

What a node draws is named by its number and has nothing to do with the data, so it is known before the tree is grown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.backends.cuda.device.round import Round
from gpuboost.backends.cuda.device.runtime import Kernel, Runtime, source
from gpuboost.keys import Key, Stream
from gpuboost.types import Array

THREADS = 64  # as in the kernel
ITERATION = 11  # among the round's inputs
_SUBSETS = ("common/common.cuh", "common/philox.cuh", "sampling/feature_subsets.cu")


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A bit for each candidate feature that competes in a node. ``words`` to a node; 0: all of them compete."""

    bits: Array  # (nodes * words,) uint32
    words: int


class Subsets:
    """For trees that ``Candidates.by_node`` speaks of."""

    def __init__(self, runtime: Runtime, rounds: Round) -> None:
        self._runtime, self._rounds = runtime, rounds
        self._kernel: Kernel | None = None

    def prepare(self, by_node: tuple[int, Key] | None) -> tuple[Any, ...]:
        """Say which iteration is drawn for. Returns what is the same in every round of a training."""
        if by_node is None:
            return (None,)
        count, key = by_node
        self._rounds.set_inputs(ITERATION, (key.words[2],))
        return count, key.seed, key.stream, key.iteration < 0

    def draw(self, by_node: tuple[int, Key] | None, most_nodes: int, of: int) -> Chosen | None:
        """``count`` of so many candidates, for nodes 0 .. most_nodes - 1; the iteration is that among the inputs."""
        if by_node is None:
            return None
        count, key = by_node
        words = -(-of // 32)
        bits = self._rounds.buffer(("chosen", most_nodes, words), lambda: self._room(most_nodes * words))
        seed_low, seed_high, _, name = key.words
        if self._kernel is None:
            self._kernel = self._runtime.kernel(source(*_SUBSETS), "draw_features")
        grid = max(1, min(-(-most_nodes // THREADS), 8 * self._runtime.sm_count))
        self._kernel(
            (grid,), (THREADS,),
            (
                np.int32(min(count, of)), np.int32(of), np.int32(words), np.int32(most_nodes), np.uint32(seed_low),
                np.uint32(seed_high), self._rounds.inputs[ITERATION : ITERATION + 1], np.uint32(name),
                np.uint32((key / Stream.NODE).stream), np.int32(key.iteration >= 0), bits,
            ),
        )  # fmt: skip
        return Chosen(bits, words)

    def _room(self, words: int) -> Array:
        return self._runtime.zeros(words, np.uint32)
