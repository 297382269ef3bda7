"""A stump of small data in one call: gradients as integers, sums of what competes, the search, the leaf of each row.

By ``fixed_point``, ``column_sums`` and ``stump``, one after the other: for a few thousand rows the calls themselves,
and what lies between them, would take longer than all that they do. One thread, numeric features, and no more rows
than packed histograms can hold.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuboost.kernels.common import fixed_point
from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.growth import stump
from gpuboost.kernels.histograms import column_sums
from gpuboost.kernels.splits import split
from gpuboost.kernels.splits.packed_split import MOST_RIDGE

FEATURE, BIN, LEFT, RIGHT = 0, 1, 2, 3  # lines of ``words``
NO_NUMBER, NOT_PLAIN = 0, -1  # in place of a number of nodes
GAIN, COVER, SUM_G, SUM_H = 0, 1, 2, 3  # lines of ``numbers``


class SparseColumns(NamedTuple):
    """Sparse bins by feature: see ``column_sums.build_by_entry``."""

    laid_out: Any  # (d, n) uint8: the columns in full, to route by; or (0, 0)
    default: Any  # (d,) uint8
    column_start: Any  # (d + 1,) int64
    row: Any  # (entries,) int32
    column_bin: Any  # (entries,) uint8
    bitmaps: Any  # (columns with a bitmap, words) uint64
    bitmap_of: Any  # (d,) int32


class StumpArrays(NamedTuple):
    """Output: the root and both leaves. Zeros at first, and -1 for features."""

    leaf_of_row: Any  # (n,) int32
    words: Any  # (4, 3) int32
    missing_left: Any  # (3,) bool
    numbers: Any  # (4, 3) float64
    counts: Any  # (3,) int64


@kernel
def _write(v, count, g, h, units, counts, numbers):
    """Write the count, the cover and the sums of a node."""
    counts[v] = count
    numbers[COVER, v], numbers[SUM_G, v], numbers[SUM_H, v] = h * units[1], g * units[0], h * units[1]


@kernel
def grow(
    g, h, multiplicity, weight, scale_h, features, n_bins, columns, sparse, packed, limits, signed, general, root, out
):
    """Returns the number of nodes, 1 or 3, and the scales of g and h.

    In place of the number, NO_NUMBER if a gradient is not finite, or NOT_PLAIN if ``general`` must not be None.

    g, h, multiplicity: see ``fixed_point.pack``; weight: the sum of the multiplicities; scale_h: what it is if that is
    known, else 0. features (t,) int32; n_bins (d,) int32; columns (d, n) uint8: dense bins; sparse: SparseColumns. One
    of the two is None, and numba leaves out what is done with it. packed (n,) int64, for sparse bins a multiple of 64:
    scratch memory. limits, weight: see ``stump.as_root``. general, root: see ``split.search``. out: StumpArrays,
    as a plain tuple.
    """
    out = StumpArrays(*out)
    n, t = g.shape[0], features.shape[0]
    scale_g = fixed_point.scale(g, multiplicity, np.float64(weight), 31)
    if scale_h == 0.0:
        scale_h = fixed_point.scale(h, multiplicity, np.float64(weight), 32)
    if not scale_g * scale_h > 0.0:
        return NO_NUMBER, scale_g, scale_h
    units, totals = (1.0 / scale_g, 1.0 / scale_h), np.zeros(2, np.int64)
    if general is None and not limits[0] < MOST_RIDGE * units[1]:
        return NOT_PLAIN, scale_g, scale_h
    starts, own_bins, defaults = np.empty(t + 1, np.uint64), np.empty(t, np.int32), np.empty(t, np.int64)
    starts[0] = 0
    for j in range(t):
        own_bins[j] = n_bins[features[j]]
        starts[j + 1] = starts[j] + np.uint64(own_bins[j] + 1)
        defaults[j] = -1
    histogram = np.empty((1, 2 * np.int64(starts[t])), np.int64)
    rows = g, h, multiplicity, scale_g, scale_h
    if columns is not None:
        column_sums.build(*rows, columns, features, starts, 0, n, True, packed, histogram[0], totals)
    if sparse is not None:
        for j in range(t):
            defaults[j] = sparse.default[features[j]]
        fixed_point.pack(*rows, 0, n, packed, totals)
        column_sums.build_by_entry(
            sparse.column_start, sparse.row, sparse.column_bin, sparse.bitmaps, sparse.bitmap_of, features, starts,
            packed, 0, t, True, histogram[0],
        )  # fmt: skip
    gains, splits, left_sets = np.zeros((1, t)), np.empty((1, t, 4), np.int64), np.empty((1, 0, 8), np.uint32)
    best = -1
    if totals[1] > 0 and totals[1] * units[1] >= 2.0 * limits[1] and n >= 2:
        node, new_pairs, value, rule = stump.as_root(n, (totals[0], totals[1], weight), units, limits, signed)
        first = np.int64(0)  # the number itself has a type of its own, for which numba would compile once more
        split.search(
            (features, starts, own_bins, np.empty(0, np.uint8), defaults), None, new_pairs,
            np.empty((1, 0), np.int64), node, stump.only_slot(histogram, n), (value, rule, root), first, t,
            general, np.empty((0, 0), np.bool_), np.empty((0, 0), np.int64), (gains, splits, left_sets),
        )  # fmt: skip
        best = stump.best_of(gains[0], 0, t)
    leaf_of_row, words, numbers, counts = out.leaf_of_row, out.words, out.numbers, out.counts
    if best < 0:
        leaf_of_row[:] = 0
        _write(0, n, totals[0], totals[1], units, counts, numbers)
        return 1, scale_g, scale_h
    best_split = splits[0, best]
    f, cut, missing_left = features[best], best_split[0], best_split[1] == 1
    words[FEATURE, 0], words[BIN, 0], words[LEFT, 0], words[RIGHT, 0] = f, cut, stump.LEFT, stump.RIGHT
    out.missing_left[0], numbers[GAIN, 0] = missing_left, gains[0, best]
    how, lefts = (cut, np.int64(n_bins[f]), missing_left), 0
    if columns is not None:
        lefts = stump.route(columns[f], *how, np.empty(0, np.uint32), False, 0, n, leaf_of_row)
    if sparse is not None:
        if sparse.laid_out.shape[0] > 0:
            lefts = stump.route(sparse.laid_out[f], *how, np.empty(0, np.uint32), False, 0, n, leaf_of_row)
        else:
            begin, end = sparse.column_start[f], sparse.column_start[f + 1]
            row, column_bin = sparse.row[begin:end], sparse.column_bin[begin:end]
            lefts = stump.route_entries(row, column_bin, sparse.default[f], *how, leaf_of_row)
    left_g, left_h = best_split[2], best_split[3]
    _write(0, n, totals[0], totals[1], units, counts, numbers)
    _write(stump.LEFT, lefts, left_g, left_h, units, counts, numbers)
    _write(stump.RIGHT, n - lefts, totals[0] - left_g, totals[1] - left_h, units, counts, numbers)
    return 3, scale_g, scale_h
