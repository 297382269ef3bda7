"""Penalised least squares on cells: a smoother's sums, its banded normal equations, and what it adds to scores.

A *cell* is a bin of one feature, or a pair of groups of bins of two. In a space of w overlapping basis functions the
normal equations have a band of w, held as upper band: ``a[i, j]`` is the entry of row i and column i + j. ``Reference``
has the definitions in ``gpuboost.backends.reference.smoothing``: same sums, same order.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuboost.kernels.common.jit import kernel

TILE = 65_535  # rows whose packed sums fit, whatever the scale (fixed_point.py)
TINY = 1e-12  # a pivot below this share of its diagonal is rounding: the basis functions are dependent


class Spaces(NamedTuple):
    """Spaces of basis functions, side by side; q functions and c cells each, s of them."""

    grid: Any  # (s,) int32: grid of each space
    cell_start: Any  # (grids + 1,) int64
    q_start: Any  # (s + 1,) int64
    width: Any  # (s,) int64: functions that overlap
    basis_start: Any  # (s + 1,) int64
    first: Any  # (s, most cells) int32: first function of each cell
    basis: Any  # float64: (c, w) of each space
    band_start: Any  # (s + 1,) int64
    penalty: Any  # float64: (q, w) of each space
    ridge: Any  # (s,) float64


@kernel
def cell_sums(packed, rows, a, lut_a, b, lut_b, sums):
    """sums[cell] = integers of g and h of the rows in it.

    packed (m,) int64; rows (m,) int32, or (0,) for all; a, b (n,) uint8 bins of the feature, or of both, and then b is
    not (0,); lut (256,) int32; sums (c, 2) int64, 0 at first.
    """
    held = np.zeros(sums.shape[0], np.int64)
    one_feature, every = b.shape[0] == 0, rows.shape[0] == 0
    for tile in range(0, packed.shape[0], TILE):
        end = min(tile + TILE, packed.shape[0])
        if one_feature and every:
            by_bin = np.zeros(256, np.int64)
            for i in range(tile, end):
                by_bin[np.uint64(a[i])] += packed[i]
            for code in range(256):
                held[np.uint64(lut_a[code])] += by_bin[code]
        else:
            for i in range(tile, end):
                row = np.uint64(i) if every else np.uint64(rows[i])
                cell = lut_a[np.uint64(a[row])]
                if not one_feature:
                    cell += lut_b[np.uint64(b[row])]
                held[np.uint64(cell)] += packed[i]
        for cell in range(sums.shape[0]):
            sums[cell, 0] += held[cell] >> 32
            sums[cell, 1] += held[cell] & np.int64(0xFFFF_FFFF)
            held[cell] = 0


@kernel
def add_table(scores, steps, a, lut_a, b, lut_b, start, stop):
    """scores[i] += steps[cell of row i] over rows [start, stop). steps (c,) float64."""
    if b.shape[0] == 0:
        by_bin = np.empty(256, np.float64)
        for code in range(256):
            by_bin[code] = steps[lut_a[code]]
        for i in range(start, stop):
            scores[i] += by_bin[np.uint64(a[i])]
    else:
        for i in range(start, stop):
            scores[i] += steps[lut_a[np.uint64(a[i])] + lut_b[np.uint64(b[i])]]


@kernel
def gram(h, first, basis, out):
    """out = sum over cells of h b b', upper band. h (c,), first (c,) int32, basis (c, w), out (q, w) float64."""
    out[:] = 0.0
    w, q = basis.shape[1], out.shape[0]
    for c in range(h.shape[0]):
        if h[c] == 0.0:
            continue
        for i in range(min(w, q - first[c])):
            weighted_basis = h[c] * basis[c, i]
            if weighted_basis != 0.0:
                for j in range(min(w, q - first[c]) - i):
                    out[first[c] + i, j] += weighted_basis * basis[c, i + j]


@kernel
def factor(a):
    """a = L D L' in place: D in column 0, D L' beside it. A row of pivot 0 is one that says nothing new."""
    q, w = a.shape
    least = np.empty(q, np.float64)
    for i in range(q):
        least[i] = TINY * a[i, 0]
    for i in range(q):
        if not a[i, 0] > least[i]:
            a[i, :] = 0.0
            continue
        for j in range(1, min(w, q - i)):
            share = a[i, j] / a[i, 0]
            if share != 0.0:
                for k in range(j, min(w, q - i)):
                    a[i + j, k - j] -= share * a[i, k]


@kernel
def solve(a, x):
    """x = the solution for the right-hand side x, by ``factor``'s a; 0 where the pivot is 0. x (q,) float64."""
    q, w = a.shape
    for i in range(q):
        if a[i, 0] > 0.0:
            by = x[i] / a[i, 0]
            for j in range(1, min(w, q - i)):
                x[i + j] -= a[i, j] * by
    for i in range(q - 1, -1, -1):
        if a[i, 0] > 0.0:
            rest = x[i]
            for j in range(1, min(w, q - i)):
                rest -= a[i, j] * x[i + j]
            x[i] = rest / a[i, 0]
        else:
            x[i] = 0.0


@kernel
def times(a, x, out):
    """out = A x for the symmetric A of upper band a."""
    q, w = a.shape
    out[:] = 0.0
    for i in range(q):
        out[i] += a[i, 0] * x[i]
        for j in range(1, min(w, q - i)):
            out[i] += a[i, j] * x[i + j]
            out[i + j] += a[i, j] * x[i]


@kernel
def dot(x, y):
    """The dot product, summed in order."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@kernel
def degrees_of_freedom(g, penalty, ridge):
    """tr(2 M - M M), M = (G + ridge P)^-1 G: that of the smoother. g, penalty (q, w) upper bands."""
    q = g.shape[0]
    a = g + ridge * penalty
    factor(a)
    m, unit = np.empty((q, q), np.float64), np.zeros(q, np.float64)
    for i in range(q):  # row i of m is column i of M
        unit[:] = 0.0
        unit[i] = 1.0
        times(g, unit, m[i])
        solve(a, m[i])
    once, twice = 0.0, 0.0
    for i in range(q):
        once += m[i, i]
        for j in range(q):
            twice += m[i, j] * m[j, i]
    return 2.0 * once - twice


@kernel
def fit(g, h, first, basis, penalty, ridge, known, kept, coef, work):
    """Penalised least squares of -g / h with weights h; returns (drop of the sum of squares, -<g, f>, <f, h f>).

    g, h (c,); ridge times sum h is the weight of the penalty. kept (2, q, w): normal equations, and with the penalty,
    factored; made anew unless they are ``known``. coef, work (q,) are written to.
    """
    if not known:
        gram(h, first, basis, kept[0])
        total = 0.0
        for c in range(h.shape[0]):
            total += h[c]
        weight = ridge * total
        for i in range(kept.shape[1]):
            for j in range(kept.shape[2]):
                kept[1, i, j] = kept[0, i, j] + weight * penalty[i, j]
        factor(kept[1])
    q = coef.shape[0]
    coef[:] = 0.0
    for c in range(g.shape[0]):
        if g[c] != 0.0:
            for i in range(min(basis.shape[1], q - first[c])):
                coef[first[c] + i] -= g[c] * basis[c, i]
    right = coef.copy()
    solve(kept[1], coef)
    times(kept[0], coef, work)
    slope, curvature = dot(right, coef), dot(work, coef)
    return 2.0 * slope - curvature, slope, curvature


@kernel
def fit_all(chosen, begin, end, spaces, sums, unit_g, unit_h, kept_h, kept, coef, results):
    """``fit`` of the spaces chosen[begin:end]: results (t, 3); coef is written at each space's place.

    spaces: Spaces; sums (cells, 2) int64, grid by grid, the last cell of each being that of unseen values; kept of the
    spaces lie side by side. kept_h (s, most cells) holds the h that ``kept`` was made of, and NaN at first.
    """
    cell_start, q_start, width, basis_start = spaces.cell_start, spaces.q_start, spaces.width, spaces.basis_start
    basis, penalty, band_start = spaces.basis, spaces.penalty, spaces.band_start
    for t in range(begin, end):
        s = chosen[t]
        lo = cell_start[spaces.grid[s]]
        c, w, q = cell_start[spaces.grid[s] + 1] - lo - 1, width[s], q_start[s + 1] - q_start[s]
        g, h = np.empty(c, np.float64), np.empty(c, np.float64)
        known = True
        for i in range(c):
            g[i], h[i] = sums[lo + i, 0] * unit_g, sums[lo + i, 1] * unit_h
            known &= kept_h[s, i] == h[i]
        bands = band_start[s], band_start[s + 1]
        results[t, 0], results[t, 1], results[t, 2] = fit(
            g,
            h,
            spaces.first[s, :c],
            basis[basis_start[s] : basis_start[s] + c * w].reshape(c, w),
            penalty[bands[0] : bands[1]].reshape(q, w),
            spaces.ridge[s],
            known,
            kept[2 * bands[0] : 2 * bands[1]].reshape(2, q, w),
            coef[q_start[s] : q_start[s + 1]],
            np.empty(q, np.float64),
        )
        for i in range(c):
            kept_h[s, i] = h[i]


@kernel
def expand(first, basis, coef, out):
    """out[cell] = sum of basis functions times coefficients. out (c,)."""
    w, q = basis.shape[1], coef.shape[0]
    for c in range(out.shape[0]):
        total = 0.0
        for i in range(min(w, q - first[c])):
            total += basis[c, i] * coef[first[c] + i]
        out[c] = total
