"""Flattened trees without values, shared by the routing of binned rows and the prediction of raw ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.kernels.common import fixed_point
from gpuboost.kernels.leaves import route
from gpuboost.kernels.prediction import predict as kernels
from gpuboost.kernels.prediction.flatten import STEP_COLUMNS, flatten
from gpuboost.records import dataclass
from gpuboost.types import Array, Bins, Cuts, DenseBins, Nodes

WIDTH = 2048
_CONSTANTS = np.repeat(np.arange(256, dtype=np.uint8), 64)
_CODES = 1 << 19  # bytes of codes in flight: they should stay in the second-level cache

Pairs: TypeAlias = tuple[Array, Array, Array, float, float]
"""g and h (n,) float32, multiplicity (n,) int32 or (0,), and the scales that turn both into integers"""

NO_PAIRS: Pairs = np.empty(0, np.float32), np.empty(0, np.float32), np.empty(0, np.int32), 1.0, 1.0
NO_SUMS = np.empty((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class FlatForest:
    """Trees without values, flattened (``gpuboost.kernels.prediction.flatten``); s is the number of features used."""

    features: NDArray[np.int32]  # (s,) increasing
    missing: NDArray[np.uint8]  # (s,) code of a missing value
    starts: NDArray[np.int64]  # (4, trees + 1) first operation, set, leaf and node of each tree
    ops: NDArray[np.int32]  # (., 14) three questions of (row, shift, last), four answers, a slot
    sets: NDArray[np.uint64]  # (., 4) 256 bits: which codes go left
    set_slot: NDArray[np.int32]  # (., 2) slot of the codes, and the highest of them
    nodes: NDArray[np.int32]  # (v, 4) to walk: slot, rule, left, right
    leaf_of: NDArray[np.int32]  # (v,) number of a leaf within its tree, -1 at inner nodes
    leaf_node: NDArray[np.int32]  # node id of each leaf
    slots: int
    most_sets: int

    @classmethod
    def of(cls, trees: Sequence[Nodes], cuts: Cuts) -> FlatForest:
        def all_of(name: str) -> Array:
            return np.concatenate([getattr(_NO_NODES, name)] + [getattr(nodes, name) for nodes in trees])

        feature, missing_left = all_of("feature"), all_of("missing_left")
        node_start = np.cumsum([0] + [len(nodes.feature) for nodes in trees])
        local = np.arange(len(feature)) - np.repeat(node_start[:-1], np.diff(node_start))
        features = np.unique(feature[feature >= 0]).astype(np.int32)
        b, categorical = _bins_of(features, cuts)
        slot = np.where(feature < 0, 0, np.searchsorted(features, feature)).astype(np.int32)

        is_leaf, is_set = feature < 0, (feature >= 0) & np.append(categorical, False)[slot]
        leaf_start, leaf_of = _numbered(is_leaf, node_start)
        set_start, set_of = _numbered(is_set, node_start)
        missing = np.append(b, 0)[slot]
        shift = np.where(missing_left & ~is_set, 256 - missing, 0)
        last = np.where(is_set | is_leaf, 0, all_of("bin") + shift)
        question = np.stack([np.where(is_set, -1 - set_of, slot), shift, last], axis=1).astype(np.int32)
        rule = np.where(is_set, -np.cumsum(is_set), np.where(is_leaf, kernels.LEAD_LEFT, shift + 256 * last))
        child = np.stack([all_of("left"), all_of("right")], axis=1)
        ways = np.where(is_leaf[:, None], local[:, None], child)

        step_start = np.zeros(len(node_start), np.int64)
        steps = np.empty((int((~is_leaf).sum()), STEP_COLUMNS), np.int32)
        largest = int(np.diff(node_start).max(initial=0))
        slots = int(flatten(node_start, largest, child, leaf_of, step_start, steps))
        steps = steps[: step_start[-1]]
        return cls(
            features=features,
            missing=b.astype(np.uint8),
            starts=np.stack([step_start, set_start, leaf_start, node_start]),
            ops=np.concatenate([question[steps[:, :3]].reshape(len(steps), 9), steps[:, 3:]], axis=1),
            sets=_words(all_of("left_set")[is_set], missing[is_set], missing_left[is_set]),
            set_slot=np.stack([slot[is_set], missing[is_set]], axis=1),
            nodes=np.concatenate([slot[:, None], rule[:, None], ways], axis=1).astype(np.int32),
            leaf_of=leaf_of,
            leaf_node=local[is_leaf].astype(np.int32),
            slots=slots,
            most_sets=int(np.diff(set_start).max(initial=0)),
        )

    @property
    def n_trees(self) -> int:
        return len(self.starts[0]) - 1

    def room(self, n: int) -> Array:
        """(blocks, s, width) uint8 for the codes of at most n rows, fewer if they would leave the cache.

        It has at least one line, which trees without a split read without effect.
        """
        s = max(len(self.features), 1)
        width = min(WIDTH, max(1, -(-n // 64)) * 64)
        blocks = max(1, min(-(-n // width), _CODES // (width * s)))
        return np.empty((blocks, s, width), np.uint8)

    def _arguments(self, codes: Array) -> tuple[kernels.FlatTrees, kernels.TreeScratch]:
        """Arguments of the kernels: the trees, and scratch memory."""
        width = codes.shape[2]
        results = np.empty(len(_CONSTANTS) + self.slots * width, np.uint8)
        results[: len(_CONSTANTS)] = _CONSTANTS
        looked_up, leaf = np.empty((self.most_sets, width), np.uint8), np.empty(width, np.int32)
        scratch = kernels.TreeScratch(results, looked_up, leaf, np.empty(8, np.uint64))
        trees = kernels.FlatTrees(
            self.starts, self.ops, self.sets, self.set_slot, self.nodes, self.leaf_of, self.leaf_node
        )
        return trees, scratch

    def find_leaves(self, codes: Array, n: int, out: Array, first_row: int) -> None:
        """out[first_row : first_row + n] (rows, trees) = leaf ids for n coded rows."""
        kernels.find_leaves(codes, n, 0, self.n_trees, *self._arguments(codes), out, first_row)

    def add(
        self, codes: Array, n: int, trees: range, values: Array, output: Array, scores: Array, first_row: int
    ) -> None:
        """scores[output, first_row : first_row + n] += values, tree after tree, for n coded rows."""
        kernels.add_trees(codes, n, trees.start, trees.stop, *self._arguments(codes), values, output, scores, first_row)

    def route(self, bins: Bins, start: int, stop: int, out: Array) -> None:
        """out[start:stop] = leaf of each row in the one tree. out: (n,) int32."""
        self.route_and_sum(bins, out, NO_PAIRS, start, stop, NO_SUMS)

    def route_and_sum(self, bins: Bins, out: Array, pairs: Pairs, start: int, stop: int, sums: Array) -> None:
        """``route``, and sums[node] += the integers of each row in it. sums: (v, 2) int64; (0, 2) for no sums."""
        if isinstance(bins, DenseBins):
            codes = self.room(min(stop - start, WIDTH))
            trees, scratch = self._arguments(codes)
            route.route(bins.columns, self.features, codes, trees, scratch, start, stop, out, *pairs, sums)
            return
        codes, in_lines = self.room(stop - start), out.reshape(-1, 1)
        step, tree = codes.shape[0] * codes.shape[2], self._arguments(codes)
        for first in range(start, stop, step):
            n = min(step, stop - first)
            entries = bins.default, bins.column_start, bins.row, bins.column_bin
            kernels.take_sparse_columns(*entries, first, n, self.features, codes)
            kernels.find_leaves(codes, n, 0, 1, *tree, in_lines, first)
            if len(sums):
                fixed_point.leaf_sums(*pairs, out, first, first + n, sums)  # while their leaves are in the cache


def _bins_of(features: Array, cuts: Cuts) -> tuple[Array, Array]:
    """Number of value bins of each feature, and whether it is categorical."""
    listed = [cuts.categories[f] for f in features]
    counts = [len(cuts.thresholds[f]) + 1 if c is None else len(c) for f, c in zip(features, listed, strict=True)]
    return np.array(counts, dtype=np.int32), np.array([c is not None for c in listed], dtype=np.bool_)


def _numbered(chosen: Array, node_start: Array) -> tuple[Array, Array]:
    """Start of each tree among all chosen nodes, and each node's number within its tree, -1 if not chosen."""
    before = np.concatenate([[0], np.cumsum(chosen)])
    start = before[node_start]
    number = before[:-1] - np.repeat(start[:-1], np.diff(node_start))
    return start, np.where(chosen, number, -1).astype(np.int32)


def _words(left_set: Array, missing: Array, missing_left: Array) -> Array:
    """(q, 4) uint64: the codes that go left, including the code of missing values."""
    halves = left_set.astype(np.uint64).reshape(-1, 4, 2)
    words = halves[:, :, 0] | (halves[:, :, 1] << np.uint64(32))
    index = np.arange(len(words)), missing >> 6
    bit = np.uint64(1) << (missing & 63).astype(np.uint64)
    words[index] = np.where(missing_left, words[index] | bit, words[index] & ~bit)
    return words


_NO_NODES = Nodes(
    feature=np.empty(0, np.int32),
    bin=np.empty(0, np.int32),
    missing_left=np.empty(0, np.bool_),
    left=np.empty(0, np.int32),
    right=np.empty(0, np.int32),
    gain=np.empty(0, np.float64),
    cover=np.empty(0, np.float64),
    count=np.empty(0, np.int64),
    left_set=np.empty((0, 8), np.uint32),
)
