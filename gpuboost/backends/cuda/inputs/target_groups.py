"""Training rows by their categories on a device, with the bits of ``data.category_groups``.

Rows are sorted by their keys, in the order of a permutation. Sums are of whole numbers, so what is before a row of its
category is a difference of two sums over sorted rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.radix_sort import RADIX, blocks_of_digits, chunks_of
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.types import Array

if TYPE_CHECKING:
    from gpuboost.data.category_groups import Grouping, Units

THREADS = 256  # as in the kernels
_FILES = ("common/common.cuh", "common/blocks.cuh", "common/radix.cuh", "binning/target_means.cu")


@dataclass(frozen=True, slots=True)
class _Room:
    """Memory that all tables use one after the other: 48 bytes a row."""

    pairs: tuple[tuple[Array, Array], ...]  # twice (n,) uint64 keys and (n,) uint32 rows
    counts: Array
    bases: Array
    values: Array  # (n,) uint64
    sums: Array  # (chunks + 1,) uint64
    before: tuple[Array, ...]  # twice (n + 1,) uint64
    arrived: Array  # (1,) uint32, 0 between launches


@final
class CudaGroups:
    """``RowGroups`` of a matrix on a device."""

    threads = 1  # one stream

    def __init__(self, runtime: Runtime, x: Array, grouping: Grouping, *, to_host: bool) -> None:
        """x: (n, d) float32 or float64. to_host: True: columns that the methods return are copied to the host."""
        self._runtime, self._of, self._x, self._to_host = runtime, grouping, x, to_host
        self._dtype, self._bits = x.dtype, np.dtype(f"u{x.dtype.itemsize}")
        bits = 8 * x.dtype.itemsize
        self._kernels = Kernels(runtime, *_FILES, before=f"#define SOURCE f{bits}\n#define BITS u{bits}\n")
        self._n = n = grouping.units.values.shape[1]
        self._chunks, empty = chunks_of(n), runtime.empty
        self._orders = [runtime.upload(np.asarray(order, np.uint32)) for order in grouping.orders]
        self._units = [runtime.upload(values) for values in grouping.units.values]
        kept = np.zeros(1, np.int64) if grouping.kept is None else grouping.kept
        self._kept = {"kept": runtime.upload(kept), "has_kept": grouping.kept is not None}
        self._room = _Room(
            pairs=tuple((empty(n, np.uint64), empty(n, np.uint32)) for _ in range(2)),
            counts=empty(self._chunks * RADIX, np.uint32),
            bases=empty(RADIX, np.uint32),
            values=empty(n, np.uint64),
            sums=empty(self._chunks + 1, np.uint64),
            before=tuple(empty(n + 1, np.uint64) for _ in range(2)),
            arrived=runtime.zeros(1, np.uint32),
        )

    @property
    def units(self) -> Units:
        return self._of.units

    def totals(self, columns: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        keys, rows = self._sorted(columns, self._orders[0])
        before = self._room.before[0]
        self._launch("mark_ends", self._n, keys=keys, n=self._n, values=self._room.values)
        self._scan(before)
        m = int(self._runtime.download(before[self._n :])[0])
        distinct, ends = self._runtime.empty(m, np.uint64), self._runtime.empty(m, np.int32)
        self._launch("write_keys", self._n, keys=keys, before=before, n=self._n, distinct=distinct, ends=ends)
        totals, made = [], self._runtime.empty(m, np.uint64)
        for units in self._units:
            self._scan_units(units, rows, before)
            self._launch("write_totals", m, ends=ends, before=before, m=m, totals=made)
            totals.append(self._runtime.download(made).astype(np.int64))
        return self._runtime.download(distinct).astype(np.int64), np.diff(np.stack(totals), axis=1, prepend=0).astype(
            np.int64
        )

    def ordered(
        self, columns: tuple[int, ...], prior: NDArray[np.float64], prior_weight: NDArray[np.float64]
    ) -> list[list[Array]]:
        return [self._means(columns, order, prior, prior_weight) for order in self._orders]

    def looked_up(
        self, columns: tuple[int, ...], keys: NDArray[np.int64], values: NDArray[np.float64], absent: float
    ) -> Array:
        n, d = self._x.shape
        out = self._runtime.empty(n, self._bits)
        listed = {"keys": self._runtime.upload(keys.astype(np.uint64)), "values": self._runtime.upload(values)}
        self._launch(
            "look_up", n,
            x=self._x.reshape(-1), n=n, d=d, **self._columns(columns), **listed, m=len(keys), absent=absent, out=out,
        )  # fmt: skip
        return self._answer(out)

    def _means(
        self, columns: tuple[int, ...], order: Array, prior: NDArray[np.float64], prior_weight: NDArray[np.float64]
    ) -> list[Array]:
        keys, rows = self._sorted(columns, order)
        (counts, sums), scales = self._room.before, self._of.units.scales
        self._scan_units(self._units[0], rows, counts)
        made = []
        for j, a in enumerate(prior_weight):
            self._scan_units(self._units[1 + j], rows, sums)
            out = self._runtime.zeros(self._x.shape[0], self._bits)
            self._launch(
                "write_means", self._n,
                keys=keys, rows=rows, n=self._n, counts=counts, sums=sums, scale_of_counts=scales[0],
                scale_of_sums=scales[1 + j], prior=a * prior[j], prior_weight=a, **self._kept, out=out,
            )  # fmt: skip
            made.append(self._answer(out))
        return made

    def _answer(self, bits: Array) -> Array:
        column = bits.view(self._dtype)
        return self._runtime.download(column) if self._to_host else column

    def _sorted(self, columns: tuple[int, ...], order: Array) -> tuple[Array, Array]:
        """(n,) keys, increasing, and the training rows that have them; those of one key in this order."""
        n, chunks, room, d = self._n, self._chunks, self._room, self._x.shape[1]
        (keys, rows), moved = room.pairs
        self._launch(
            "make_keys", n,
            x=self._x.reshape(-1), d=d, **self._kept, order=order, n=n, **self._columns(columns), keys=keys, rows=rows,
        )  # fmt: skip
        of_chunks: dict[str, Any] = {"chunks": chunks, "counts": room.counts}
        largest = int(np.prod([self._of.sizes[f] + 1 for f in columns], dtype=object)) - 1
        for shift in range(0, largest.bit_length(), 8):
            digit = {"n": n, "shift": shift, **of_chunks}
            self._of_chunks("count_keys", keys=keys, **digit)
            self._kernels("place_keys")(
                blocks_of_digits(chunks), (THREADS,), **of_chunks, bases=room.bases, arrived=room.arrived
            )
            self._of_chunks(
                "order_keys", keys=keys, rows=rows, **digit, bases=room.bases, moved_keys=moved[0], moved_rows=moved[1]
            )
            (keys, rows), moved = moved, (keys, rows)
        return keys, rows

    def _scan_units(self, units: Array, rows: Array, before: Array) -> None:
        self._launch("gather_units", self._n, units=units, rows=rows, n=self._n, values=self._room.values)
        self._scan(before)

    def _scan(self, before: Array) -> None:
        """before = the sums of ``values`` before each row, and last the total."""
        values = {"values": self._room.values, "n": self._n, "chunks": self._chunks, "sums": self._room.sums}
        self._of_chunks("sum_values", **values, arrived=self._room.arrived)
        self._of_chunks("scan_values", **values, before=before)

    def _columns(self, columns: tuple[int, ...]) -> dict[str, Any]:
        sizes = np.array([self._of.sizes[f] for f in columns], np.int64)
        listed = self._runtime.upload(np.array(columns, np.int32)), self._runtime.upload(sizes)
        return {"columns": listed[0], "sizes": listed[1], "n_columns": len(columns)}

    def _launch(self, name: str, count: int, **arguments: Any) -> None:
        grid = (block_count(self._runtime, count, THREADS),)
        self._kernels(name)(grid, (THREADS,), **arguments)

    def _of_chunks(self, name: str, **arguments: Any) -> None:
        grid = (block_count(self._runtime, self._chunks),)
        self._kernels(name)(grid, (THREADS,), **arguments)
