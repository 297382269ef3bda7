"""Definition of the verbs for components, in plain NumPy and Python, with every sum in the defined order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpuboost.backends.prediction.routing import codes_of
from gpuboost.backends.smoothing import Fits, SmoothingPlan, Tables
from gpuboost.components import Grid, SmoothTerm, TreeComponent
from gpuboost.types import Array, Bins, Cuts, Gradients, Structure, TrainingSet

TINY = 1e-12
BLOCK = 1 << 16

Integers = Callable[[Gradients, int], tuple[Array, Array, tuple[float, float]]]
RouteRows = Callable[[Any, Array, Cuts], Array]


class ReferenceSmoothing:
    """``integers``, ``dense_rows`` and ``route`` are those of ``Reference``."""

    def __init__(self, integers: Integers, dense_rows: Callable[[Bins], Array], route: RouteRows) -> None:
        self._integers, self._dense_rows, self._route = integers, dense_rows, route

    def gram(self, h: Array, first: Array, basis: Array, size: int) -> Array:
        out = np.zeros((size, basis.shape[1]))
        for c in range(len(h)):
            b = basis[c, : size - first[c]]
            for i in range(len(b)):
                out[first[c] + i, : len(b) - i] += (h[c] * b[i]) * b[i:]
        return out

    def degrees_of_freedom(self, gram: Array, penalty: Array, ridge: float) -> float:
        q = len(gram)
        a, m = _factored(gram + ridge * penalty), np.zeros((q, q))
        for i in range(q):
            unit = np.zeros(q)
            unit[i] = 1.0
            m[i] = _solved(a, _times(gram, unit))
        once, twice = 0.0, 0.0
        for i in range(q):
            once += float(m[i, i])
            for j in range(q):
                twice += float(m[i, j]) * float(m[j, i])
        return 2.0 * once - twice

    def codes(self, bins: Bins, feature: int) -> Array:
        return codes_of(bins, feature)

    def cells(self, gradients: Gradients, rows: Array | None, output: int, grid: Grid, bins: Bins) -> Array:
        g, h, units = self._integers(gradients, output)
        cell = self._cell_of_row(grid, bins)
        cell = cell if rows is None else cell[rows]
        sums = np.zeros((grid.n_cells, 2), np.int64)
        np.add.at(sums[:, 0], cell, g)
        np.add.at(sums[:, 1], cell, h)
        return sums * np.array(units)

    def fit(
        self, plan: SmoothingPlan, gradients: Gradients, rows: Array | None, output: int, chosen: Array, bins: Bins
    ) -> Fits:
        results, coefficients = np.zeros((len(chosen), 3)), []
        for t, s in enumerate(chosen.tolist()):
            space = plan.spaces[s]
            sums = self.cells(gradients, rows, output, space.grid, bins)[:-1]
            g, h = sums[:, 0], sums[:, 1]
            gram, total = self.gram(h, space.first, space.basis, space.size), 0.0
            for value in h.tolist():
                total += value
            right = np.zeros(space.size)
            for c in np.flatnonzero(g):
                b = space.basis[c, : space.size - space.first[c]]
                right[space.first[c] : space.first[c] + len(b)] -= g[c] * b
            coef = _solved(_factored(gram + (space.ridge * total) * space.penalty), right)
            slope, curvature = _dot(right, coef), _dot(_times(gram, coef), coef)
            results[t] = 2.0 * slope - curvature, slope, curvature
            coefficients.append(coef)
        return Fits(results[:, 0], results[:, 1], results[:, 2], coefficients)

    def values(self, component: SmoothTerm) -> Array:
        space, coef = component.space, component.coefficients
        cells = [
            _dot(b[: len(coef) - start], coef[start : start + len(b)])
            for start, b in zip(space.first, space.basis, strict=True)
        ]
        return np.array([*cells, _dot(space.mean, coef)])

    def add(self, scores: Array, steps: Array, grid: Grid, bins: Bins) -> None:
        scores += steps[self._cell_of_row(grid, bins)]

    def add_all(self, scores: Array, tables: Tables, bins: Bins) -> None:
        for grid, steps in tables:
            self.add(scores, steps, grid, bins)

    def kept_tree(self, structure: Structure, own_sums: bool) -> tuple[Structure, Array, Array]:
        return with_sums(structure, own_sums)

    def fit_lines(
        self, structure: Structure, gradients: Gradients, data: TrainingSet, leaf_of_row: Array, features: Array,
        centres: Array, ridge: float, reg_lambda: float,
    ) -> tuple[Array, Array]:  # fmt: skip
        v, s = features.shape
        codes, (g, h) = self._dense_rows(data.bins), _weighted(gradients, structure.output)
        moments = np.zeros((v, s + 2, s + 1))  # of 1 and the features: products, and below them those with g
        for begin in range(0, data.n_rows, BLOCK):
            part = np.zeros_like(moments)
            for i in range(begin, min(begin + BLOCK, data.n_rows)):
                leaf = leaf_of_row[i]
                z = np.array([1.0, *(centres[f, codes[i, f]] if f >= 0 else 0.0 for f in features[leaf])])
                part[leaf, : s + 1] += (h[i] * z)[:, None] * z
                part[leaf, s + 1] += g[i] * z
            moments += part
        weights = np.bincount(leaf_of_row, data.row_weight(), len(moments))
        return lines_of(moments, weights, structure, ridge, reg_lambda, self)

    def solved(self, a: Array, x: Array) -> Array:
        """The solution of the system of upper band a."""
        return _solved(_factored(a), x)

    def add_lines(self, scores: Array, component: TreeComponent, factor: float, bins: Bins, cuts: Cuts) -> None:
        codes, tree = self._dense_rows(bins), component.tree
        assert component.features is not None
        assert component.slopes is not None
        assert component.centres is not None
        leaf = self._route(tree.nodes, codes, cuts)
        values = tree.value[leaf]
        for j in range(component.features.shape[1]):
            f, slope = component.features[leaf, j], component.slopes[leaf, j]
            centre = component.centres[np.maximum(f, 0), codes[np.arange(len(codes)), np.maximum(f, 0)]]
            values = values + np.where(f >= 0, slope * centre, 0.0)
        scores += factor * values

    def _cell_of_row(self, grid: Grid, bins: Bins) -> Array:
        codes = self._dense_rows(bins)
        parts = [cells[codes[:, f]] for f, cells in zip(grid.features, grid.cells, strict=True)]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def with_sums(structure: Structure, own_sums: bool) -> tuple[Structure, Array, Array]:
    """``Smoothing.kept_tree`` of a structure in the host's memory."""
    assert structure.sums is not None
    g, h = (part[structure.nodes.is_leaf] for part in structure.sums)
    return structure if own_sums else replace(structure, sums=None), g, h


def lines_of(
    moments: Array, weights: Array, structure: Structure, ridge: float, reg_lambda: float, solver: Any
) -> tuple[Array, Array]:
    """Constants and slopes from sums in each leaf: moments (v, s + 2, s + 1), and weights (v,) of its rows.

    The ridge is on slopes, times the leaf's mean curvature of a row of weight 1.
    """
    nodes, s = structure.nodes, moments.shape[2] - 1
    value, slopes = np.zeros(len(moments)), np.zeros((len(moments), s))
    for leaf in np.flatnonzero(nodes.is_leaf & (moments[:, 0, 0] > 0.0)):
        band = np.zeros((s + 1, s + 1))
        for i in range(s + 1):
            band[i, : s + 1 - i] = moments[leaf, i, i:]
        weight = ridge * (moments[leaf, 0, 0] / weights[leaf])
        band[0, 0] += reg_lambda
        band[1:, 0] = np.where(band[1:, 0] > 0.0, band[1:, 0] + weight, 0.0)
        coefficients = solver.solved(band, -moments[leaf, s + 1])
        value[leaf], slopes[leaf] = coefficients[0], coefficients[1:]
    return value + 0.0, slopes + 0.0


def _weighted(gradients: Gradients, output: int) -> tuple[Array, Array]:
    """(n,) float64 g and h times the multiplicity."""
    g, h = gradients.g[output].astype(np.float64), gradients.h[output].astype(np.float64)
    m = gradients.multiplicity
    return (g, h) if m is None else (g * m, h * m)


def _factored(band: Array) -> Array:
    """L D L' of the symmetric matrix of that upper band: D in column 0, D L' beside it."""
    a = band.copy()
    q, w = a.shape
    least = TINY * a[:, 0]
    for i in range(q):
        if not a[i, 0] > least[i]:
            a[i] = 0.0
            continue
        for j in range(1, min(w, q - i)):
            share, stop = a[i, j] / a[i, 0], min(w, q - i)
            if share != 0.0:
                a[i + j, : stop - j] -= share * a[i, j:stop]
    return a


def _solved(a: Array, right: Array) -> Array:
    x = right.copy()
    q, w = a.shape
    for i in range(q):
        if a[i, 0] > 0.0:
            stop = min(w, q - i)
            x[i + 1 : i + stop] -= a[i, 1:stop] * (x[i] / a[i, 0])
    for i in range(q - 1, -1, -1):
        rest = float(x[i])
        for j in range(1, min(w, q - i)):
            rest -= float(a[i, j]) * float(x[i + j])
        x[i] = rest / a[i, 0] if a[i, 0] > 0.0 else 0.0
    return x


def _times(a: Array, x: Array) -> Array:
    q, w = a.shape
    out = np.zeros(q)
    for i in range(q):
        out[i] += a[i, 0] * x[i]
        for j in range(1, min(w, q - i)):
            out[i] += a[i, j] * x[i + j]
            out[i + j] += a[i, j] * x[i]
    return out


def _dot(x: Array, y: Array) -> float:
    total = 0.0
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        total += a * b
    return total
