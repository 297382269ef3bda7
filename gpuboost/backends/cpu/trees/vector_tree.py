"""The growing tree for several outputs on the CPU: features and nodes are shared out to the threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.numerics.feature_subsets import features_of
from gpuboost.backends.numerics.one_tree import NOISE
from gpuboost.kernels.common.nodes import BEGIN, BIN, COLUMNS, DEPTH, END, FEATURE, LEFT, MISSING_LEFT, RIGHT
from gpuboost.kernels.one_tree import vector_split
from gpuboost.kernels.one_tree import vector_tree as kernels
from gpuboost.kernels.one_tree.vector_tree import ALL_BUT, VectorTreeArrays
from gpuboost.types import Array, Candidates, Limits, Nodes

FEW = 1 << 13  # additions to histograms, below which one thread does them
FIRST_ROOM = 127  # nodes that a table has room for at first


class VectorTreeOfHost:
    """Grows the tree that ``numerics/one_tree`` defines, level by level or leaf by leaf.

    bins: (m, d) uint8; kinds: (d,) bins, (d,) whether categorical; packed: (m, s and zeros) int64, g * 2**32 + h;
    units: (s, 2) float64.
    """

    def __init__(
        self, bins: Array, kinds: tuple[Array, Array], packed: Array, units: Array, candidates: Candidates,
        limits: Limits, pool: ThreadPool,
    ) -> None:  # fmt: skip
        self._bins, self._kinds, self._packed, self._units, self._pool = bins, kinds, packed, units, pool
        self._candidates, self._limits, m = candidates, limits, len(bins)
        self._size, rows = 1, np.arange(m, dtype=np.int32)
        self._node = np.zeros((FIRST_ROOM, COLUMNS + 1), np.int64)
        self._gain, self._sums = np.zeros(FIRST_ROOM), np.zeros((FIRST_ROOM, len(units), 2), np.int64)
        self._rows, self._scratch = rows, np.empty(m, np.int32)
        self._node[0, END], self._node[0, FEATURE] = m, -1
        vector_split.sums_of_rows(packed, rows, self._sums[0])

    def grow(self) -> None:
        """Grow the tree from its root."""
        new, at_once = 0, 1 if self._limits.growth == "leafwise" else self._limits.max_leaves
        while True:
            self._search(new)
            room = self._limits.max_leaves - (self._size + 1) // 2
            chosen = np.empty(self._size, np.int64)
            count = kernels.choose(self._arrays, self._size, min(at_once, room), chosen)
            if count == 0:
                return
            new = self._size
            self._divide(chosen[:count])

    def leaf_of_row(self) -> Array:
        """(m,) int32 the leaf of each row."""
        leaves = np.empty(len(self._rows), np.int32)
        kernels.leaves_of_rows(self._arrays, self._size, leaves)
        return leaves

    def as_arrays(self) -> Nodes:
        """The nodes; ``cover`` is the mean of H over the outputs."""
        node, cover = self._node[: self._size], np.empty(self._size)
        kernels.mean_h(self._sums, self._units, cover)
        made, feature = node[:, LEFT] > 0, node[:, FEATURE]
        categorical = made & self._kinds[1][feature]
        left_set = np.zeros((self._size, 8), np.uint32)
        for v in np.flatnonzero(categorical).tolist():
            all_but, b = node[v, ALL_BUT], int(self._kinds[0][feature[v]])
            for c in range(b) if all_but else node[v, BIN : BIN + 1].tolist():
                left_set[v, c // 32] |= np.uint32(1 << (c % 32))
        return Nodes(
            feature=np.where(made, feature, -1).astype(np.int32),
            bin=np.where(made & ~categorical, node[:, BIN], 0).astype(np.int32),
            missing_left=made & (node[:, MISSING_LEFT] > 0),
            left=node[:, LEFT].astype(np.int32),
            right=node[:, RIGHT].astype(np.int32),
            gain=np.where(made, self._gain[: self._size], 0.0),
            cover=cover,
            count=node[:, END] - node[:, BEGIN],
            left_set=left_set,
        )

    @property
    def _arrays(self) -> tuple[Array, ...]:
        return tuple(VectorTreeArrays(self._node, self._gain, self._sums, self._rows, self._scratch))

    def _search(self, first: int) -> None:
        """Find the best splits of the nodes from ``first`` on."""
        limits, searched = self._limits, np.empty(self._size - first, np.int64)
        least = float(limits.max_depth), limits.min_samples_leaf, limits.min_child_weight
        searched = searched[: kernels.nodes_to_search(self._arrays, self._units, first, self._size, *least, searched)]
        if not len(searched):
            return
        d, node = self._bins.shape[1], self._node[searched]
        places = node[:, BEGIN].copy(), node[:, END].copy()
        rows = self._bins, self._rows, *places, self._packed, self._sums[searched], self._units
        competes, found = self._competing(searched, node[:, DEPTH]), np.zeros((len(searched), d, 4))
        of_limits = limits_of(limits)

        def work(part: int, parts: int) -> None:
            vector_split.best_splits(rows, of_limits, competes, *self._kinds, *share(d, part, parts), found)

        self._shared_out(work, int((places[1] - places[0]).sum()) * d * len(self._units))
        kernels.keep_best(self._arrays, searched, found)

    def _divide(self, chosen: Array) -> None:
        """Split these nodes."""
        first, self._size = self._size, self._size + 2 * len(chosen)
        if self._size > len(self._node):
            more = max(self._size, 2 * len(self._node)) - len(self._node)
            self._node = np.concatenate([self._node, np.zeros((more, COLUMNS + 1), np.int64)])
            self._gain = np.concatenate([self._gain, np.zeros(more)])
            self._sums = np.concatenate([self._sums, np.zeros((more, *self._sums.shape[1:]), np.int64)])
        tree, n_rows = self._arrays, int((self._node[chosen, END] - self._node[chosen, BEGIN]).sum())

        def work(part: int, parts: int) -> None:
            some = share(len(chosen), part, parts)
            kernels.divide(tree, self._bins, self._packed, *self._kinds, chosen, *some, first)

        self._shared_out(work, n_rows * len(self._units))

    def _shared_out(self, work: Callable[[int, int], object], additions: int) -> None:
        """Do work(part, parts) by all threads, or by this one if there is little to add up."""
        if additions < FEW or self._pool.size == 1:
            work(0, 1)
        else:
            self._pool.run(lambda part: work(part, self._pool.size))

    def _competing(self, nodes: Array, depths: Array) -> Array:
        """(k, d) bool: the features that may split each node."""
        candidates, competes = self._candidates, np.zeros((len(nodes), self._bins.shape[1]), np.bool_)
        if candidates.by_node is None:
            competes[:, candidates.features] = True
            return competes
        for line, v, depth in zip(competes, nodes.tolist(), depths.tolist(), strict=True):
            line[candidates.features[features_of(candidates, v, depth)]] = True
        return competes


def limits_of(limits: Limits) -> tuple[float, ...]:
    """The kernels' ``VectorLimits``."""
    least = limits.min_child_weight, limits.min_samples_leaf, limits.min_split_gain, NOISE
    return float(limits.reg_lambda), *least
