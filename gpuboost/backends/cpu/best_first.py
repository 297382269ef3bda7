"""Leaf-wise growth on the CPU: several leaves are split at once, those that come next before their turn.

One split at a time leaves a second thread little to share, and costs as many calls as a whole level. See
``gpuboost.kernels.growth.best_first``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.kernels.growth import best_first
from gpuboost.types import Array

SHARE = 8  # one in so many of the splits to come is made ahead of its turn,
FEW = 8  # but these may always be


class Ahead:
    """The order of a leaf-wise tree's splits, as far as it is known."""

    def __init__(self, most: int) -> None:
        """``most``: splits that the finished tree can have."""
        self._most, self._certain = most, 0

    def knows(self, made: int) -> bool:
        """Whether split number ``made`` has been made already."""
        return made < self._certain

    def wanted(self, node: NDArray[np.int64], n_nodes: int, gain: Array) -> NDArray[np.int64]:
        """The nodes to split now, the one whose turn it is first; none if nothing is left to split."""
        order, wanted = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
        _, count, self._certain = best_first.foresee(node, n_nodes, gain, self._most, order, wanted)
        to_come = self._most - self._certain
        return wanted[: min(count, max(to_come // SHARE, min(self._most // SHARE, FEW), 1))]

    @staticmethod
    def in_order(
        node: NDArray[np.int64], n_nodes: int, gain: Array, left_set: Array, splits: int
    ) -> tuple[NDArray[np.int64], Array, Array]:
        """The tables of the tree after so many splits, all of them made: node, gain, left_set."""
        order, wanted = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
        best_first.foresee(node, n_nodes, gain, splits, order, wanted)
        size = 2 * splits + 1
        new = np.empty((size, node.shape[1]), np.int64), np.empty(size), np.empty((size, 8), np.uint32)
        best_first.renumber(node[:n_nodes], gain, left_set, order[:splits], *new)
        return new
