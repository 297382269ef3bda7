"""quantise for sparse matrices: the same bins as ``binning``, kept only where they differ from the bin of zero.

    1  code_entries    the bin of every stored entry, and how many of a row stay
    2  keep_entries    those that stay, row by row
    3  by_column       the same entries, column by column (a counting sort: rows stay in order)

Threads share the rows in all three. In 3 each one is told where its entries of each column begin.
"""

import numpy as np

from gpuboost.kernels.binning.binning import rounded_down
from gpuboost.kernels.common.jit import kernel


@kernel
def code_entries(row_start, feature, values, thresholds, first, default, start, stop, code, stays):
    """Rows start .. stop - 1.

    row_start, feature, values: a CSR matrix; thresholds: of all features end to end, in the dtype of the values;
    first: (d + 1,) where a feature's thresholds begin; default: (d,) uint8 the bin of zero.
    Writes code: (nnz,) uint8, and stays: (n,) int64, the entries of a row that are not in the default bin.
    """
    for i in range(start, stop):
        count = 0
        for k in range(row_start[i], row_start[i + 1]):
            f, x = feature[k], values[k]
            low, high = first[f], first[f + 1]
            position = high + 1 if np.isnan(x) else low  # missing: one past the last value bin
            while position < high:  # few thresholds: most columns of a wide matrix hold few values
                middle = (position + high) >> 1
                if thresholds[middle] < x:
                    position = middle + 1
                else:
                    high = middle
            code[k] = position - low
            count += code[k] != default[f]
        stays[i] = count


@kernel
def keep_entries(row_start, feature, code, default, start, stop, kept_start, kept_feature, kept_bin):
    """The entries of rows start .. stop - 1 that are not in the default bin, to kept_start[start] and on."""
    position = kept_start[start]
    for k in range(row_start[start], row_start[stop]):
        f = feature[k]
        if code[k] != default[f]:
            kept_feature[position] = f
            kept_bin[position] = code[k]
            position += 1


@kernel
def count_columns(feature, start, stop, count):
    """Count the entries start .. stop - 1 of each column."""
    for k in range(start, stop):
        count[feature[k]] += 1


@kernel
def by_column(row_start, feature, row_bin, start, stop, next_entry, row, column_bin):
    """Put the entries of rows start .. stop - 1 into their columns; ``next_entry`` (d,) says where, and moves on."""
    for i in range(start, stop):
        for k in range(row_start[i], row_start[i + 1]):
            f = feature[k]
            row[next_entry[f]] = i
            column_bin[next_entry[f]] = row_bin[k]
            next_entry[f] += 1


def sparse_bins(row_start, feature, values, thresholds, run, parts):
    """The arrays of ``types.SparseBins``, in its order, from those of a CSR matrix in canonical form.

    thresholds: d arrays of float64; run, parts: ``run(work)`` calls ``work(0) .. work(parts - 1)``, maybe at once.
    """
    n, d = len(row_start) - 1, len(thresholds)
    row_start, feature = row_start.astype(np.int64, copy=False), feature.astype(np.int32, copy=False)  # one compilation
    first = np.concatenate([[0], np.cumsum([len(t) for t in thresholds], dtype=np.int64)])
    flat = rounded_down(np.concatenate(thresholds), values.dtype.type)
    default = np.array([np.searchsorted(t, 0.0, side="left") for t in thresholds], dtype=np.uint8)
    code, stays = np.empty(len(values), np.uint8), np.empty(n, np.int64)
    edges = _even(row_start, parts)

    run(
        lambda part: code_entries(
            row_start, feature, values, flat, first, default, edges[part], edges[part + 1], code, stays
        )
    )
    kept_start = np.concatenate([[0], np.cumsum(stays)])
    kept_feature, kept_bin = np.empty(kept_start[-1], np.int32), np.empty(kept_start[-1], np.uint8)
    count = np.zeros((parts, d), np.int64)

    def keep(part):
        start, stop = edges[part], edges[part + 1]
        keep_entries(row_start, feature, code, default, start, stop, kept_start, kept_feature, kept_bin)
        count_columns(kept_feature, kept_start[start], kept_start[stop], count[part])

    run(keep)
    column_start = np.concatenate([[0], np.cumsum(count.sum(axis=0))])
    next_entry = column_start[:-1] + np.cumsum(count, axis=0) - count
    row, column_bin = np.empty(kept_start[-1], np.int32), np.empty(kept_start[-1], np.uint8)
    run(
        lambda part: by_column(
            kept_start, kept_feature, kept_bin, edges[part], edges[part + 1], next_entry[part], row, column_bin
        )
    )
    return default, kept_start, kept_feature, kept_bin, column_start, row, column_bin


def _even(row_start, parts):
    """Row numbers that cut the matrix into stretches of about the same number of entries."""
    n = len(row_start) - 1
    edges = np.searchsorted(row_start, np.linspace(0, row_start[-1], parts + 1))
    edges[0], edges[-1] = 0, n
    return edges
