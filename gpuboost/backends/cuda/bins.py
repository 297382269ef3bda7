"""Bins on a device: computed there from raw values, or laid out from a host's bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels, Launcher
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.trees.plan import bytes_of_bins, tile_width
from gpuboost.backends.host.sparse_rows import feature_rows
from gpuboost.errors import DeviceError
from gpuboost.kernels.binning import binning_sparse
from gpuboost.types import Array, Bins, Cuts, DenseBins, SparseBins

ENTRIES, BIN_ROWS, THREADS = 256, 128, 256  # as in binning.cu
MOST_ACROSS = 32  # features that a block of binning.cu takes at once
NEAR_BYTES = ENTRIES * MOST_ACROSS * 8  # of shared memory, for their entries
STATIC_BYTES = 4608  # upper bound on the kernel's static shared memory
SMALL_BYTES = 1 << 20  # allocated without asking the driver whether they fit, as that takes longer than a launch
CHUNK_BYTES = 64 << 20  # of raw values that are on the device at once, if they come from the host


@dataclass(frozen=True, slots=True, eq=False)
class DeviceBins:
    """The bin of every value in two layouts, for the device's kernels; pad bytes are 0."""

    rows: Array  # (tiles, n, width) uint8: for histograms and for prediction
    columns: Array  # (d, n) uint8: for routing; one byte where bins are only for walking trees
    n: int
    d: int
    width: int  # features of a tile: see ``tile_width``

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    @property
    def tiles(self) -> int:
        return -(-self.d // self.width)

    @property
    def across(self) -> int:
        """Features of a group that is binned at once."""
        return min(self.width, MOST_ACROSS)

    @property
    def shift(self) -> int:
        """width == 1 << shift"""
        return self.width.bit_length() - 1


class Binner:
    """Binning of raw values, once per device."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._near = runtime.block_memory >= NEAR_BYTES + STATIC_BYTES  # not on compute capability 7.5
        self._kernels = Kernels(runtime, "common/common.cuh", "binning/binning.cu")
        self._last: tuple[Cuts, _Tables] | None = None

    def quantise(self, x: Any, cuts: Cuts, by_column: bool = True) -> DeviceBins:
        """See ``Trainer.quantise``. x: dense or sparse on the host, or an array of this device.

        by_column: also make the columns, for routing.
        """
        if hasattr(x, "tocsr"):
            return self._from_sparse(x, cuts)
        bins = self._room(x.shape[0], cuts.n_features, by_column)
        tables = self._tables(cuts, bins)
        on_device = self._runtime.as_device_array(x)
        if on_device is not None:
            self._bin(on_device, 0, bins, tables, by_column)
            return bins
        x = x if x.dtype in (np.float32, np.float64) else np.asarray(x, np.float64)
        step = max(BIN_ROWS, CHUNK_BYTES // max(1, x.shape[1] * x.itemsize) // BIN_ROWS * BIN_ROWS)
        for first in range(0, bins.n, step):
            part = self._runtime.upload(np.ascontiguousarray(x[first : first + step]))
            self._bin(part, first, bins, tables, by_column)
        return bins

    def lay_out(self, bins: Bins) -> DeviceBins:
        """Copy bins of the host to the device."""
        if isinstance(bins, DeviceBins):
            return bins
        return self._lay_rows(bins) if isinstance(bins, DenseBins) else self._lay_entries(bins)

    def _room(self, n: int, d: int, by_column: bool = True) -> DeviceBins:
        """Uninitialised bins. Raises DeviceError, with the sizes, if they do not fit."""
        self._check_room(n, d)
        width = tile_width(d, self._runtime.block_memory)
        tiles = -(-d // width)
        sizes = tiles * n * width, d * n * by_column
        rows, columns = (self._runtime.empty(max(1, size), np.uint8) for size in sizes)
        return DeviceBins(rows, columns, n, d, width)

    def _check_room(self, n: int, d: int) -> None:
        needed = bytes_of_bins(n, d, tile_width(d, self._runtime.block_memory))
        if needed > SMALL_BYTES and needed > (free := self._runtime.free_memory):
            raise DeviceError(
                f"X: the bins of {n:,} rows and {d:,} features take {needed:,} bytes on {self._runtime.name}, dense as "
                f"they are there; {free:,} are free. Use fewer rows or features, or device='cpu'."
            )

    def _bin(self, x: Array, first: int, bins: DeviceBins, tables: _Tables, by_column: bool) -> None:
        kernel = self._kernel("bin", narrow=x.dtype == np.float32)
        count, shared = x.shape[0], ENTRIES * bins.across * 8 if self._near else 0
        grid = min(-(-count // BIN_ROWS), 8 * self._runtime.sm_count), bins.tiles * (bins.width // bins.across)
        kernel(
            grid, (THREADS,),
            x=x, row_stride=x.shape[1], column_stride=1, first=first, count=count, n=bins.n, d=bins.d,
            shift=bins.shift, entries=tables.entries, places=tables.places, n_bins=tables.n_bins,
            categorical=tables.categorical, column=tables.columns, rows=bins.rows, by_column=by_column,
            columns=bins.columns, shared_mem=shared,
        )  # fmt: skip

    def _tables(self, cuts: Cuts, bins: DeviceBins) -> _Tables:
        """The tables of the cuts; those of the last ones are kept, as predictions are often by the same ones."""
        last = self._last
        if last is None or last[0] is not cuts:
            last = self._last = cuts, _Tables.of(cuts, bins, self._runtime)
        return last[1]

    def _kernel(self, name: str, narrow: bool = False) -> Launcher:
        macros = f"#define NARROW_VALUES {int(narrow)}\n#define NEAR_ENTRIES {int(self._near)}\n"
        return self._kernels(name, macros, shared_limit=NEAR_BYTES if self._near and name == "bin" else None)

    def _lay_rows(self, host: DenseBins) -> DeviceBins:
        n, d = host.shape
        bins, kernel = self._room(n, d), self._kernel("lay_rows")
        step = max(1, CHUNK_BYTES // max(1, d))
        for first in range(0, n, step):
            part = self._runtime.upload(np.ascontiguousarray(host.rows[first : first + step]))
            kernel(
                self._grid(part.shape[0] * bins.width, bins.tiles), (THREADS,),
                bins=part, first=first, count=part.shape[0], n=n, d=d, shift=bins.shift, rows=bins.rows,
                columns=bins.columns,
            )  # fmt: skip
        return bins

    def _lay_entries(self, host: SparseBins) -> DeviceBins:
        n, d = host.shape
        bins, upload = self._room(n, d), self._runtime.upload
        laid_out = {"n": n, "shift": bins.shift, "rows": bins.rows, "columns": bins.columns}
        self._kernel("lay_defaults")(
            self._grid(n * bins.width, bins.tiles), (THREADS,), defaults=upload(host.default), d=d, **laid_out
        )
        if len(host.feature):
            self._kernel("lay_entries")(
                self._grid(n), (THREADS,),
                row_start=upload(host.row_start), feature=upload(host.feature), bins=upload(host.row_bin), **laid_out,
            )  # fmt: skip
        return bins

    def _from_sparse(self, x: Any, cuts: Cuts) -> DeviceBins:
        """Bin the entries on the host, which reads each once; lay them out densely on the device."""
        self._check_room(x.shape[0], cuts.n_features)
        csr = feature_rows(x, cuts)

        def alone(work: Any) -> None:
            work(0)

        entries = csr.indptr, csr.indices, csr.data
        return self._lay_entries(SparseBins(*binning_sparse.sparse_bins(*entries, cuts.thresholds, alone, 1)))

    def _grid(self, count: int, tiles: int | None = None) -> tuple[int, ...]:
        blocks = block_count(self._runtime, count, THREADS)
        return (blocks,) if tiles is None else (blocks, tiles)


@dataclass(frozen=True, slots=True)
class _Tables:
    """The cuts in the kernel's layout."""

    entries: Array  # (groups, 256, across) float64
    places: Array  # (groups, 256, across) uint8
    n_bins: Array  # (d,) int32
    categorical: Array  # (d,) uint8
    columns: Array  # (d,) int32

    @classmethod
    def of(cls, cuts: Cuts, bins: DeviceBins, runtime: Runtime) -> _Tables:
        room, across = bins.tiles * bins.width, bins.across
        entries = np.full((room, ENTRIES), np.inf)
        places = np.zeros((room, ENTRIES), np.uint8)
        for f, (thresholds, categories) in enumerate(zip(cuts.thresholds, cuts.categories, strict=True)):
            if categories is None:
                entries[f, : len(thresholds)] = thresholds
            else:
                order = np.argsort(categories, kind="stable")
                entries[f, : len(order)] = categories[order]
                places[f, : len(order)] = order
        return cls(
            runtime.upload(_by_group(entries, across)),
            runtime.upload(_by_group(places, across)),
            runtime.upload(cuts.n_bins),
            runtime.upload(cuts.is_categorical.astype(np.uint8)),
            runtime.upload(cuts.columns.astype(np.int32)),
        )


def _by_group(table: NDArray[Any], across: int) -> NDArray[Any]:
    """(groups * across, 256) to (groups, 256, across)."""
    return np.ascontiguousarray(table.reshape(-1, across, ENTRIES).transpose(0, 2, 1))
