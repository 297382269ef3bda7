"""quantise: the bin of every value.

    bin(x) = number of thresholds below x        so that   x <= thresholds[c]   iff   bin(x) <= c
    bin(missing) = b, the number of value bins

A search among 254 thresholds costs eight dependent steps. A look-up table starts it next to its end: the values are
cut into 4096 cells by the leading bits of x + offset, read as an integer (which sorts as the number does), and
``first[cell]`` is the number of thresholds in lower cells. All those are below x; those in higher cells are not; the
few in the same cell are compared one by one. Each step of the way to a cell (rounding to float32, adding, shifting)
is monotone, so the result is exact whatever the offset; the offset only decides how evenly the thresholds spread.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from gpuboost.kernels.common.jit import kernel

CELLS = 4096
WIDTH = 256  # thresholds of a feature, padded with inf
BLOCK = 512  # rows that are done at once, in cache
LOOK_UP, SEARCH, CATEGORY = 0, 1, 2
MOST_STEPS = 6  # beyond that many thresholds in one cell, eight steps of bisection are faster


class BinTables(NamedTuple):
    """The cuts as the kernels want them. d features."""

    thresholds: np.ndarray  # (d, 256) float32 or float64, as the values; rounded down, padded with inf
    kind: np.ndarray  # (d,) int64: LOOK_UP, SEARCH or CATEGORY
    missing: np.ndarray  # (d,) uint8: the bin of missing values
    first: np.ndarray  # (d, 4096) uint8, or (0, 4096) if no feature is looked up
    offset: np.ndarray  # (d,) float32
    low: np.ndarray  # (d,) uint32: the key of cell 0
    shift: np.ndarray  # (d,) uint32
    steps: np.ndarray  # (d,) int64: most thresholds in one cell
    code_start: np.ndarray  # (d + 1,) int64: where a categorical feature's codes lie in code_bin
    code_bin: np.ndarray  # uint8: the bin of each code


def tables(thresholds, categories, dtype, *, look_up=True):
    """Cuts made ready for values of a dtype.

    thresholds: d arrays of float64; categories: d arrays of codes, or None; dtype: float32 or float64.
    look_up: whether to build the look-up tables; they cost about as much as binning 4096 rows.
    """
    d = len(thresholds)
    count = np.array([len(t) for t in thresholds], dtype=np.int64)
    numeric = np.array([c is None for c in categories], dtype=np.bool_)
    padded = np.full((d, WIDTH), np.inf, dtype=dtype)
    if count.any():
        padded[np.repeat(np.arange(d), count), _within(count)] = rounded_down(np.concatenate(thresholds), dtype)
    value_bins = np.where(numeric, count + 1, [0 if c is None else len(c) for c in categories])
    codes = np.array([0 if c is None or not len(c) else int(c.max()) + 1 for c in categories], dtype=np.int64)
    code_start = np.concatenate([[0], np.cumsum(codes)])
    code_bin = np.repeat(value_bins, codes).astype(np.uint8)
    for f in np.flatnonzero(~numeric):
        code_bin[code_start[f] + categories[f]] = np.arange(len(categories[f]))
    bin_tables = BinTables(
        padded,
        np.where(numeric, SEARCH, CATEGORY),
        value_bins.astype(np.uint8),
        np.zeros((d if look_up else 0, CELLS), dtype=np.uint8),
        np.zeros(d, dtype=np.float32),
        np.zeros(d, dtype=np.uint32),
        np.zeros(d, dtype=np.uint32),
        np.zeros(d, dtype=np.int64),
        code_start,
        code_bin,
    )
    if look_up:
        spread(bin_tables, count)
    return bin_tables


def rounded_down(thresholds, dtype):
    """The largest numbers of the dtype that are not above: for x of that dtype the same x <= t."""
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(dtype)
        return np.where(rounded.astype(np.float64) > thresholds, np.nextafter(rounded, dtype(-np.inf)), rounded)


def _within(count):
    """0 .. count[0] - 1, 0 .. count[1] - 1, ..."""
    return np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)


@intrinsic
def _bits(typing_context, value):
    """The 32 bits of a float32 as an integer."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@kernel
def _key(value):
    """An unsigned integer that sorts as the float32 does."""
    bits = _bits(value)
    return np.uint32(bits) ^ np.uint32((bits >> np.int32(31)) | np.int32(-0x8000_0000))


@kernel
def _count_cells(thresholds, offset, inside):
    """(key of cell 0, shift, most thresholds in one cell); ``inside`` (4096,) counts them all."""
    low = _key(np.float32(thresholds[0]) + offset)
    high = _key(np.float32(thresholds[-1]) + offset)
    shift = np.uint32(0)
    while np.uint32(high - low) >> shift >= CELLS:
        shift += np.uint32(1)
    inside[:] = 0
    for threshold in thresholds:
        inside[np.uint32(_key(np.float32(threshold) + offset) - low) >> shift] += 1
    return low, shift, inside.max()


@kernel
def spread(tables, count):
    """Choose for each numeric feature the offset that leaves the fewest thresholds in one cell; fill its table.

    The keys are logarithms, piecewise linear; so the cells are even in log x, nearly even in x itself, or in between.
    """
    inside = np.empty(CELLS, np.int64)
    for f in np.flatnonzero(tables.kind == SEARCH):
        thresholds = tables.thresholds[f, : count[f]]
        tables.kind[f] = LOOK_UP
        if count[f] == 0:
            continue
        lowest = np.float32(thresholds[0])
        reach = np.float32(thresholds[-1]) - lowest
        finite = reach < np.float32(np.inf)
        tables.steps[f] = WIDTH
        for part in (np.float32(0.0), np.float32(1.0 / 64.0), np.float32(1.0)):
            offset = part * reach - lowest if finite and part > 0 else np.float32(0.0)
            low, shift, max_steps = _count_cells(thresholds, offset, inside)
            if max_steps < tables.steps[f]:
                tables.offset[f], tables.low[f], tables.shift[f], tables.steps[f] = offset, low, shift, max_steps
                tables.first[f, 0] = 0
                for cell in range(1, CELLS):
                    tables.first[f, cell] = tables.first[f, cell - 1] + inside[cell - 1]
        if tables.steps[f] > MOST_STEPS:
            tables.kind[f] = SEARCH


@kernel
def _look_up(x, thresholds, first, offset, low, shift, steps, out):
    """Passes of one simple step over values in cache: the compiler makes vectors of most of them."""
    cell = np.empty(x.shape[0], np.uint32)
    for j in range(x.shape[0]):
        key = _key(np.float32(x[j]) + offset)
        cell[j] = min(np.uint32(max(key, low) - low) >> shift, np.uint32(CELLS - 1))
    for j in range(x.shape[0]):
        out[j] = first[np.uint64(cell[j])]
    for _ in range(steps):
        for j in range(x.shape[0]):
            out[j] += thresholds[np.uint64(out[j])] < x[j]


@kernel
def _search(x, thresholds, out):
    """Bisection written out, without a branch to mispredict: bit 7 of the bin, bit 6, ..."""
    for j in range(x.shape[0]):
        bin = np.uint64(thresholds[127] < x[j]) << np.uint64(7)
        bin += np.uint64(thresholds[bin + np.uint64(63)] < x[j]) << np.uint64(6)
        bin += np.uint64(thresholds[bin + np.uint64(31)] < x[j]) << np.uint64(5)
        bin += np.uint64(thresholds[bin + np.uint64(15)] < x[j]) << np.uint64(4)
        bin += np.uint64(thresholds[bin + np.uint64(7)] < x[j]) << np.uint64(3)
        bin += np.uint64(thresholds[bin + np.uint64(3)] < x[j]) << np.uint64(2)
        bin += np.uint64(thresholds[bin + np.uint64(1)] < x[j]) << np.uint64(1)
        bin += np.uint64(thresholds[bin] < x[j])
        out[j] = bin


@kernel
def _bin_block(x, f, tables, out):
    """The bins of a contiguous stretch of one feature's values."""
    missing, kind = tables.missing[f], tables.kind[f]
    if kind == CATEGORY:
        codes = tables.code_bin[tables.code_start[f] : tables.code_start[f + 1]]
        for j in range(x.shape[0]):
            listed = x[j] >= 0 and x[j] < codes.shape[0] and x[j] == np.floor(x[j])
            out[j] = codes[np.uint64(x[j])] if listed else missing
        return
    if kind == LOOK_UP:
        low, shift, steps = tables.low[f], tables.shift[f], tables.steps[f]
        _look_up(x, tables.thresholds[f], tables.first[f], tables.offset[f], low, shift, steps, out)
    else:
        _search(x, tables.thresholds[f], out)
    for j in range(x.shape[0]):
        if np.isnan(x[j]):
            out[j] = missing


@kernel
def bin_rows(x, tables, start, stop, rows, columns):
    """Rows start .. stop - 1 of a dense matrix.

    x: (n, d) float32 or float64, C order; rows: (n, d) uint8; columns: (d, n) uint8, both C order.
    """
    d = x.shape[1]
    height = max(32, min(BLOCK, 32768 // d))
    values = np.empty(height, x.dtype)
    for top in range(start, stop, height):
        size = min(height, stop - top)
        for f in range(d):
            for j in range(size):
                values[j] = x[top + j, f]
            _bin_block(values[:size], f, tables, columns[f, top : top + size])
            for j in range(size):
                rows[top + j, f] = columns[f, top + j]


@kernel
def bin_columns(x, tables, start, stop, rows, columns):
    """The same for a matrix in F order, given as its transpose: x: (d, n), C order."""
    d = x.shape[0]
    height = max(32, min(BLOCK, 32768 // d))
    for top in range(start, stop, height):
        size = min(height, stop - top)
        for f in range(d):
            _bin_block(x[f, top : top + size], f, tables, columns[f, top : top + size])
            for j in range(size):
                rows[top + j, f] = columns[f, top + j]


def dense_bins(x, thresholds, categories, run, parts):
    """(rows, columns): the arrays of ``types.DenseBins``.

    x: (n, d) float32 or float64, C or F contiguous; thresholds, categories: as in ``types.Cuts``;
    run, parts: ``run(work)`` calls ``work(0) .. work(parts - 1)``, maybe at once.
    """
    n, d = x.shape
    bin_tables = tables(thresholds, categories, x.dtype.type, look_up=n >= CELLS)
    rows, columns = np.empty((n, d), np.uint8), np.empty((d, n), np.uint8)
    by_row, x = x.flags.c_contiguous, x.view()
    x.flags.writeable = False  # numba compiles the kernels anew where an array can be written to

    def work(part):
        start, stop = n * part // parts, n * (part + 1) // parts
        if by_row:
            bin_rows(x, bin_tables, start, stop, rows, columns)
        else:
            bin_columns(x.T, bin_tables, start, stop, rows, columns)

    run(work)
    return rows, columns
