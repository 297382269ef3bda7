"""Split search for one tree of several outputs: ``reference/one_tree`` is the definition.

Histograms are of a few features at a time, so that memory grows with the outputs and not with the features. They are
summed packed, g * 2**32 + h in one integer, several outputs to an instruction, and taken apart once for each bin.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.histograms.histogram import TILE

LANES = 4  # integers that are added together
AT_ONCE = 8  # features whose histograms are summed together, so that a row's integers are read once for all
ROOM = 1 << 15  # packed integers of these histograms, 256 KiB; one feature at least
_BINS = 257
_LOW = np.int64(0xFFFF_FFFF)


class VectorRows(NamedTuple):
    """Rows of the nodes that are searched.

    bins: (m, d) uint8; rows: (r,) int32 of all nodes, those of node i from begins[i] to ends[i]; packed: (m, s or
    more) int64, g * 2**32 + h of each output; totals: (nodes, s, 2) int64; units: (s, 2) float64.
    """

    bins: Any
    rows: Any
    begins: Any
    ends: Any
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


class Scratch(NamedTuple):
    """Memory of the search of one feature: its candidates, in order, and what is known of each.

    cuts, rows_left (_BINS,) int64; left (2, s, _BINS) float64: G and H on the left, whole numbers; terms (2, 4, _BINS)
    float64: of missing values that go right and left, the scores of both sides, then H of both, over the outputs.
    """

    cuts: Any
    rows_left: Any
    left: Any
    terms: Any


@kernel
def _scratch(s):
    """Room for the search of a feature."""
    cuts, rows_left = np.empty(_BINS, np.int64), np.empty(_BINS, np.int64)
    return cuts, rows_left, np.empty((2, s, _BINS)), np.empty((2, 4, _BINS))


@kernel
@inlined
def _pair(packed, cells, c, j):
    """G and H of output j in bin c: of the cells, or of packed ones if cells is None."""
    if cells is not None:  # decided when this is compiled
        return cells[c, j, 0], cells[c, j, 1]
    both = packed[c, j]
    return both >> 32, both & _LOW


@kernel
@inlined
def _candidates(packed, cells, s, b, categorical, missing, n_rows, cuts, rows_left):
    """Write the bins after which, or the categories at which, the node may be split, and the rows on the left then.

    A cut after a bin without rows is the one before it. Category b stands for all categories. Returns how many.
    """
    k, below = 0, np.int64(0)
    for c in range(b if missing or categorical else b - 1):
        count = _pair(packed, cells, c, s)[1]
        below = count if categorical else below + count
        if count > 0 or (c == 0 and not categorical):
            cuts[k], rows_left[k] = c, below
            k += 1
    if categorical and missing:
        cuts[k], rows_left[k] = b, n_rows - _pair(packed, cells, b, s)[1]
        k += 1
    return k


@kernel
@inlined
def _sum_left(packed, cells, b, categorical, total, cuts, k, left):
    """left[:, :, :k] = G and H of each output on the left of each candidate. float64 adds whole numbers exactly."""
    for i in range(k):
        c = cuts[i]
        for j in range(total.shape[0]):
            g, h = _pair(packed, cells, c, j)
            if categorical and c == b:
                left[0, j, i], left[1, j, i] = total[j, 0] - g, total[j, 1] - h
            elif categorical or i == 0:
                left[0, j, i], left[1, j, i] = g, h
            else:
                left[0, j, i], left[1, j, i] = left[0, j, i - 1] + g, left[1, j, i - 1] + h


@kernel
@inlined
def _add_terms(left, j, k, missing_g, missing_h, total_g, total_h, unit_g, unit_h, ridge, terms, way):
    """Add what output j adds to scores and H of both sides. Of an output without curvature there is no score."""
    for i in range(k):
        left_g, left_h = left[0, j, i] + missing_g, left[1, j, i] + missing_h
        g, h = left_g * unit_g, left_h * unit_h
        below = h + ridge
        terms[way, 0, i] += g * g / below if below > 0.0 else 0.0
        terms[way, 2, i] += h
        g, h = (total_g - left_g) * unit_g, (total_h - left_h) * unit_h
        below = h + ridge
        terms[way, 1, i] += g * g / below if below > 0.0 else 0.0
        terms[way, 3, i] += h


@kernel
def _search(packed, cells, b, categorical, total, n_rows, units, limits, parent, scratch, best_split):
    """best_split = gain, bin, whether missing ones go left, whether all categories do: the first of the largest gains.

    packed (_BINS, s + 1 or more) int64, column s of which counts rows; or cells (_BINS, s + 1, 2) int64, else None.
    total (s, 2) int64; scratch: ``Scratch``.
    """
    cuts, rows_left, left, terms = scratch
    s, n_missing = total.shape[0], _pair(packed, cells, b, total.shape[0])[1]
    missing = n_missing > 0 and limits.least_rows > 1
    for j in range(s if n_missing > 0 else 0):
        g, h = _pair(packed, cells, b, j)
        missing = missing or g != 0 or h != 0
    k = _candidates(packed, cells, s, b, categorical, missing, n_rows, cuts, rows_left)
    _sum_left(packed, cells, b, categorical, total, cuts, k, left)
    ways = 2 if missing and not categorical else 1
    for way in range(ways):
        terms[way, :, :k] = 0.0
        for j in range(s):
            g, h = _pair(packed, cells, b, j)
            _add_terms(
                left, j, k, np.float64(way * g), np.float64(way * h), np.float64(total[j, 0]), np.float64(total[j, 1]),
                units[j, 0], units[j, 1], limits.ridge, terms, way,
            )  # fmt: skip
    gain = max(limits.least_gain, limits.noise * parent)
    best_split[0] = 0.0
    for i in range(k):
        c = cuts[i]
        for way in range(ways if c < b - 1 else 1):
            n_left, h_left, h_right = rows_left[i] + way * n_missing, terms[way, 2, i] / s, terms[way, 3, i] / s
            both = terms[way, 0, i] + terms[way, 1, i]
            if not (both > 0.0 and both - parent > gain and h_left > 0.0 and h_right > 0.0):
                continue
            if min(n_left, n_rows - n_left) < limits.least_rows or min(h_left, h_right) < limits.least_h:
                continue
            gain = both - parent
            best_split[0], best_split[1], best_split[3] = gain, c, c == b
            best_split[2] = way == 1 or (h_left > h_right and not missing)


@kernel
def _add_rows(rows, f, begin, end, cells, counts):
    """cells, counts += those of the rows begin .. end - 1, by the bins of feature f."""
    for k in range(begin, end):
        row = rows.rows[k]
        c = np.uint64(rows.bins[row, f])
        counts[c] += 1
        for j in range(cells.shape[1]):
            both = rows.packed[row, j]
            cells[c, j, 0] += both >> 32
            cells[c, j, 1] += both & _LOW


@kernel
def _add_packed(rows, features, begin, end, packed):
    """packed += the integers of at most TILE rows begin .. end - 1, by the bins of each of these features.

    packed (features, _BINS, columns of rows.packed) int64.
    """
    values, sums, width = rows.packed.reshape(-1), packed.reshape(-1), np.uint64(packed.shape[2])
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for k in range(begin, end):
        row = np.uint64(rows.rows[k])
        for i in range(features.shape[0]):
            c = np.uint64(rows.bins[row, np.uint64(features[i])])
            q = (np.uint64(i) * np.uint64(_BINS) + c) * width
            for p in range(row * width, (row + one) * width, np.uint64(LANES)):
                a, b, c, d = values[p], values[p + one], values[p + two], values[p + three]
                a, b, c, d = sums[q] + a, sums[q + one] + b, sums[q + two] + c, sums[q + three] + d
                sums[q], sums[q + one], sums[q + two], sums[q + three] = a, b, c, d
                q += np.uint64(LANES)


@kernel
def _take_apart(packed, b, cells):
    """cells += packed sums of a feature, which become 0. Both: see ``_search``."""
    for c in range(b + 1):
        for j in range(cells.shape[1]):
            cells[c, j, 0] += packed[c, j] >> 32
            cells[c, j, 1] += packed[c, j] & _LOW
            packed[c, j] = 0


@kernel
def _clear(packed, b, s):
    """Make the sums of a feature 0, where it has rows."""
    for c in range(b + 1):
        if packed[c, s] != 0:
            for j in range(packed.shape[1]):
                packed[c, j] = 0


@kernel
def _search_many(rows, f, begin, end, limits, b, categorical, total, parent, scratch, packed, best_split):
    """``_search`` of a feature and a node of more than TILE rows, whose sums do not fit packed ones."""
    cells, one = np.zeros((_BINS, total.shape[0] + 1, 2), np.int64), np.full(1, f)
    for tile in range(begin, end, TILE):
        _add_packed(rows, one, tile, min(tile + TILE, end), packed)
        _take_apart(packed[0], b, cells)
    _search(packed[0], cells, b, categorical, total, end - begin, rows.units, limits, parent, scratch, best_split)


@kernel
def best_splits(rows, limits, competes, n_bins, categorical, first, last, found):
    """found[i, f] of each node i and the features first .. last - 1 that compete: see ``_search``.

    rows: ``VectorRows``; its packed integers have a multiple of LANES columns: the outputs, a 1, and zeros. limits:
    ``VectorLimits``, as plain tuples; competes (nodes, d) bool; n_bins (d,) int32; categorical (d,) bool; found
    (nodes, d, 4) float64, 0 where there is no split.
    """
    rows, limits = VectorRows(*rows), VectorLimits(*limits)
    s, width = rows.units.shape[0], rows.packed.shape[1]
    at_once, scratch = max(1, min(AT_ONCE, ROOM // (_BINS * width))), _scratch(s)
    packed, features = np.zeros((at_once, _BINS, width), np.int64), np.empty(last - first, np.int64)
    for i in range(competes.shape[0]):
        begin, end, total, t = rows.begins[i], rows.ends[i], rows.totals[i], 0
        parent = _score(total, rows.units, limits.ridge)
        for f in range(first, last):
            if competes[i, f]:
                features[t] = f
                t += 1
        for some in range(0, t, at_once):
            together = features[some : min(some + at_once, t)]
            if end - begin <= TILE:
                _add_packed(rows, together, begin, end, packed)
            for k in range(together.shape[0]):
                f = together[k]
                b, of_feature = n_bins[f], found[i, f]
                if end - begin > TILE:
                    _search_many(
                        rows, f, begin, end, limits, b, categorical[f], total, parent, scratch, packed, of_feature
                    )
                    continue
                _search(
                    packed[k], None, b, categorical[f], total, end - begin, rows.units, limits, parent, scratch,
                    of_feature,
                )  # fmt: skip
                _clear(packed[k], b, s)


@kernel
def histograms(rows, lines, first, last, cells, counts):
    """cells[i], counts[i] += those of line i, a node and a feature, for the lines first .. last - 1.

    rows: ``VectorRows``, as a plain tuple; lines (l, 2) int64; cells (l, 256, s, 2), counts (l, 256) int64.
    """
    rows = VectorRows(*rows)
    for i in range(first, last):
        node = lines[i, 0]
        _add_rows(rows, lines[i, 1], rows.begins[node], rows.ends[node], cells[i], counts[i])


@kernel
def search_histograms(rows, limits, lines, n_bins, categorical, first, last, cells, counts, found):
    """found[i] of the lines first .. last - 1: see ``_search`` and ``histograms``. Of rows, only how many is looked at.

    found (l, 4) float64.
    """
    rows, limits = VectorRows(*rows), VectorLimits(*limits)
    s = rows.units.shape[0]
    of_line, scratch, none = np.empty((_BINS, s + 1, 2), np.int64), _scratch(s), np.empty((0, 0), np.int64)
    for i in range(first, last):
        node, f = lines[i, 0], lines[i, 1]
        n_rows, total = rows.ends[node] - rows.begins[node], rows.totals[node]
        parent = _score(total, rows.units, limits.ridge)
        for c in range(n_bins[f] + 1):
            of_line[c, :s] = cells[i, c]
            of_line[c, s, 1] = counts[i, c]
        _search(none, of_line, n_bins[f], categorical[f], total, n_rows, rows.units, limits, parent, scratch, found[i])


@kernel
def sums_of_rows(packed, rows, out):
    """out (s, 2) += g and h of these rows."""
    for row in rows:
        for j in range(out.shape[0]):
            both = packed[row, j]
            out[j, 0] += both >> 32
            out[j, 1] += both & _LOW
