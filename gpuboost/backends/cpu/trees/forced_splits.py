"""Forced splits on the CPU: the nodes of a level that get theirs, in place of the split that gains most."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.trees.histograms import Histograms
from gpuboost.backends.cpu.trees.nodes import NodeTable
from gpuboost.backends.cpu.trees.split_search import Search
from gpuboost.backends.numerics.forced_splits import ForcedCut
from gpuboost.kernels.common import nodes as table


def force(
    plan: ForcedCut,
    tree: NodeTable,
    histograms: Histograms,
    search: Search,
    most_leaves: int,
    split: Callable[[NDArray[np.int64]], None],
) -> None:
    """Make the forced splits of a tree whose root is searched. split: divides nodes, and searches their children."""
    level = [(0, plan)]
    while level:
        room = most_leaves - (tree.size + 1) // 2
        level = [(v, cut) for v, cut in level if search.force(tree, histograms, v, cut)][:room]
        if level:
            split(np.array([v for v, _ in level], np.int64))
        children = [tree.node[v, [table.LEFT, table.RIGHT]].tolist() for v, _ in level]
        level = [
            (child, below)
            for pair, (_, cut) in zip(children, level, strict=True)
            for child, below in zip(pair, cut.below, strict=True)
            if below is not None
        ]
