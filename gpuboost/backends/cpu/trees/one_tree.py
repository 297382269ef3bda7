"""One tree for several outputs on the CPU: features are shared out to the threads."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.host.threads import RowShares, ThreadPool, share
from gpuboost.backends.host.workspace import Workspaces
from gpuboost.backends.numerics.one_tree import NOISE, RowsOfHost, VectorNode, VectorSplit, VectorTree, best_of
from gpuboost.backends.prediction.flat_forest import FlatForest
from gpuboost.backends.prediction.memo import Memo
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.kernels.splits import vector_split
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    DenseBins,
    Gradients,
    Limits,
    Nodes,
    Structure,
    Target,
    TrainingSet,
)

FEW = 1 << 13  # additions to histograms, below which one thread does them


class OneTreeGrowth:
    """Grows one tree for all outputs. The columns of sparse bins are laid out in full, once."""

    def __init__(self, pool: ThreadPool, workspaces: Workspaces) -> None:
        self._pool, self._workspaces, self._shares = pool, workspaces, RowShares(pool)
        self._columns = Memo(columns_of)

    def grow(
        self, data: TrainingSet, target: Target, searched: Gradients, candidates: Candidates, limits: Limits
    ) -> tuple[Structure, ...]:
        """See ``Trainer.grow_together``."""
        columns = self._columns.of(data.bins)
        columns = columns if target.rows is None else np.ascontiguousarray(columns[:, target.rows])
        packed, units = self._packed(searched)
        kinds = data.cuts.n_bins, data.cuts.is_categorical
        search = _Search(columns, *kinds, packed, units, limits, self._pool)
        rows = RowsOfHost(columns, *kinds, search, search.sums)
        tree = VectorTree(rows, *kinds, units, candidates, limits)
        tree.grow()
        leaf_of_row, nodes = rows.leaf_of_row(tree.nodes), tree.as_arrays()
        every = leaf_of_row if target.rows is None else self._routed(nodes, data)
        structures = []
        for output in range(len(target.gradients.g)):
            leaves = leaf_of_row, len(tree.nodes), self._pool, self._shares.in_parts
            sums = cpu_sums.leaf_sums(target.gradients, output, *leaves) if target.gives_leaf_sums else None
            structures.append(Structure(nodes, output, target.version, every, sums))
        return tuple(structures)

    def _packed(self, gradients: Gradients) -> tuple[Array, Array]:
        """(m, s) int64 packed integers of each row, and (s, 2) the values of their units."""
        s, m = gradients.g.shape
        packed, units = np.empty((m, s), np.int64), np.empty((s, 2))
        workspace = self._workspaces.take()
        of_output = workspace.array("packed", (m,), np.int64)
        for output in range(s):
            _, units[output] = cpu_sums.pack(gradients, output, self._pool, self._shares.in_parts, of_output)
            packed[:, output] = of_output
        self._workspaces.give_back(workspace)
        return packed, units

    def _routed(self, nodes: Nodes, data: TrainingSet) -> Array:
        """(n,) int32 the leaf of every row."""
        forest, leaves = FlatForest.of([nodes], data.cuts), np.empty(data.n_rows, np.int32)
        self._shares.by_rows(data.n_rows, lambda a, b: forest.route(data.bins, a, b, leaves))
        return leaves


class _Search:
    """The search of a tree's splits."""

    def __init__(
        self, columns: Array, n_bins: Array, categorical: Array, packed: Array, units: Array, limits: Limits,
        pool: ThreadPool,
    ) -> None:  # fmt: skip
        self._columns, self._kinds, self._packed, self._units, self._pool = (
            columns, (n_bins, categorical), packed, units, pool,
        )  # fmt: skip
        self._limits = limits_of(limits)

    def sums(self, rows: Array) -> Array:
        out = np.zeros(self._units.shape, np.int64)
        vector_split.sums_of_rows(self._packed, rows, out)
        return out

    def __call__(self, nodes: list[VectorNode]) -> list[VectorSplit | None]:
        d = len(self._columns)
        begins = np.cumsum([0, *(len(node.rows) for node in nodes)])
        totals = np.stack([node.sums for node in nodes])
        rows = self._columns, np.concatenate([node.rows for node in nodes]), begins, self._packed, totals, self._units
        competes, cuts = np.zeros((len(nodes), d), np.bool_), np.zeros((len(nodes), d, 4))
        for i, node in enumerate(nodes):
            competes[i, node.features] = True

        def work(part: int, parts: int) -> None:
            vector_split.best_splits(rows, self._limits, competes, *self._kinds, *share(d, part, parts), cuts)

        if begins[-1] * d * len(self._units) < FEW or self._pool.size == 1:
            work(0, 1)
        else:
            self._pool.run(lambda part: work(part, self._pool.size))
        return [best_of(of_node, np.arange(d)) for of_node in cuts]


def limits_of(limits: Limits) -> tuple[float, ...]:
    """The kernels' ``VectorLimits``."""
    least = limits.min_child_weight, limits.min_samples_leaf, limits.min_split_gain, NOISE
    return float(limits.reg_lambda), *least


def columns_of(bins: Bins) -> Array:
    """(d, n) uint8 bins, laid out in full."""
    return bins.columns if isinstance(bins, DenseBins) else np.ascontiguousarray(dense_rows(bins).T)
