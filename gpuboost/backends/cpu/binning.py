"""Binning on the CPU: dense bins in rows and in columns, or sparse bins where that is the shorter list."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.backends.host.sparse_rows import feature_rows
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.kernels.binning import binning, binning_sparse
from gpuboost.types import Bins, Cuts, DenseBins, SparseBins

DENSE_ABOVE = 4  # sparse bins cost about four times a dense one, entry by entry


def of_dense(x: Any, cuts: Cuts, pool: ThreadPool) -> DenseBins:
    """Bins of an (n, d) float32 or float64 array."""
    x = x if cuts.source is None else x[:, cuts.source]
    x = x if x.flags.c_contiguous or x.flags.f_contiguous else np.ascontiguousarray(x)
    return DenseBins(*binning.dense_bins(x, cuts.thresholds, cuts.categories, pool.run, pool.size))


def of_sparse(x: Any, cuts: Cuts, pool: ThreadPool) -> Bins:
    """Bins of a scipy sparse matrix: dense if the list of its stored entries would be longer."""
    x = feature_rows(x, cuts)
    entries = x.indptr, x.indices, x.data
    sparse = SparseBins(*binning_sparse.sparse_bins(*entries, cuts.thresholds, pool.run, pool.size))
    if len(sparse.feature) * DENSE_ABOVE < x.shape[0] * x.shape[1]:
        return sparse
    rows = dense_rows(sparse)
    return DenseBins(rows, np.ascontiguousarray(rows.T))
