"""histograms of a root whose tree ends below it: column by column, so only what competes is read.

A stump needs the sums of the root alone. Its rows are all rows in order, so a column of bins is passed from end to end;
of sparse bins, its stored entries are. The cells are those that ``histogram.build`` makes. Definition:
Reference.histograms.
"""

import numpy as np

from gpuboost.kernels.histogram import TILE
from gpuboost.kernels.jit import kernel

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
def build(columns, column_start, row, column_bin, features, starts, packed, first, last, narrow, scratch, out):
    """Features [first, last) of the root's histogram, narrow or wide. Their cells of scratch must be 0, and are after.

    Dense: columns (d, n) uint8, and the others empty. Sparse: column_start (d + 1,) int64, row (nnz,) int32 and
    column_bin (nnz,) uint8, and columns (0, 0). out (2 * n_cells,) int64, scratch (n_cells,).
    """
    n_cells, dense = scratch.shape[0], columns.shape[1] > 0
    for j in range(first, last):
        f, a, b = features[j], np.int64(starts[j]), np.int64(starts[j + 1])
        begin, end = (0, columns.shape[1]) if dense else (column_start[f], column_start[f + 1])
        cells = out[a:b] if narrow else scratch[a:b]
        out[a:b] = 0
        if not narrow:
            out[n_cells + a : n_cells + b] = 0
        while begin < end:
            stop = end if narrow else min(begin + TILE, end)
            if dense:
                _add_rows(columns[f, begin:stop], packed[begin:stop], cells)
            else:
                _add_entries(row[begin:stop], column_bin[begin:stop], packed, cells)
            if not narrow:
                for c in range(a, b):
                    pair = scratch[c]
                    out[c] += pair >> 32
                    out[n_cells + c] += pair & _LOW
                    scratch[c] = 0
            begin = stop


@kernel
def build_by_row(row_start, cells, packed, first, last, narrow, scratch, out):
    """Rows [first, last) of the same histogram, from the sparse rows' own entries; ``out`` comes as it is and is set.

    row_start (n + 1,) int64, cells (entries,) uint32; scratch (n_cells,) int64 of zeros, and so it is after.
    """
    n_cells = scratch.shape[0]
    out[:] = 0
    target = out[:n_cells] if narrow else scratch
    while first < last:
        stop = last if narrow else min(first + TILE, last)
        for k in range(np.uint64(first), np.uint64(stop)):
            pair = packed[k]
            for e in range(np.uint64(row_start[k]), np.uint64(row_start[k + np.uint64(1)])):
                target[np.uint64(cells[e])] += pair
        if not narrow:
            for c in range(n_cells):
                pair = scratch[c]
                out[c] += pair >> 32
                out[n_cells + c] += pair & _LOW
                scratch[c] = 0
        first = stop
