"""Scores of few rows by NumPy alone, where the kernels are not loaded: same values, same order of additions.

To import numba takes longer than to predict some thousand rows this way, and to compile kernels longer still.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.records import dataclass
from gpuboost.types import Array, Cuts, Ensemble

Floats = NDArray[np.float64]

CELLS_AT_ONCE = 1 << 16  # rows times trees whose nodes are held in memory at once


@dataclass(frozen=True, slots=True)
class NumpyForest:
    """All nodes of all trees in one list of v nodes; u is the number of features that a split reads."""

    columns: NDArray[np.int32]  # (u,) column of X of each feature that is read
    categories: tuple[NDArray[np.int64] | None, ...]  # (u,) code of each bin; None if numeric
    root: NDArray[np.int64]  # (trees,) root of each tree
    slot: NDArray[np.int64]  # (v,) feature of a node, by its place in ``columns``; 0 at leaves
    threshold: Floats  # (v,) the largest value that goes left; of a set of categories NaN, of a leaf infinity
    set_of: NDArray[np.int64]  # (v,) line of ``goes_left``, 0 if the node has no set
    goes_left: NDArray[np.bool_]  # (sets + 1, 256) whether the bin of a category goes left
    missing_left: NDArray[np.bool_]  # (v,)
    child: NDArray[np.int64]  # (v, 2) left and right child; a leaf is its own
    depth: int  # steps from a root to the farthest leaf
    value: Floats  # (v,) factor * value of leaves
    output: NDArray[np.int32]  # (trees,)
    bias: Floats  # (k,)
    scale: float

    @classmethod
    def of(cls, ensemble: Ensemble) -> NumpyForest:
        trees, cuts = ensemble.trees, ensemble.cuts
        nodes = [tree.nodes for tree in trees]
        feature = _joined([n.feature for n in nodes], np.int32)
        root = np.cumsum([0] + [len(n.feature) for n in nodes])
        tree_of = np.repeat(root[:-1], np.diff(root))
        features, is_leaf = np.unique(feature[feature >= 0]), feature < 0
        node_index = np.arange(len(feature))
        left = np.where(is_leaf, node_index, tree_of + _joined([n.left for n in nodes], np.int32))
        right = np.where(is_leaf, node_index, tree_of + _joined([n.right for n in nodes], np.int32))
        child = np.stack([left, right], axis=1)
        pairs = zip(trees, ensemble.factors, strict=True)
        bins = _joined([n.bin for n in nodes], np.int32)
        is_set = ~is_leaf & cuts.is_categorical[feature]
        words = np.concatenate([np.zeros((1, 8), np.uint32), *(n.left_set for n in nodes)])
        return cls(
            columns=cuts.columns[features],
            categories=tuple(cuts.categories[f] for f in features),
            root=root[:-1],
            slot=np.where(is_leaf, 0, np.searchsorted(features, feature)),
            threshold=np.where(is_set, np.nan, _thresholds(feature, bins, cuts)),
            set_of=np.where(is_set, np.cumsum(is_set), 0),
            goes_left=_bits(words[np.concatenate([[True], is_set])]),
            missing_left=_joined([n.missing_left for n in nodes], np.bool_),
            child=child,
            depth=_depth(root[:-1], is_leaf, child),
            value=_joined([factor * tree.value for tree, factor in pairs], np.float64),
            output=np.array([tree.output for tree in trees], np.int32),
            bias=np.asarray(ensemble.bias, np.float64),
            scale=ensemble.scale,
        )

    def scores(self, x: Floats) -> Floats:
        """(k, n) float64 scores of the rows of x (n, columns of X), bit for bit those of the kernels."""
        out = np.repeat((self.bias if self.scale == 1.0 else np.zeros(len(self.bias)))[:, None], len(x), axis=1)
        step = max(1, CELLS_AT_ONCE // max(1, len(self.root)))
        for first in range(0, len(x) if len(self.root) else 0, step):
            rows = slice(first, first + step)
            values = self.value[self._leaves(x[rows])]
            for k in range(len(out)):
                terms = np.concatenate([out[k : k + 1, rows], values[self.output == k]])
                out[k, rows] = np.add.accumulate(terms, axis=0)[-1]  # one after the other, as ``sum`` does not
        return out if self.scale == 1.0 else self.bias[:, None] + self.scale * out

    def _leaves(self, x: Floats) -> NDArray[np.int64]:
        """(trees, n) the leaf of each row in each tree."""
        values = x[:, self.columns]  # a copy
        for slot, codes in enumerate(self.categories):
            if codes is not None:
                values[:, slot] = _bin_of(values[:, slot], codes)
        node = np.repeat(self.root[:, None], len(x), axis=1)
        if not len(self.columns):
            return node
        row, missing, sets = np.arange(len(x)), np.isnan(values).any(), len(self.goes_left) > 1
        for _ in range(self.depth):
            value = values[row, self.slot[node]]
            left = value <= self.threshold[node]
            if sets:
                bins = np.where(np.isnan(value) | (self.set_of[node] == 0), 0.0, value).astype(np.int64)
                left |= self.goes_left[self.set_of[node], bins]
            if missing:
                left = np.where(np.isnan(value), self.missing_left[node], left)
            node = np.where(left, self.child[node, 0], self.child[node, 1])
        return node


def _joined(parts: list[Array], dtype: type[np.generic]) -> Array:
    return np.concatenate([np.empty(0, dtype), *parts])


def _thresholds(feature: NDArray[np.int32], bins: NDArray[np.int32], cuts: Cuts) -> Floats:
    """(v,) the upper end of each node's bin; infinity at leaves and for the last bin."""
    out = np.full(len(feature), np.inf)
    for f in np.unique(feature[feature >= 0]):
        here = feature == f
        out[here] = np.append(cuts.thresholds[f], np.full(256 - len(cuts.thresholds[f]), np.inf))[bins[here]]
    return out


def _bits(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """(q, 256) the bits of (q, 8) words, the lowest first."""
    return np.unpackbits(words.astype("<u4").view(np.uint8), axis=1, bitorder="little").astype(np.bool_)


def _bin_of(values: Floats, codes: NDArray[np.int64]) -> Floats:
    """The bin of each category code; NaN if it is missing or not listed."""
    order = np.argsort(codes, kind="stable")
    listed = codes[order].astype(np.float64)
    place = np.minimum(np.searchsorted(listed, values), max(len(listed) - 1, 0))
    if not len(listed):
        return np.full(len(values), np.nan)
    return np.where(listed[place] == values, order[place], np.nan)


def _depth(level: NDArray[np.int64], is_leaf: NDArray[np.bool_], child: NDArray[np.int64]) -> int:
    """Steps from the roots, ``level``, to the farthest leaf."""
    depth = 0
    while len(level := level[~is_leaf[level]]):
        level, depth = child[level].ravel(), depth + 1
    return depth
