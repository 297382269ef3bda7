"""Histogram layout: the cells of each candidate feature, and the source of its bins."""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.host.workspace import Workspace
from gpuboost.kernels.common.records import HistogramLayout
from gpuboost.kernels.histograms import histogram
from gpuboost.kernels.sampling import sampled_columns
from gpuboost.kernels.splits import columns
from gpuboost.records import dataclass
from gpuboost.types import Array, Bins, Candidates, Cuts, DenseBins, SparseBins

ENTRIES_PER_CELL = 5  # with fewer stored entries than that for each cell, columns are searched without histograms

BITMAP_ABOVE = 6  # summing a column by its bitmap takes as long as summing entries in one row of six

LAID_OUT_BELOW = 16  # bytes per stored entry that columns laid out in full may take

NO_ROWS = np.empty((0, 0), np.uint8)
NO_BYTES, NO_INTS, NO_LONGS = np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int64)
NO_CELLS = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Layout:
    """Histogram layout of a set of candidates; the same for every tree if all features compete."""

    features: NDArray[np.int32]  # (t,)
    starts: NDArray[np.uint64]  # (t + 1,) first cell of each; the last of a feature's cells is for missing values
    n_bins: NDArray[np.int32]  # (t,)
    kinds: NDArray[np.uint8]  # (t,) 1 if categorical
    some_categorical: bool
    kinds_of_all: NDArray[np.uint8]  # (d,) the same of every feature, candidate or not
    n_bins_of_all: NDArray[np.int32]  # (d,)
    defaults: NDArray[np.int64]  # (t,) bin of an absent entry, -1 if dense
    rows: Array  # (m, d) uint8, (0, 0) if sparse
    row_start: Array  # (m + 1,) int64 and
    cells: Array  # (entries,) uint32, both empty if dense or searched by column
    arrays: HistogramLayout = field(init=False)  # the same as the kernels read it

    def __post_init__(self) -> None:
        arrays = HistogramLayout(self.features, self.starts, self.n_bins, self.kinds, self.defaults)
        object.__setattr__(self, "arrays", arrays)

    def of_rows(self, rows: Array) -> Layout:
        """The same layout for other dense rows, (m, d) uint8."""
        return replace(self, rows=rows)

    @property
    def n_cells(self) -> int:
        return int(self.starts[-1])

    @property
    def kinds_if_any(self) -> Array | None:
        """``kinds`` as the search takes them: None if no candidate is categorical."""
        return self.kinds if self.some_categorical else None

    @property
    def entries_per_row(self) -> int:
        """Mean number of bins that a row adds to a histogram; at least 1."""
        if len(self.row_start) < 2:
            return len(self.features)
        return max(len(self.cells) // (len(self.row_start) - 1), 1)


@dataclass(frozen=True, slots=True)
class SortedColumns:
    """The stored entries of sparse bins, each column's sorted by bin, for ``gpuboost.kernels.splits.columns``."""

    start: Array  # (d + 1,) int64
    row: Array  # (nnz,) int32
    bin: Array  # (nnz,) uint8
    default: Array  # (d,) uint8


def columns_of(bins: Bins, cuts: Cuts, pool: ThreadPool) -> SortedColumns | None:
    """Columns for the search without histograms, or None where histograms are faster.

    Histograms are faster with many entries per cell; missing and categorical values need them.
    """
    if not isinstance(bins, SparseBins) or cuts.is_categorical.any():
        return None
    if int((cuts.n_bins + 1).sum()) * ENTRIES_PER_CELL < len(bins.feature):
        return None
    if (bins.default == cuts.n_bins).any() or (bins.row_bin == cuts.n_bins[bins.feature]).any():
        return None
    row, by_bin = np.empty_like(bins.row), np.empty_like(bins.column_bin)
    bounds = even(bins.column_start, pool.size)

    def sort(part: int) -> None:
        columns.sort_by_bin(bins.column_start, bins.row, bins.column_bin, bounds[part], bounds[part + 1], row, by_bin)

    pool.run(sort)
    return SortedColumns(bins.column_start, row, by_bin, bins.default)


@dataclass(frozen=True, slots=True)
class IndicatorBitmaps:
    """Bitmaps of sparse columns with many entries, all in one bin: mostly indicators.

    A sum over such a column adds the numbers whose bit is set, many at a time, without a look-up.
    """

    words: NDArray[np.uint64]  # (m, rows / 64, rounded up): bit i % 64 of word i // 64 is set if row i has an entry
    of: NDArray[np.int32]  # (d,) line of a column, -1 if it has no bitmap
    cost: NDArray[np.int64]  # (d,) of summing a column, in entries
    use_bitmaps: bool  # summing all columns is faster than going through the entries row by row


@dataclass(frozen=True, slots=True)
class SparseForms:
    """Sparse bins in other forms, each None where it would not be quicker to read; dense bins have none."""

    by_row: Layout | None = None  # to sum histograms by rows, not by columns
    bitmaps: IndicatorBitmaps | None = None
    columns: Array | None = None  # (d, n) uint8, see ``laid_out``


def indicator_bitmaps(bins: SparseBins) -> IndicatorBitmaps:
    """Bitmaps of the columns with an entry in at least one of BITMAP_ABOVE rows."""
    n, d = bins.shape
    cost, of = np.diff(bins.column_start), np.full(d, -1, np.int32)
    lines: list[NDArray[np.uint64]] = []
    for f in np.flatnonzero(cost * BITMAP_ABOVE > n):
        entries = slice(bins.column_start[f], bins.column_start[f + 1])
        stored = bins.column_bin[entries]
        if (stored == stored[0]).all():
            line = np.zeros(-(-n // 64) * 64, np.bool_)
            line[bins.row[entries]] = True
            of[f], cost[f] = len(lines), n // BITMAP_ABOVE
            lines.append(np.packbits(line, bitorder="little").view("<u8"))
    words = np.array(lines, np.uint64).reshape(len(lines), -(-n // 64))
    return IndicatorBitmaps(words, of, cost, use_bitmaps=4 * int(cost.sum()) < 3 * len(bins.row))


def laid_out(bins: Bins) -> Array | None:
    """(d, n) uint8: all columns of sparse bins in full, for routing; None if they take much more memory in full."""
    if not isinstance(bins, SparseBins) or bins.shape[0] * bins.shape[1] > LAID_OUT_BELOW * len(bins.feature):
        return None
    columns = np.repeat(bins.default[:, None], bins.shape[0], axis=1)
    columns[np.repeat(np.arange(bins.shape[1]), np.diff(bins.column_start)), bins.row] = bins.column_bin
    return columns


def even(starts: Array, parts: int) -> Array:
    """(parts + 1,) bounds of parts of about equal size. starts (t + 1,) ascending, from 0."""
    inner = np.searchsorted(starts, [share(int(starts[-1]), part, parts)[0] for part in range(1, parts)])
    return np.concatenate([[0], inner, [len(starts) - 1]]).astype(np.int64)


def layout_of(bins: Bins, cuts: Cuts, candidates: Candidates, *, by_column: bool) -> Layout:
    """The layout for one set of candidates. With sparse bins, only the candidates' entries are read."""
    features = candidates.features
    kinds_of_all = cuts.is_categorical.astype(np.uint8)
    n_bins_of_all = cuts.n_bins.copy()  # a read-only array has a type of its own, for which numba compiles once more
    n_bins, kinds = n_bins_of_all[features], kinds_of_all[features]
    starts = np.zeros(len(features) + 1, np.uint64)
    np.cumsum(n_bins + 1, out=starts[1:])
    shape = features, starts, n_bins, kinds, bool(kinds.any()), kinds_of_all, n_bins_of_all
    if isinstance(bins, DenseBins):
        defaults = np.full(len(features), -1, np.int64)
        return Layout(*shape, defaults, bins.rows, NO_LONGS, NO_CELLS)
    defaults = bins.default[features].astype(np.int64)
    if by_column:
        return Layout(*shape, defaults, NO_ROWS, NO_LONGS, NO_CELLS)
    if len(features) == cuts.n_features:
        cells = np.empty(len(bins.feature), np.uint32)
        histogram.cells_of(bins.feature, bins.row_bin, starts[:-1].astype(np.int64), cells)
        return Layout(*shape, defaults, NO_ROWS, bins.row_start, cells)
    row_start = np.zeros(len(bins.row_start), np.int64)
    cells = np.empty(int((bins.column_start[features + 1] - bins.column_start[features]).sum()), np.uint32)
    histogram.select_columns(bins.column_start, bins.row, bins.column_bin, features, starts, row_start, cells)
    return Layout(*shape, defaults, NO_ROWS, row_start, cells)


def drawn_columns(columns: SortedColumns, rows: Array, n_rows: int, pool: ThreadPool, room: Workspace) -> SortedColumns:
    """The columns with the entries of the drawn rows only, which keep their row numbers.

    Otherwise every level would pass over all entries, at any sampling rate, and mispredict which rows were drawn.
    """
    drawn = np.zeros(n_rows, np.uint8)
    drawn[rows] = 1
    d = len(columns.default)
    counts, bounds = np.empty(d, np.int64), even(columns.start, pool.size)
    stored = columns.start, columns.row
    pool.run(lambda part: sampled_columns.count_drawn(*stored, drawn, bounds[part], bounds[part + 1], counts))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    row = room.array("drawn entries", (int(start[-1]),), columns.row.dtype)
    by_bin = room.array("their bins", (int(start[-1]),), columns.bin.dtype)
    taken = columns.bin, drawn

    def take(part: int) -> None:
        sampled_columns.take_drawn(*stored, *taken, bounds[part], bounds[part + 1], start, row, by_bin)

    pool.run(take)
    return SortedColumns(start, row, by_bin, columns.default)
