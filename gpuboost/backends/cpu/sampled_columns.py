"""Sparse columns of the drawn rows, for the search without histograms."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.layout import SortedColumns, even
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspace
from gpuboost.kernels.sampling import sampled_columns as entries
from gpuboost.types import Array


def drawn_columns(columns: SortedColumns, rows: Array, n_rows: int, pool: ThreadPool, room: Workspace) -> SortedColumns:
    """The columns with the entries of the drawn rows only, which keep their row numbers.

    Otherwise every level would pass over all entries, at any sampling rate, and mispredict which rows were drawn.
    """
    drawn = np.zeros(n_rows, np.uint8)
    drawn[rows] = 1
    d = len(columns.default)
    counts, bounds = np.empty(d, np.int64), even(columns.start, pool.size)
    stored = columns.start, columns.row
    pool.run(lambda part: entries.count_drawn(*stored, drawn, bounds[part], bounds[part + 1], counts))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    row = room.array("drawn entries", (int(start[-1]),), columns.row.dtype)
    by_bin = room.array("their bins", (int(start[-1]),), columns.bin.dtype)
    taken = columns.bin, drawn

    def take(part: int) -> None:
        entries.take_drawn(*stored, *taken, bounds[part], bounds[part + 1], start, row, by_bin)

    pool.run(take)
    return SortedColumns(start, row, by_bin, columns.default)
