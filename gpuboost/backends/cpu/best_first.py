"""Leaf-wise growth on the CPU: several leaves are split at once, those that come next before their turn.

One split at a time leaves a second thread little to share, and costs as many calls as a whole level. See
``gpuboost.kernels.growth.best_first``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.nodes import NodeTable
from gpuboost.kernels.growth import best_first

SHARE = 8  # one in so many of the splits to come is made ahead of its turn,
FEW = 8  # but these may always be


def next_splits(tree: NodeTable, most: int) -> tuple[NDArray[np.int64], int]:
    """The nodes to split now, the one whose turn it is first, and how many splits before it are certain.

    most: splits that the finished tree can have. If none is left to split, the tree has as many as are certain.
    """
    order, wanted = np.empty(tree.size, np.int64), np.empty(tree.size, np.int64)
    _, count, certain = best_first.foresee(tree.node, tree.size, tree.gain, most, order, wanted)
    to_come = most - certain
    return wanted[: min(count, max(to_come // SHARE, min(most // SHARE, FEW), 1))], certain


def keep_first(tree: NodeTable, splits: int) -> None:
    """Leave the tree that it was after so many splits, all of them made, its nodes numbered in their order."""
    order, wanted = np.empty(tree.size, np.int64), np.empty(tree.size, np.int64)
    best_first.foresee(tree.node, tree.size, tree.gain, splits, order, wanted)
    size = 2 * splits + 1
    new = np.empty((size, tree.node.shape[1]), np.int64), np.empty(size), np.empty((size, 8), np.uint32)
    best_first.renumber(tree.node[: tree.size], tree.gain, tree.left_set, order[:splits], *new)
    tree.node, tree.gain, tree.left_set = new
    tree.size = size
