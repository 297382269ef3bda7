"""Candidate features of a tree, and those of all the nodes or levels that it may have, each drawn in one launch.

A draw depends on the number of the node, or on the depth, and not on the data, so it is known before the tree is grown.
Draws by weights take logarithms: they are made on the host, and uploaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.inputs import KeyInput, RoundKey
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.trees.arena import OF_LEVELS, OF_NODES, OF_TREE, Arena
from gpuboost.backends.cuda.trees.plan import ArenaPlan
from gpuboost.backends.numerics.feature_subsets import features_of
from gpuboost.keys import Stream
from gpuboost.types import Array, Candidates

THREADS, TREE_THREADS = 64, 256  # as in the kernels
_DRAW = ("common/common.cuh", "common/philox.cuh", "sampling/subset.cuh")
_SUBSETS = (*_DRAW, "sampling/feature_subsets.cu")
_OF_TREE = ("common/common.cuh", "common/blocks.cuh", *_DRAW[1:], "sampling/tree_features.cu")


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A bit for each candidate feature that competes in a node. ``words`` for each node or level; 0: all do."""

    bits: Array  # (nodes * words,) uint32
    words: int


Draw: TypeAlias = tuple[int, RoundKey, int]
"""Number of features, their stream, and what of the next tree draws them: of ``Draws``."""

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
    """Draws for trees with ``Candidates.by_tree`` or ``Candidates.by_node``."""

    def __init__(self, runtime: Runtime, rounds: RecordedRound) -> None:
        self._runtime, self._rounds = runtime, rounds
        self._kernel, self._of_tree = Kernels(runtime, *_SUBSETS), Kernels(runtime, *_OF_TREE)
        self._key = KeyInput(rounds)

    def drawn(self, candidates: Candidates) -> Draw | None:
        """The draw of the next tree or of its nodes; None if kernels draw nothing."""
        if candidates.by_tree is not None:
            count, key = candidates.by_tree
            return count, self._key.set(key), OF_TREE
        if candidates.by_node is None or candidates.weights is not None:
            return None
        count, key = candidates.by_node
        return count, self._key.set(key), OF_LEVELS if candidates.by_level else OF_NODES

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

    def draw(self, draw: Draw | None, arena: Arena, of: int) -> Chosen | None:
        """Draw the candidates of the arena's next tree, or the features of each possible node, or of each level.

        Nodes and levels draw among ``of`` candidates.
        """
        if draw is None:
            return None
        count, key, what = draw
        if what == OF_TREE:
            self._draw_candidates(count, key, arena)
            return None
        plan = arena.plan
        most_nodes, below = (plan.most_levels, Stream.LEVEL) if what == OF_LEVELS else (plan.most_nodes, Stream.NODE)
        words = -(-of // 32)
        bits = self._rounds.buffer(("chosen", most_nodes, words), lambda: self._room(most_nodes * words))
        self._kernel("draw_features")(
            (block_count(self._runtime, most_nodes, THREADS),), (THREADS,),
            count=min(count, of), of=of, words=words, n_nodes=most_nodes, **key.arguments,
            nodes=(key / below).arguments["name"], numbered=key.names.iteration >= 0, chosen=bits,
        )  # fmt: skip
        return Chosen(bits, words)

    def _draw_candidates(self, count: int, key: RoundKey, arena: Arena) -> None:
        d, width = arena.plan.d, arena.plan.width
        self._of_tree("draw_tree_features")(
            (1,), (TREE_THREADS,),
            count=count, d=d, width=width, **key.arguments, **arena.laid_out, shared_mem=4 * -(-d // 32),
        )  # fmt: skip

    def _room(self, words: int) -> Array:
        return self._runtime.zeros(words, np.uint32)
