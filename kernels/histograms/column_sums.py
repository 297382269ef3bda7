"""Histograms of the root of a stump: column by column, so only the candidate features are read.

A stump needs only the sums of the root. Its rows are all rows in order, so a dense column is read from end to end; of a
sparse column, the stored entries. The cells are those of ``histogram.build``. Gradients become integers on the way, a
tile of rows before it is summed: a thread reads the integers that it packed from its own cache. Definition:
reference.growth.
"""

import numpy as np

from gpuboost.kernels.common.fixed_point import pack
from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.vector import bitmap_sum
from gpuboost.kernels.histograms.histogram import TILE

FEW = 4  # cells up to which each bin is summed by itself, which needs no table and vectorises
STRETCH = 4_096  # rows whose gradients stay in the first-level cache
_LOW = np.int64(0xFFFF_FFFF)


@kernel
def _sum_of_bin(codes, packed, b):
    """The packed sum over the rows of one bin."""
    total = np.int64(0)
    for i in range(codes.size):
        total += packed[i] if codes[i] == b else np.int64(0)
    return total


@kernel
def _sum(packed):
    total = np.int64(0)
    for i in range(packed.size):
        total += packed[i]
    return total


@kernel
def _add_rows(codes, packed, cells):
    """cells[codes[i]] += packed[i]: by four tables in turn, so that equal neighbours do not wait for each other."""
    size = cells.shape[0]
    if size <= FEW:
        for begin in range(0, codes.size, STRETCH):
            part, of = codes[begin : begin + STRETCH], packed[begin : begin + STRETCH]
            rest = _sum(of)
            for b in range(size):
                if b != 1:
                    here = _sum_of_bin(part, of, b)
                    cells[b] += here
                    rest -= here
            cells[1] += rest
        return
    if codes.size < 16 * size:
        for i in range(codes.size):
            cells[np.uint64(codes[i])] += packed[i]
        return
    table = np.zeros((4, 256), np.int64)
    first, second, third, fourth = table[0], table[1], table[2], table[3]
    whole = codes.size - codes.size % 4
    for i in range(0, whole, 4):
        first[np.uint64(codes[i])] += packed[i]
        second[np.uint64(codes[i + 1])] += packed[i + 1]
        third[np.uint64(codes[i + 2])] += packed[i + 2]
        fourth[np.uint64(codes[i + 3])] += packed[i + 3]
    for i in range(whole, codes.size):
        first[np.uint64(codes[i])] += packed[i]
    for b in range(size):
        cells[b] += (first[b] + second[b]) + (third[b] + fourth[b])


@kernel
def _add_entries(row, bins, packed, cells):
    """The same for stored entries. For absent ones see split.spread."""
    if cells.shape[0] == 3:  # two bins and what is missing: no table, so equal neighbours do not wait for each other
        total = low = missing = np.int64(0)
        for e in range(row.size):
            pair, b = packed[np.uint64(row[e])], bins[e]
            total += pair
            low += pair if b == 0 else np.int64(0)
            missing += pair if b == 2 else np.int64(0)
        cells[0] += low
        cells[1] += total - low - missing
        cells[2] += missing
        return
    for e in range(row.size):
        cells[np.uint64(bins[e])] += packed[np.uint64(row[e])]


@kernel
def _spill(scratch, out):
    """Add packed sums to both halves of a unpacked histogram; scratch is 0 again."""
    n_cells = scratch.shape[0]
    for c in range(n_cells):
        pair = scratch[c]
        out[c] += pair >> 32
        out[n_cells + c] += pair & _LOW
        scratch[c] = 0


@kernel
def _pack(g, h, multiplicity, scale_g, scale_h, first, last, packed, totals):
    """Rows [first, last) as packed integers, from the start of ``packed`` on."""
    times = multiplicity[first:last] if multiplicity.shape[0] > 0 else multiplicity
    pack(g[first:last], h[first:last], times, scale_g, scale_h, 0, last - first, packed, totals)


@kernel
def build(g, h, multiplicity, scale_g, scale_h, columns, features, starts, first, last, is_packed, packed, out, totals):
    """Rows [first, last) of the root's histogram, packed or unpacked, of dense columns; adds their sums to ``totals``.

    g, h, multiplicity, scales, totals: see ``fixed_point.pack``; columns (d, n) uint8; features (t,), starts (t + 1,);
    packed (at least min(last - first, TILE),) int64, scratch; out (2 * n_cells,) int64 comes as it is and is set.
    """
    out[:] = 0
    n_cells = out.shape[0] // 2
    scratch = out[:n_cells] if is_packed else np.zeros(n_cells, np.int64)
    while first < last:
        stop = min(first + TILE, last)
        _pack(g, h, multiplicity, scale_g, scale_h, first, stop, packed, totals)
        for j in range(features.shape[0]):
            a, b = np.int64(starts[j]), np.int64(starts[j + 1])
            _add_rows(columns[features[j], first:stop], packed[: stop - first], scratch[a:b])
        if not is_packed:
            _spill(scratch, out)
        first = stop


@kernel
def build_by_row(g, h, multiplicity, scale_g, scale_h, row_start, cells, first, last, is_packed, packed, out, totals):
    """The same from sparse rows' own entries: row_start (n + 1,) int64, cells (entries,) uint32."""
    out[:] = 0
    n_cells = out.shape[0] // 2
    scratch = out[:n_cells] if is_packed else np.zeros(n_cells, np.int64)
    while first < last:
        stop = min(first + TILE, last)
        _pack(g, h, multiplicity, scale_g, scale_h, first, stop, packed, totals)
        for k in range(np.uint64(first), np.uint64(stop)):
            pair = packed[k - np.uint64(first)]
            for e in range(np.uint64(row_start[k]), np.uint64(row_start[k + np.uint64(1)])):
                scratch[np.uint64(cells[e])] += pair
        if not is_packed:
            _spill(scratch, out)
        first = stop


@kernel
def _add_unpacked(row, column_bin, packed, begin, end, cells, out, a):
    """Entries [begin, end) to both halves of a unpacked histogram. cells: scratch, zeros, and so it is after."""
    n_cells = out.shape[0] // 2
    while begin < end:
        stop = min(begin + TILE, end)
        _add_entries(row[begin:stop], column_bin[begin:stop], packed, cells)
        for c in range(cells.shape[0]):
            pair = cells[c]
            out[a + c] += pair >> 32
            out[n_cells + a + c] += pair & _LOW
            cells[c] = 0
        begin = stop


@kernel
def _add_bitmaps(column_start, column_bin, bitmaps, bitmap_of, features, starts, packed, first, last, is_packed, out):
    """The marked columns, a stretch of the rows after the other, so that their gradients stay in the nearest cache."""
    n_cells, words = out.shape[0] // 2, bitmaps.shape[1]
    for begin in range(0, words, STRETCH // 64):
        count, rows = min(STRETCH // 64, words - begin), packed[64 * begin :]
        for j in range(first, last):
            f = features[j]
            if bitmap_of[f] >= 0:
                pair = bitmap_sum(rows.ctypes.data, bitmaps[bitmap_of[f], begin:].ctypes.data, count)
                cell = np.int64(starts[j]) + column_bin[column_start[f]]
                out[cell] += pair if is_packed else pair >> 32
                if not is_packed:
                    out[n_cells + cell] += pair & _LOW


@kernel
def build_by_entry(
    column_start, row, column_bin, bitmaps, bitmap_of, features, starts, packed, first, last, is_packed, out
):
    """Features [first, last) of the same histogram, from the stored entries of their sparse columns.

    column_start (d + 1,) int64, row (nnz,) int32, column_bin (nnz,) uint8; packed (64 * words,) int64, of all rows,
    whatever follows them. bitmaps (m, words) uint64: a bit for each row, set where column f has an entry, of columns
    whose entries are all of one bin; they are line bitmap_of[f] of it, (d,) int32, -1 for other columns.
    """
    n_cells, some = out.shape[0] // 2, False
    scratch = np.zeros(0 if is_packed else 256, np.int64)
    for j in range(first, last):
        f, a, b = features[j], np.int64(starts[j]), np.int64(starts[j + 1])
        out[a:b] = 0
        if not is_packed:
            out[n_cells + a : n_cells + b] = 0
        if bitmap_of[f] >= 0:
            some = True
        elif is_packed:
            begin, end = column_start[f], column_start[f + 1]
            _add_entries(row[begin:end], column_bin[begin:end], packed, out[a:b])
        else:
            _add_unpacked(row, column_bin, packed, column_start[f], column_start[f + 1], scratch[: b - a], out, a)
    if some:
        _add_bitmaps(
            column_start, column_bin, bitmaps, bitmap_of, features, starts, packed, first, last, is_packed, out
        )
