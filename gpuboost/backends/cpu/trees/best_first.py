"""Leaf-wise growth on the CPU: several leaves are split at once, some of them speculatively.

One split at a time leaves a second thread little to do, and costs as many calls as a whole level. Small trees of one
thread are grown in one call instead, by ``small_trees``. See ``gpuboost.kernels.growth.best_first``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.trees.nodes import NodeTable
from gpuboost.kernels.growth import best_first


def next_splits(tree: NodeTable, most: int, slots: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], int]:
    """The nodes to split now, in best-first order, and the number of splits before them that are certain.

    most: maximum number of splits of the finished tree. If no node is left to split, the certain splits are the tree.
    slots: the stack of free slots, which gets those of leaves that will never be split; None without histograms.
    """
    order, wanted = np.empty(tree.size, np.int64), np.empty(tree.size, np.int64)
    _, count, certain = best_first.foresee(tree.node, tree.size, tree.gain, most, order, wanted)
    if slots is not None:
        best_first.close_others(tree.node, tree.size, wanted[:count], slots)
    return wanted[: min(count, best_first.at_once(most, certain))], certain


def keep_first(tree: NodeTable, splits: int) -> None:
    """Reduce the tree to its first ``splits`` splits in best-first order, and number its nodes in that order."""
    order, wanted = np.empty(tree.size, np.int64), np.empty(tree.size, np.int64)
    best_first.foresee(tree.node, tree.size, tree.gain, splits, order, wanted)
    size = 2 * splits + 1
    new = np.empty((size, tree.node.shape[1]), np.int64), np.empty(size), np.empty((size, 8), np.uint32)
    best_first.renumber(tree.node[: tree.size], tree.gain, tree.left_set, order[:splits], *new)
    tree.node, tree.gain, tree.left_set = new
    tree.size = size
