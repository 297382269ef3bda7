"""The pieces of spaces: a feature's bins as an axis, B-splines, penalties and their weight.

Everything is computed once a fit. A bin is represented by the median of its training values, so a feature of up to 255
distinct values is represented exactly. Degrees of freedom are tr(2S - S'S), S being the smoother for rows of equal
curvature.
"""

from __future__ import annotations

from dataclasses import field
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.smoothing import Smoothing
from gpuboost.components import Grid, Space
from gpuboost.losses.averages import exact_sum
from gpuboost.records import dataclass
from gpuboost.types import DeviceMatrix, TrainingSet

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The bins of one feature, and the training rows in them."""

    feature: int
    grid: Grid
    weight: Floats  # (c,) of the rows in each cell but the last; the one for missing values last, if there are any
    at: Floats  # (b,) the median of each bin's values; the upper end of an empty bin
    has_missing: bool

    @property
    def varies(self) -> bool:
        """True unless all known values of a numeric feature are equal."""
        return len(self.at) > 1 and bool(self.at[0] < self.at[-1])

    @property
    def rank(self) -> Floats:
        """(b,) the share of the known rows below the middle of each bin."""
        known = self.weight[: len(self.at)]
        return np.asarray((np.cumsum(known) - known / 2) / max(exact_sum(known), 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """The axes of the features of a training set, each made at its first use."""

    data: TrainingSet
    smoothing: Smoothing
    _made: dict[int, Axis] = field(default_factory=dict)

    def of(self, feature: int) -> Axis:
        if feature not in self._made:  # its values are sorted, which takes longer than all the rest
            self._made[feature] = axis_of(self.data, feature, self.smoothing)
        return self._made[feature]


def axis_of(data: TrainingSet, feature: int, smoothing: Smoothing) -> Axis:
    """Axis of one feature. ``at`` is meaningless (zeros) for a categorical feature."""
    b = int(data.cuts.n_bins[feature])
    codes = smoothing.codes(data.bins, feature)
    weight = weight_of_cells(codes, data, b + 1)
    has_missing = bool(weight[b] > 0.0)
    cells = np.full(256, b + has_missing, np.int32)
    cells[: b + has_missing] = np.arange(b + has_missing)
    grid = Grid((feature,), (cells,), b + has_missing + 1)
    categorical = data.cuts.categories[feature] is not None
    centres = np.zeros(b) if categorical else _medians(data, feature, b)
    return Axis(feature, grid, weight[: b + has_missing], centres, has_missing)


def weight_of_cells(cell_of_row: NDArray[Any], data: TrainingSet, cells: int) -> Floats:
    """(cells,) weight of the rows in each."""
    return np.bincount(cell_of_row, data.row_weight(), cells).astype(np.float64)


def _medians(data: TrainingSet, feature: int, b: int) -> Floats:
    """(b,) the lower median of the rows in each bin, a row of weight 3 being three; of an empty bin its upper end."""
    column = int(data.cuts.columns[feature])
    if isinstance(data.x, DeviceMatrix):
        x = data.x.host_column(column)
    else:
        x = data.x[:, [column]].toarray()[:, 0] if hasattr(data.x, "toarray") else data.x[:, column]
    x = np.asarray(x, np.float64)
    flat = data.weight is None and data.multiplicity is None
    order = None if flat else np.argsort(x, kind="stable")
    x = np.sort(x) if order is None else x[order]
    x = x[: len(x) - int(np.isnan(x).sum())]
    if len(x) == 0:  # all missing
        return np.zeros(b)
    thresholds = data.cuts.thresholds[feature]
    ends = np.append(np.searchsorted(x, thresholds, side="right"), len(x))
    begins = np.concatenate([[0], ends[:-1]])
    empty = np.append(thresholds, thresholds[-1:] if b > 1 else [0.0])
    if order is None:
        middle = (begins + ends - 1) // 2
    else:
        below = np.concatenate([[0.0], np.cumsum(data.row_weight()[order[: len(x)]])])  # weight of the rows before each
        middle = np.searchsorted(below[1:], (below[begins] + below[ends]) / 2.0)
    return np.where(ends > begins, x[np.minimum(middle, len(x) - 1)], empty)


def b_splines(u: Floats, pieces: int, degree: int) -> tuple[NDArray[np.int32], Floats]:
    """B-splines on equidistant knots over [u[0], u[-1]]: first (c,) and the values (c, degree + 1) from there on."""
    position = np.clip((u - u[0]) / (u[-1] - u[0]) * pieces if u[-1] > u[0] else np.zeros(len(u)), 0.0, float(pieces))
    first = np.minimum(position.astype(np.int32), pieces - 1)
    t = position - first
    values = np.zeros((len(u), degree + 1))
    values[:, 0] = 1.0
    for k in range(1, degree + 1):  # Cox and de Boor: from degree k - 1 to k
        before, values = values, np.zeros_like(values)
        for j in range(k):
            up = (t + (k - 1 - j)) / k
            values[:, j + 1] += before[:, j] * up
            values[:, j] += before[:, j] * (1.0 - up)
    return first, values


def difference_penalty(q: int, order: int) -> Floats:
    """D'D as upper band (q, order + 1), D being the differences of that order."""
    d = np.diff(np.eye(q), order, axis=0)
    full = d.T @ d  # of small integers, so exact in any order
    band = np.zeros((q, order + 1))
    for j in range(order + 1):
        band[: q - j, j] = np.diagonal(full, j)
    return band


def space_on(family: str, axis: Axis, first: NDArray[np.int32], basis: Floats, penalty: Floats, ridge: float) -> Space:
    """Space of a basis, with one more coefficient for missing values if there are any; else they count as the mean."""
    q, w = len(penalty), max(basis.shape[1], penalty.shape[1])
    size = q + axis.has_missing
    wide_basis, wide_penalty = np.zeros((len(axis.weight), w)), np.zeros((size, w))
    wide_basis[: len(basis), : basis.shape[1]] = basis
    wide_penalty[:q, : penalty.shape[1]] = penalty
    firsts = np.full(len(axis.weight), size - 1, np.int32)
    firsts[: len(first)] = first
    if axis.has_missing:
        wide_basis[-1, 0], wide_penalty[-1, 0] = 1.0, 1.0
    mean = np.zeros(size)
    share = axis.weight / exact_sum(axis.weight)
    for c in range(len(share)):
        stop = min(w, size - int(firsts[c]))
        mean[firsts[c] : firsts[c] + stop] += share[c] * wide_basis[c, :stop]
    return Space(family, axis.grid, firsts, wide_basis, mean, wide_penalty, ridge)


def calibrated(space: Space, weight: Floats, df: float, smoothing: Smoothing) -> Space:
    """The space with the ridge that gives ``df`` degrees of freedom; a minimal ridge if it has no more than that."""
    gram = smoothing.gram(weight, space.first, space.basis, space.size)
    total = exact_sum(weight)
    scale = exact_sum(gram[:, 0]) / exact_sum(space.penalty[:, 0])
    low, high = 1e-10 * scale, 1e10 * scale
    ridge = low
    if smoothing.degrees_of_freedom(gram, space.penalty, low) > df:
        for _ in range(200):
            ridge = sqrt(low) * sqrt(high)
            now = smoothing.degrees_of_freedom(gram, space.penalty, ridge)
            if abs(now - df) < 1e-8 or not low < ridge < high:
                break
            low, high = (ridge, high) if now > df else (low, ridge)
    return Space(space.family, space.grid, space.first, space.basis, space.mean, space.penalty, ridge / total)
