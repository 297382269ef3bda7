"""Candidate features per node or level, drawn on the device for all that a tree may have in one launch.

A draw depends on the number of the node, or on the depth, and not on the data, so it is known before the tree is grown.
Draws by weights take logarithms: they are made on the host, and uploaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gpuboost.backends.cuda.device.inputs import KeyInput, RoundKey
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.trees.plan import ArenaPlan
from gpuboost.backends.numerics.feature_subsets import features_of
from gpuboost.keys import Stream
from gpuboost.types import Array, Candidates

THREADS = 64  # as in the kernel
OF_TREE, OF_NODES, OF_LEVELS = 0, 1, 2  # ``Draws`` in ``tree.cuh``
_SUBSETS = ("common/common.cuh", "common/philox.cuh", "sampling/feature_subsets.cu")


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A bit for each candidate feature that competes in a node. ``words`` for each node or level; 0: all do."""

    bits: Array  # (nodes * words,) uint32
    words: int


Draw: TypeAlias = tuple[int, RoundKey, bool]
"""Number of features that each node of the next tree draws, their stream, and True if a level draws the same."""

UPLOADS = 16  # sets of draws that may be on their way


class WeightedDraws:
    """The draws by weights of the nodes or levels of one tree after the other, in the same memory of the device."""

    def __init__(self, runtime: Runtime, sets: int, of: int) -> None:
        """sets: number of nodes or levels of a tree; of: number of candidates."""
        self._runtime, self._sets, self._words, self._uploads = runtime, sets, -(-of // 32), 0
        self._on_host = [runtime.pinned(sets * self._words, np.uint32) for _ in range(UPLOADS)]
        self.chosen = Chosen(runtime.zeros(sets * self._words, np.uint32), self._words)

    def upload(self, candidates: Candidates) -> None:
        """Queue the upload of the next tree's draws. Not for use in a capture."""
        if self._uploads and self._uploads % UPLOADS == 0:
            self._runtime.wait()  # the memory about to be written may still be read
        host = self._on_host[self._uploads % UPLOADS]
        self._uploads += 1
        host[:] = 0
        for i in range(self._sets):
            v, depth = (i, i) if candidates.by_level else (i, min(i, 1))  # a node's depth only tells the root
            drawn = features_of(candidates, v, depth)
            np.bitwise_or.at(host, i * self._words + drawn // 32, np.uint32(1) << (drawn % 32).astype(np.uint32))
        self._runtime.write(self.chosen.bits, host)


class Subsets:
    """Draws for trees with ``Candidates.by_node``."""

    def __init__(self, runtime: Runtime, rounds: RecordedRound) -> None:
        self._runtime, self._rounds = runtime, rounds
        self._kernel, self._key = Kernels(runtime, *_SUBSETS), KeyInput(rounds)

    def drawn(self, candidates: Candidates) -> Draw | None:
        """The draw of the next tree's nodes; None if they draw nothing."""
        if candidates.by_node is None or candidates.weights is not None:
            return None
        count, key = candidates.by_node
        return count, self._key.set(key), candidates.by_level

    def uploaded(self, candidates: Candidates, plan: ArenaPlan, tree: int) -> Chosen | None:
        """The draws of the next tree's nodes by weights, uploaded; None if there are none. tree: number in the round.

        Not for use in a recorded verb: the draws differ from round to round.
        """
        if candidates.by_node is None or candidates.weights is None:
            return None
        sets, of = plan.most_levels if candidates.by_level else plan.most_nodes, len(candidates.features)
        draws = self._rounds.buffer(("weighted", sets, of, tree), lambda: WeightedDraws(self._runtime, sets, of))
        draws.upload(candidates)
        return draws.chosen

    def draw(self, draw: Draw | None, most_nodes: int, most_levels: int, of: int) -> Chosen | None:
        """Draw the features of each possible node, or of each level, among ``of`` candidates."""
        if draw is None:
            return None
        count, key, by_level = draw
        most_nodes, below = (most_levels, Stream.LEVEL) if by_level else (most_nodes, Stream.NODE)
        words = -(-of // 32)
        bits = self._rounds.buffer(("chosen", most_nodes, words), lambda: self._room(most_nodes * words))
        self._kernel("draw_features")(
            (max(1, min(-(-most_nodes // THREADS), 8 * self._runtime.sm_count)),), (THREADS,),
            count=min(count, of), of=of, words=words, n_nodes=most_nodes, **key.arguments,
            nodes=(key / below).arguments["name"], numbered=key.names.iteration >= 0, chosen=bits,
        )  # fmt: skip
        return Chosen(bits, words)

    def _room(self, words: int) -> Array:
        return self._runtime.zeros(words, np.uint32)
