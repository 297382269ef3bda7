"""Features and bins in the file of a Dataset: mapped into memory, and checked at their first use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.columns import Columns
from gpuboost.data.sparse import check_sparse
from gpuboost.data.tables import Table, refuse_infinite
from gpuboost.errors import InputError
from gpuboost.records import dataclass
from gpuboost.storage import ArrayFile
from gpuboost.types import Bins, Cuts, DenseBins, SparseBins

SPARSE_BINS = ("default", "row_start", "feature", "row_bin", "column_start", "row", "column_bin")
"""Fields of ``types.SparseBins``."""

_STRIPE = 4_096  # rows compared at a time


@contextmanager
def named_errors(file: ArrayFile) -> Iterator[None]:
    """Errors about the content name the file."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(file.what):
            raise
        raise InputError(f"{file.what} {file.path!r}: {error}") from None


@dataclass(frozen=True, slots=True, eq=False)
class StoredMatrix:
    """Features in a file of arrays. ``read`` checks them."""

    file: ArrayFile
    columns: Columns
    shape: tuple[int, int]
    sparse: bool

    @property
    def n_values(self) -> int:
        """Number of stored values."""
        return self.file.arrays["x.data"].shape[0] if self.sparse else self.shape[0] * self.shape[1]

    def read(self) -> Any:
        """(n, d) float32 or float64 array, or scipy CSR, of memory that is mapped.

        Raises
        ------
        InputError
            If the file is damaged; the message names it.
        """
        with named_errors(self.file):
            x = self._csr() if self.sparse else self.file.array("x", "f4 f8", self.shape).read()
            refuse_infinite(x, Table(self.shape, self.columns.names, x))
            for f, categories in enumerate(self.columns.categories):
                if categories is not None:
                    _check_codes(x[:, f], len(categories), f)
        return x

    def _csr(self) -> Any:
        from scipy.sparse import csr_matrix

        file, count = self.file, self.n_values
        parts = (("x.data", "f4 f8", count), ("x.indices", "i4 i8", count), ("x.indptr", "i4 i8", self.shape[0] + 1))
        data, indices, indptr = (file.array(name, kinds, (length,)).read() for name, kinds, length in parts)
        try:
            x = csr_matrix((data, indices, indptr), self.shape)
        except ValueError as error:
            raise InputError(f"X: {error}") from None
        check_sparse(x)
        if int(indptr[-1]) != count or not x.has_canonical_format:
            raise InputError("X: the entries of the sparse matrix are not in order.")
        return x


@dataclass(frozen=True, slots=True, eq=False)
class StoredBins:
    """Bins in a file of arrays. ``read`` checks them."""

    file: ArrayFile
    cuts: Cuts
    n_rows: int
    sparse: bool

    def read(self) -> Bins:
        """The bins, of memory that is mapped.

        Raises
        ------
        InputError
            If the file is damaged; the message names it.
        """
        with named_errors(self.file):
            return self._sparse() if self.sparse else self._dense()

    def _dense(self) -> DenseBins:
        n, d, file = self.n_rows, self.cuts.n_features, self.file
        rows = file.array("bins.rows", "u1", (n, d)).read()
        columns = file.array("bins.columns", "u1", (d, n)).read()
        if not (rows.flags.c_contiguous and columns.flags.c_contiguous):
            raise InputError("bins: they are in another order.")
        if n and bool((columns.max(axis=1) > self.cuts.n_bins).any()):
            raise InputError("bins: there are fewer bins than their numbers say.")
        for top in range(0, n, _STRIPE):
            if not np.array_equal(rows[top : top + _STRIPE].T, columns[:, top : top + _STRIPE]):
                raise InputError("bins: rows and columns differ.")
        return DenseBins(rows, columns)

    def _sparse(self) -> SparseBins:
        n, d, file = self.n_rows, self.cuts.n_features, self.file
        count = file.array("bins.feature", "i4", (None,)).shape[0]
        kinds = ("u1", "i8", "i4", "u1", "i8", "i4", "u1")
        lengths = (d, n + 1, count, count, d + 1, count, count)
        bins = SparseBins(
            *(
                file.array(f"bins.{name}", kind, (length,)).read()
                for name, kind, length in zip(SPARSE_BINS, kinds, lengths, strict=True)
            )
        )
        _check_sparse_bins(bins, self.cuts.n_bins)
        return bins


def _check_codes(values: NDArray[Any], categories: int, f: int) -> None:
    with np.errstate(invalid="ignore"):
        right = np.isnan(values) | ((values >= 0) & (values < categories) & (values == np.floor(values)))
    if not right.all():
        raise InputError(f"X: column {f} has categories that do not exist.")


def _check_sparse_bins(bins: SparseBins, n_bins: NDArray[np.int32]) -> None:
    """Raise InputError unless both lists of entries are in order, in range, and have the same entries."""
    count, (n, d) = len(bins.feature), bins.shape
    for start in (bins.row_start, bins.column_start):
        if start[0] != 0 or start[-1] != count or (np.diff(start) < 0).any():
            raise InputError("bins: where rows and columns start is damaged.")
    if (bins.default > n_bins).any() or (count and not 0 <= bins.feature.min() <= bins.feature.max() < d):
        raise InputError("bins: they are of other features.")
    if (bins.row_bin > n_bins[bins.feature]).any():
        raise InputError("bins: there are fewer bins than their numbers say.")
    row = np.repeat(np.arange(n), np.diff(bins.row_start))
    place = row * d + bins.feature
    order = np.argsort(bins.feature, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(bins.feature, minlength=d))])
    same = (
        bool((np.diff(place) > 0).all())
        and np.array_equal(starts, bins.column_start)
        and np.array_equal(row[order], bins.row)
        and np.array_equal(bins.row_bin[order], bins.column_bin)
    )
    if not same:
        raise InputError("bins: rows and columns differ.")
