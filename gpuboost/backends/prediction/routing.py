"""Routing of binned rows to the leaves of a tree."""

from __future__ import annotations

import numpy as np

from gpuboost.types import Array, Bins, Cuts, DenseBins, Nodes, SparseBins


def dense_rows(bins: Bins) -> Array:
    """(n, d) uint8 bins from dense or sparse bins."""
    if isinstance(bins, DenseBins):
        return bins.rows
    assert isinstance(bins, SparseBins)
    n = bins.shape[0]
    rows = np.tile(bins.default, (n, 1))
    of_entry = np.repeat(np.arange(n), np.diff(bins.row_start))
    rows[of_entry, bins.feature] = bins.row_bin
    return rows


def codes_of(bins: Bins, feature: int) -> Array:
    """(n,) uint8 bins of one feature, from dense or sparse bins."""
    if isinstance(bins, DenseBins):
        return np.asarray(bins.columns[feature])
    codes = np.full(bins.shape[0], bins.default[feature], np.uint8)
    entries = slice(int(bins.column_start[feature]), int(bins.column_start[feature + 1]))
    codes[bins.row[entries]] = bins.column_bin[entries]
    return codes


def route(nodes: Nodes, bins: Array, cuts: Cuts) -> Array:
    """(n,) int32: the leaf of every row. bins (n, d) uint8."""
    n_bins, categorical = cuts.n_bins, cuts.is_categorical
    node = np.zeros(len(bins), np.int32)
    every = np.arange(len(bins))
    while (nodes.feature[node] >= 0).any():
        feature = np.maximum(nodes.feature[node], 0)
        code = bins[every, feature].astype(np.int64)
        in_set = nodes.left_set[node, code >> 5] >> (code & 31).astype(np.uint32) & 1
        left = np.where(categorical[feature], in_set == 1, code <= nodes.bin[node])
        left = np.where(code == n_bins[feature], nodes.missing_left[node], left)
        child = np.where(left, nodes.left[node], nodes.right[node])
        node = np.where(nodes.feature[node] < 0, node, child).astype(np.int32)
    return node
