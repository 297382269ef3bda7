"""Candidate features per node, drawn on the device for every possible node of a tree in one launch.

A node's draw depends on its number and not on the data, so it is known before the tree is grown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuboost.backends.cuda.device.inputs import KeyInput, RoundKey
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.keys import Key, Stream
from gpuboost.types import Array

THREADS = 64  # as in the kernel
_SUBSETS = ("common/common.cuh", "common/philox.cuh", "sampling/feature_subsets.cu")


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A bit for each candidate feature that competes in a node. ``words`` per node; 0: all features compete."""

    bits: Array  # (nodes * words,) uint32
    words: int


class Subsets:
    """Draws for trees with ``Candidates.by_node``."""

    def __init__(self, runtime: Runtime, rounds: RecordedRound) -> None:
        self._runtime, self._rounds = runtime, rounds
        self._kernel, self._key = Kernels(runtime, *_SUBSETS), KeyInput(rounds)

    def drawn(self, by_node: tuple[int, Key] | None) -> tuple[int, RoundKey] | None:
        """Number of features that each node of the next tree draws, and their stream."""
        return None if by_node is None else (by_node[0], self._key.set(by_node[1]))

    def draw(self, by_node: tuple[int, RoundKey] | None, most_nodes: int, of: int) -> Chosen | None:
        """Draw the features of nodes 0 .. most_nodes - 1 among ``of`` candidates."""
        if by_node is None:
            return None
        count, key = by_node
        words = -(-of // 32)
        bits = self._rounds.buffer(("chosen", most_nodes, words), lambda: self._room(most_nodes * words))
        self._kernel("draw_features")(
            (max(1, min(-(-most_nodes // THREADS), 8 * self._runtime.sm_count)),), (THREADS,),
            count=min(count, of), of=of, words=words, n_nodes=most_nodes, **key.arguments,
            nodes=(key / Stream.NODE).arguments["name"], numbered=key.names.iteration >= 0, chosen=bits,
        )  # fmt: skip
        return Chosen(bits, words)

    def _room(self, words: int) -> Array:
        return self._runtime.zeros(words, np.uint32)
