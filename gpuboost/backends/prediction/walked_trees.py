"""Trees as ``few_rows`` walks them: a word for each node, siblings side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.prediction.flat_forest import FlatForest
from gpuboost.kernels.prediction.few_rows import LAST_BIT, SHIFT_BIT, SLOT_BIT, WalkedTrees
from gpuboost.kernels.prediction.predict import CHILD, EIGHT, LEAD_LEFT, RULE, SLOT
from gpuboost.types import Array

MOST_SLOTS = 1 << 16  # of a step


def walked_trees(forest: FlatForest, leaf_values: Array, output: NDArray[np.int32]) -> WalkedTrees:
    """The trees of a forest with their values.

    leaf_values: (leaves,) float64, tree after tree; output: (trees,) of each tree.
    """
    roots, is_leaf = forest.starts[3][:-1], forest.leaf_of >= 0
    value = np.zeros(len(is_leaf))
    value[is_leaf] = leaf_values
    padded = np.zeros(-(-len(roots) // EIGHT) * EIGHT, np.int64)
    padded[: len(roots)] = roots
    if len(forest.sets) or len(forest.features) > MOST_SLOTS:
        no_steps = np.empty(0, np.int64)
        return WalkedTrees(no_steps, no_steps, padded, value, output, forest.nodes, forest.sets)
    first = np.repeat(roots, np.diff(forest.starts[3]))
    ways = forest.nodes[:, CHILD : CHILD + 2] + first[:, None]
    order, place = _siblings_together(ways, is_leaf)
    left = place[ways[:, 0]]
    words = forest.nodes[:, SLOT].astype(np.int64) << SLOT_BIT
    rule = np.where(is_leaf, LEAD_LEFT, forest.nodes[:, RULE]).astype(np.int64)
    words |= (rule >> 8) << LAST_BIT | (rule & 255) << SHIFT_BIT | left
    depths = _depths(ways, is_leaf, padded).reshape(-1, EIGHT).max(axis=1, initial=0)
    return WalkedTrees(words[order], depths, place[padded], value[order], output, forest.nodes, forest.sets)


def _siblings_together(ways: Array, is_leaf: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes in an order in which right children follow left ones, and the place of each node in it."""
    v = len(is_leaf)
    every, inner = np.arange(v), np.flatnonzero(~is_leaf)
    if (ways[inner, 1] == ways[inner, 0] + 1).all():
        return every, every
    left_sibling = every.copy()
    left_sibling[ways[inner, 1]] = ways[inner, 0]
    order = np.lexsort((every != left_sibling, left_sibling))
    place = np.empty(v, np.int64)
    place[order] = every
    return order, place


def _depths(ways: Array, is_leaf: Array, roots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Steps from each root to its deepest leaf."""
    depths, tree, level = np.zeros(len(roots), np.int64), np.arange(len(roots)), 0
    node = roots if len(is_leaf) else roots[:0]
    while len(inner := np.flatnonzero(~is_leaf[node])):
        level += 1
        depths[tree[inner]] = level
        node, tree = ways[node[inner]].ravel(), np.repeat(tree[inner], 2)
    return depths
