"""A shard's rows in one tree for several outputs: they are summed and divided here, and searched by the driver."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.numerics.one_tree import RowsOfHost, VectorNode, VectorSplit
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.kernels.one_tree import vector_split
from gpuboost.types import Array, Bins, Cuts, DenseBins

CODES = 256  # bins of a feature and what is missing
NOTHING = np.empty(0, np.int64)


class TreeOfShard:
    """A shard's rows in the growing tree. Nodes have the driver's numbers."""

    def __init__(self, columns: Array, packed: Array, cuts: Cuts, pool: ThreadPool) -> None:
        """columns: (d, m) uint8; packed: (m, s) int64, g * 2**32 + h."""
        self._columns, self._packed, self._pool = columns, packed, pool
        kinds = cuts.n_bins, cuts.is_categorical
        self._rows = RowsOfHost(columns, *kinds, lambda _: [], self._sums)
        rows, count, self.sums = self._rows.every()
        self._nodes = [VectorNode(0, rows, count, 0, self.sums, NOTHING)]

    def histograms(self, nodes: Array, lines: Array) -> tuple[Array, Array]:
        """(l, CODES, s, 2) sums and (l, CODES) rows of each line: a position among these nodes, and a feature."""
        rows = [self._nodes[number].rows for number in nodes.tolist()]
        s = self._packed.shape[1]
        cells, counts = np.zeros((len(lines), CODES, s, 2), np.int64), np.zeros((len(lines), CODES), np.int64)
        ends = np.cumsum([0, *map(len, rows)])
        row_inputs = (
            self._columns.T, np.concatenate(rows), ends[:-1], ends[1:], self._packed, np.empty((0, s, 2), np.int64),
            np.empty((s, 2)),
        )  # fmt: skip
        self._pool.run(
            lambda part: vector_split.histograms(
                row_inputs, lines, *share(len(lines), part, self._pool.size), cells, counts
            )
        )
        return cells, counts

    def divide(self, numbers: Array, splits: tuple[tuple[int, float, int, bool, bool], ...]) -> tuple[Array, Array]:
        """Divide the rows of these nodes; (c,) rows that go left, and (c, s, 2) their sums. Children are the next."""
        nodes = [self._nodes[number] for number in numbers.tolist()]
        for node, split in zip(nodes, splits, strict=True):
            node.split = VectorSplit(*split)
        sides = self._rows.divide(nodes, len(self._nodes))
        for node, side in zip(nodes, sides, strict=True):
            for rows in (side.left, side.right):
                self._nodes.append(VectorNode(len(self._nodes), rows, len(rows), node.depth + 1, side.sums, NOTHING))
        return np.array([side.n_left for side in sides]), np.stack([side.sums for side in sides])

    def leaf_of_row(self) -> Array:
        """(m,) int32 the leaf of each of the target's rows."""
        return self._rows.leaf_of_row(self._nodes)

    def _sums(self, rows: Array) -> Array:
        out = np.zeros((self._packed.shape[1], 2), np.int64)
        vector_split.sums_of_rows(self._packed, rows, out)
        return out


def columns_of(bins: Bins) -> Array:
    """(d, n) uint8 bins, laid out in full."""
    return bins.columns if isinstance(bins, DenseBins) else np.ascontiguousarray(dense_rows(bins).T)
