"""Sparse rows as they are binned: a column for each feature, in canonical form."""

from __future__ import annotations

from typing import Any

from gpuboost.types import Cuts


def feature_rows(x: Any, cuts: Cuts) -> Any:
    """(n, d) CSR matrix of the columns that the d features read, without duplicate entries, indices increasing."""
    csr = x.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    if cuts.source is None:
        return csr
    csr = csr[:, cuts.source]
    csr.sort_indices()
    return csr
