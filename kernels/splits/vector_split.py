"""Split search for one tree of several outputs: ``reference/one_tree`` is the definition.

Histograms are of one feature at a time, so that memory grows with the outputs and not with the features.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuboost.kernels.common.jit import kernel


class VectorRows(NamedTuple):
    """Rows of the nodes that are searched.

    columns: (d, m) uint8; rows: (r,) int64 of all nodes, those of node i from begins[i] to begins[i + 1]; packed:
    (m, s) int64, g * 2**32 + h of each output; totals: (nodes, s, 2) int64; units: (s, 2) float64.
    """

    columns: Any
    rows: Any
    begins: Any
    packed: Any
    totals: Any
    units: Any


class VectorLimits(NamedTuple):
    """Limits that a split must satisfy; noise: the share of a node's score that a gain must exceed."""

    ridge: float
    least_h: float
    least_rows: int
    least_gain: float
    noise: float


@kernel
def _score(sums, units, ridge):
    """Sum over the outputs of G^2 / (H + ridge). sums (s, 2) int64."""
    total = 0.0
    for j in range(sums.shape[0]):
        g, below = sums[j, 0] * units[j, 0], sums[j, 1] * units[j, 1] + ridge
        if below > 0.0:
            total += g * g / below
    return total


@kernel
def _sides(left, total, units, rows_left, rows_right, limits):
    """Scores of both sides in sum, 0 if one is not allowed; and whether the left one has the larger mean H."""
    score_left, score_right, h_left, h_right = 0.0, 0.0, 0.0, 0.0
    for j in range(left.shape[0]):
        unit_g, unit_h = units[j, 0], units[j, 1]
        g, h = left[j, 0] * unit_g, left[j, 1] * unit_h
        h_left += h
        below = h + limits.ridge
        if below > 0.0:
            score_left += g * g / below
        g, h = (total[j, 0] - left[j, 0]) * unit_g, (total[j, 1] - left[j, 1]) * unit_h
        h_right += h
        below = h + limits.ridge
        if below > 0.0:
            score_right += g * g / below
    h_left, h_right = h_left / left.shape[0], h_right / left.shape[0]
    allowed = h_left > 0.0 and h_left >= limits.least_h and h_right > 0.0 and h_right >= limits.least_h
    if not allowed or rows_left < limits.least_rows or rows_right < limits.least_rows:
        return 0.0, False
    return score_left + score_right, h_left > h_right


@kernel
def _seen(cell, count, limits):
    """True if the node has rows of this bin."""
    for j in range(cell.shape[0]):
        if cell[j, 0] != 0 or cell[j, 1] != 0:
            return True
    return limits.least_rows > 1 and count > 0


@kernel
def _search(cells, counts, b, categorical, total, n_rows, units, limits, parent, left, best_split):
    """best_split = gain, bin, whether missing ones go left, whether all categories do: the first of the largest gains.

    cells (b + 1, s, 2) int64, counts (b + 1,) int64; left: room for (s, 2). A cut after a bin without rows is the one
    before it.
    """
    gain = max(limits.least_gain, limits.noise * parent)
    missing = _seen(cells[b], counts[b], limits)
    best_split[0] = 0.0
    left[:] = 0
    rows_left = np.int64(0)
    last = b if missing or categorical else b - 1
    for c in range(last + 1 if categorical and missing else last):
        only_missing = categorical and c == b
        if (categorical or c > 0) and not only_missing and not _seen(cells[c], counts[c], limits):
            rows_left += 0 if categorical else counts[c]
            continue
        for way in range(2 if missing and not categorical and c < b - 1 else 1):
            if only_missing:
                left[:] = total - cells[b]
                rows_left = n_rows - counts[b]
            elif categorical:
                left[:] = cells[c]
                rows_left = counts[c]
            elif way == 0:
                left += cells[c]
                rows_left += counts[c]
            else:
                left += cells[b]
                rows_left += counts[b]
            both, heavier = _sides(left, total, units, rows_left, n_rows - rows_left, limits)
            here = both - parent
            if both > 0.0 and here > gain:
                gain = here
                best_split[0], best_split[1], best_split[3] = gain, c, only_missing
                best_split[2] = way == 1 or (heavier and not missing)
            if way == 1:
                left -= cells[b]
                rows_left -= counts[b]


@kernel
def _add_rows(rows, f, begin, end, cells, counts):
    """cells, counts += those of the rows begin .. end - 1, by the bins of feature f."""
    column = rows.columns[f]
    for k in range(begin, end):
        row = rows.rows[k]
        c = np.uint64(column[row])
        counts[c] += 1
        for j in range(rows.packed.shape[1]):
            both = rows.packed[row, j]
            cells[c, j, 0] += both >> 32
            cells[c, j, 1] += both & np.int64(0xFFFF_FFFF)


@kernel
def best_splits(rows, limits, competes, n_bins, categorical, first, last, found):
    """found[i, f] of each node i and the features first .. last - 1 that compete: see ``_search``.

    rows: ``VectorRows``; limits: ``VectorLimits``, as plain tuples; competes (nodes, d) bool; n_bins (d,) int32;
    categorical (d,) bool; found (nodes, d, 4) float64, 0 where there is no split.
    """
    rows, limits = VectorRows(*rows), VectorLimits(*limits)
    s = rows.packed.shape[1]
    cells, counts = np.empty((257, s, 2), np.int64), np.empty(257, np.int64)
    left = np.empty((s, 2), np.int64)
    for i in range(competes.shape[0]):
        begin, end = rows.begins[i], rows.begins[i + 1]
        parent = _score(rows.totals[i], rows.units, limits.ridge)
        for f in range(first, last):
            if not competes[i, f]:
                continue
            b = n_bins[f]
            cells[: b + 1] = 0
            counts[: b + 1] = 0
            _add_rows(rows, f, begin, end, cells, counts)
            _search(
                cells[: b + 1], counts, b, categorical[f], rows.totals[i], end - begin, rows.units, limits, parent,
                left, found[i, f],
            )  # fmt: skip


@kernel
def histograms(rows, lines, first, last, cells, counts):
    """cells[i], counts[i] += those of line i, a node and a feature, for the lines first .. last - 1.

    rows: ``VectorRows``, as a plain tuple; lines (l, 2) int64; cells (l, 256, s, 2), counts (l, 256) int64.
    """
    rows = VectorRows(*rows)
    for i in range(first, last):
        node = lines[i, 0]
        _add_rows(rows, lines[i, 1], rows.begins[node], rows.begins[node + 1], cells[i], counts[i])


@kernel
def search_histograms(rows, limits, lines, n_bins, categorical, first, last, cells, counts, found):
    """found[i] of the lines first .. last - 1: see ``_search`` and ``histograms``. Of rows, only how many is looked at.

    found (l, 4) float64.
    """
    rows, limits = VectorRows(*rows), VectorLimits(*limits)
    left = np.empty((rows.totals.shape[1], 2), np.int64)
    for i in range(first, last):
        node, f = lines[i, 0], lines[i, 1]
        n_rows, total = rows.begins[node + 1] - rows.begins[node], rows.totals[node]
        parent = _score(total, rows.units, limits.ridge)
        _search(
            cells[i, : n_bins[f] + 1], counts[i], n_bins[f], categorical[f], total, n_rows, rows.units, limits, parent,
            left, found[i],
        )  # fmt: skip


@kernel
def sums_of_rows(packed, rows, out):
    """out (s, 2) += g and h of these rows."""
    for row in rows:
        for j in range(packed.shape[1]):
            both = packed[row, j]
            out[j, 0] += both >> 32
            out[j, 1] += both & np.int64(0xFFFF_FFFF)
