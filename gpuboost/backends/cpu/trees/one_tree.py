"""One tree for several outputs on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.trees.vector_tree import VectorTreeOfHost
from gpuboost.backends.host.threads import RowShares, ThreadPool
from gpuboost.backends.host.workspace import Workspaces
from gpuboost.backends.prediction.memo import Memo
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.kernels.one_tree.vector_split import LANES
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    Gradients,
    Limits,
    Nodes,
    Structure,
    Target,
    TrainingSet,
)


class OneTreeGrowth:
    """Grows one tree for all outputs. Sparse bins are laid out in full, once.

    route: (nodes, bins, cuts) -> (n,) int32 the leaf of each row.
    """

    def __init__(self, pool: ThreadPool, workspaces: Workspaces, route: Callable[[Nodes, Bins, Cuts], Array]) -> None:
        self._pool, self._workspaces, self._shares, self._route = pool, workspaces, RowShares(pool), route
        self._rows = Memo(dense_rows)

    def grow(
        self, data: TrainingSet, target: Target, searched: Gradients, candidates: Candidates, limits: Limits
    ) -> tuple[Structure, ...]:
        """See ``Trainer.grow_together``."""
        bins = self._rows.of(data.bins)
        bins = bins if target.rows is None else bins[target.rows]
        packed, units = self._packed(searched)
        kinds = data.cuts.n_bins, data.cuts.is_categorical
        tree = VectorTreeOfHost(bins, kinds, packed, units, candidates, limits, self._pool)
        tree.grow()
        leaf_of_row, nodes = tree.leaf_of_row(), tree.as_arrays()
        every = leaf_of_row if target.rows is None else self._route(nodes, data.bins, data.cuts)
        structures = []
        for output in range(len(target.gradients.g)):
            leaves = leaf_of_row, len(nodes.feature), self._pool, self._shares.in_parts
            sums = cpu_sums.leaf_sums(target.gradients, output, *leaves) if target.gives_leaf_sums else None
            structures.append(Structure(nodes, output, target.version, every, sums))
        return tuple(structures)

    def _packed(self, gradients: Gradients) -> tuple[Array, Array]:
        """(m, .) int64: each row's packed integers, 1 and zeros (``vector_split.best_splits``); (s, 2) their units."""
        s, m = gradients.g.shape
        packed, units = np.zeros((m, (s // LANES + 1) * LANES), np.int64), np.empty((s, 2))
        packed[:, s] = 1
        workspace = self._workspaces.take()
        of_output = workspace.array("packed", (m,), np.int64)
        for output in range(s):
            _, units[output] = cpu_sums.pack(gradients, output, self._pool, self._shares.in_parts, of_output)
            packed[:, output] = of_output
        self._workspaces.give_back(workspace)
        return packed, units
