"""The node table of a growing tree, as kernels read it, and its conversion to ``Nodes``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.trees.layout import Layout
from gpuboost.kernels.common.nodes import CLOSED, COLUMNS, END, FEATURE, NEW, STATE, SUM_G, SUM_H
from gpuboost.kernels.common.records import ColumnArrays, NodeArrays
from gpuboost.kernels.growth.finished import finish, take_apart
from gpuboost.types import Limits, Nodes

ROOT_PAIR = np.array([[0, -1, 0]])
"""The new pairs of a root; not written to, but numba would compile once more for an array that cannot be"""


class NodeTable:
    """node (v, nodes.COLUMNS) int64, gain (v,) float64 and left_set (v, 8) uint32; the first ``size`` lines are in use.

    ``chosen`` (v,) int64 is scratch memory for a list of nodes.
    """

    def __init__(self, limits: Limits, n_rows: int) -> None:
        self._most = 2 * min(limits.max_leaves, 2 ** min(limits.max_depth, 62), max(n_rows, 1)) - 1
        self._make_room()

    def _make_room(self) -> None:
        self.node = np.zeros((self._most, COLUMNS), np.int64)
        self.gain = np.zeros(self._most)
        self.left_set = np.zeros((self._most, 8), np.uint32)
        self.chosen = np.empty(self._most, np.int64)
        self.size = 1

    def clear(self) -> None:
        """Forget the tree, so that another one can grow here."""
        if len(self.node) < self._most:  # a tree of its size took the place of the table
            self._make_room()
            return
        for array in (self.node, self.gain, self.left_set):
            array[: self.size] = 0
        self.size = 1

    @property
    def arrays(self) -> NodeArrays:
        """The table as the kernels read it."""
        return NodeArrays(self.node, self.gain, self.left_set, self.chosen)

    def init_root(self, n_rows: int, totals: tuple[int, int], *, can_split: bool) -> NDArray[np.int64]:
        """Add the root; return the new pairs: see ``split.search``."""
        root = self.node[0]
        root[END], root[FEATURE] = n_rows, -1
        root[SUM_G], root[SUM_H] = totals
        root[STATE] = NEW if can_split else CLOSED
        return ROOT_PAIR if can_split else ROOT_PAIR[:0]

    def lengthen(self, wanted: int) -> None:
        """Make room for ``wanted`` nodes: empty leaves and speculative splits may exceed the initial size."""
        more = max(wanted - len(self.node), 0)
        if more:
            more = max(more, len(self.node))
            self.node = np.concatenate([self.node, np.zeros((more, COLUMNS), np.int64)])
            self.gain = np.concatenate([self.gain, np.zeros(more)])
            self.left_set = np.concatenate([self.left_set, np.zeros((more, 8), np.uint32)])
            self.chosen = np.empty(len(self.node), np.int64)

    def sums(self, units: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(v,) G and H of every node. units (2,): value of one unit of each."""
        node = self.node[: self.size]
        return node[:, SUM_G] * units[0], node[:, SUM_H] * units[1]

    def finished(self, units: NDArray[np.float64], layout: Layout) -> Nodes:
        """The tree, once its rows are settled. A split that was found but not made is left out."""
        v, arrays = self.size, _empty(self.size)
        kinds = layout.n_bins_of_all, layout.kinds_of_all
        take_apart(self.node[:v], self.gain[:v], self.left_set[:v], *kinds, units[1], *arrays)
        return Nodes(*arrays)

    def finish(
        self, columns: ColumnArrays, rows: NDArray[np.int32], units: NDArray[np.float64], max_depth: int,
        leaf_of_row: NDArray[np.int32],
    ) -> tuple[Nodes, tuple[NDArray[np.float64], NDArray[np.float64]]]:  # fmt: skip
        """Settle the rows on one thread; return the tree, and G and H of every node. See ``finished.finish``."""
        v, arrays = self.size, _empty(self.size)
        sums = np.empty(v), np.empty(v)
        table_arrays = self.node, self.gain, self.left_set, self.chosen
        finish(tuple(columns), rows, table_arrays, v, max_depth, units, leaf_of_row, arrays, sums)
        return Nodes(*arrays), sums


def least_rows(limits: Limits) -> int:
    """Number of rows that a node needs to be split; 0 for a split shared by a level, unless min_samples_leaf > 1."""
    return 0 if limits.symmetric and limits.min_samples_leaf == 1 else 2 * limits.min_samples_leaf


def _empty(v: int) -> tuple[NDArray[Any], ...]:
    """The arrays of ``Nodes``, v nodes, all zeros."""
    zeros = np.zeros
    return (
        zeros(v, np.int32), zeros(v, np.int32), zeros(v, np.bool_), zeros(v, np.int32), zeros(v, np.int32), zeros(v),
        zeros(v), zeros(v, np.int64), zeros((v, 8), np.uint32),
    )  # fmt: skip
