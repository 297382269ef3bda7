"""Raw values as the prediction kernels read them: one flat array in any order, or the rows of a CSR matrix.

All arrays are read-only views, so each kernel is compiled once per dtype, not for every kind of input.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from gpuboost.records import dataclass
from gpuboost.types import Array


@dataclass(frozen=True, slots=True)
class DenseRows:
    """A dense matrix: x[i, f] is values[i * row_stride + f * column_stride]."""

    values: Array  # (n * d,) float32 or float64
    row_stride: int
    column_stride: int
    shape: tuple[int, int]


@dataclass(frozen=True, slots=True)
class SparseRows:
    """A CSR matrix without duplicate entries; absent entries are 0."""

    values: Array  # (nnz,) float32 or float64
    indices: Array  # (nnz,) int32 or int64
    row_start: Array  # (n + 1,)
    shape: tuple[int, int]


RawRows: TypeAlias = DenseRows | SparseRows


def rows_of(x: Any) -> RawRows:
    """A view of an (n, d) numpy array or scipy sparse matrix; copied only if its dtype or layout needs it."""
    if isinstance(x, (DenseRows, SparseRows)):
        return x
    if hasattr(x, "tocsr"):
        csr = x.tocsr()
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        return SparseRows(_floats(csr.data), read_only(csr.indices), read_only(csr.indptr), x.shape)
    n, d = x.shape
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        return DenseRows(_floats(x.T.reshape(-1)), 1, n, (n, d))
    return DenseRows(_floats(np.ascontiguousarray(x).reshape(-1)), d, 1, (n, d))


def _floats(values: Array) -> Array:
    return read_only(values if values.dtype in (np.float32, np.float64) else values.astype(np.float64))


def read_only(values: Array) -> Array:
    """A read-only view of the same memory."""
    view = values.view()
    view.flags.writeable = False
    return view
