"""From families to spaces: the basis on the bins of each feature, and the weight of its penalty.

Everything is worked out once a fit. A bin stands for the median of its training values, so a feature of up to 255
distinct values is seen exactly. Degrees of freedom are tr(2S - S'S), S being the smoother for rows of equal curvature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.smoothing import Smoothing
from gpuboost.components import Grid, Space
from gpuboost.errors import InputError
from gpuboost.learners.families import CategoricalRidge, Linear, Spline, TensorSpline
from gpuboost.losses.averages import exact_sum
from gpuboost.types import Cuts, DeviceMatrix, TrainingSet

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One feature, as the training rows fill it."""

    feature: int
    grid: Grid
    weight: Floats  # (c,) of the rows in each cell but the last; the one for missing values last, if there are any
    at: Floats  # (b,) the median of each bin's values; of an empty bin, its upper end
    has_missing: bool

    @property
    def rank(self) -> Floats:
        """(b,) the share of the known rows below the middle of each bin."""
        known = self.weight[: len(self.at)]
        return np.asarray((np.cumsum(known) - known / 2) / max(exact_sum(known), 1.0))


def axis_of(data: TrainingSet, feature: int, smoothing: Smoothing) -> Axis:
    """Of a numeric feature, or of a categorical one, whose ``at`` means nothing."""
    b = int(data.cuts.n_bins[feature])
    codes = smoothing.codes(data.bins, feature)
    weight = _filled(codes, data, b + 1)
    has_missing = bool(weight[b] > 0.0)
    cells = np.full(256, b + has_missing, np.int32)
    cells[: b + has_missing] = np.arange(b + has_missing)
    grid = Grid((feature,), (cells,), b + has_missing + 1)
    categorical = data.cuts.categories[feature] is not None
    at = np.zeros(b) if categorical else _medians(data, feature, b)
    return Axis(feature, grid, weight[: b + has_missing], at, has_missing)


def _filled(cell_of_row: NDArray[Any], data: TrainingSet, cells: int) -> Floats:
    """(cells,) weight of the rows in each."""
    return np.bincount(cell_of_row, data.row_weight(), cells).astype(np.float64)


def _medians(data: TrainingSet, feature: int, b: int) -> Floats:
    column = int(data.cuts.columns[feature])
    if isinstance(data.x, DeviceMatrix):
        x = data.x.host_column(column)
    else:
        x = data.x[:, [column]].toarray()[:, 0] if hasattr(data.x, "toarray") else data.x[:, column]
    x = np.sort(np.asarray(x, np.float64))
    x = x[: len(x) - int(np.isnan(x).sum())]
    thresholds = data.cuts.thresholds[feature]
    ends = np.append(np.searchsorted(x, thresholds, side="right"), len(x))
    begins = np.concatenate([[0], ends[:-1]])
    empty = np.append(thresholds, thresholds[-1:] if b > 1 else [0.0])
    return np.where(ends > begins, x[np.minimum((begins + ends - 1) // 2, max(len(x) - 1, 0))], empty)


def spaces_of(
    family: Any, data: TrainingSet, smoothing: Smoothing, axes: dict[int, Axis] | None = None
) -> Iterator[Space]:
    """One for each feature, or pair, that the family is offered. ``axes``: those that are known, to be added to.

    Raises:
        InputError: if there is no feature of its kind, or a column that it names does not exist or is of another kind.
    """
    known = {} if axes is None else axes

    def axis_at(feature: int) -> Axis:
        if feature not in known:  # its values are sorted, which takes longer than all the rest
            known[feature] = axis_of(data, feature, smoothing)
        return known[feature]

    if isinstance(family, TensorSpline):
        for pair in family.pairs:
            first, second = (axis_at(_feature(data.cuts, family, one)) for one in pair)
            yield tensor(family, data, first, second, smoothing)
        return
    for feature in _features(data.cuts, family):
        axis = axis_at(feature)
        if isinstance(family, CategoricalRidge):
            yield categorical(family, axis, smoothing)
        elif len(axis.at) > 1 and axis.at[0] < axis.at[-1]:  # a constant has no shape
            yield linear(axis) if isinstance(family, Linear) else spline(family, axis, smoothing)


def grids_at_most(family: Any, cuts: Cuts) -> Iterator[Grid]:
    """Those of ``spaces_of``, for data of which nothing but the cuts is known: with as many cells as there may be.

    Raises:
        InputError: as ``spaces_of``.
    """
    if isinstance(family, TensorSpline):
        nothing = np.zeros(256, np.int32)
        for pair in family.pairs:
            first, second = (_feature(cuts, family, one) for one in pair)
            yield Grid((first, second), (nothing, nothing), (family.cells + 1) ** 2 + 1)
        return
    for feature in _features(cuts, family):
        yield Grid((feature,), (np.zeros(256, np.int32),), int(cuts.n_bins[feature]) + 2)


def linear(axis: Axis) -> Space:
    """Constant and slope; the latter's coefficient is that of x."""
    known = axis.weight[: len(axis.at)]
    basis = np.column_stack([np.ones(len(axis.at)), axis.at - exact_sum(known * axis.at) / exact_sum(known)])
    return _space("linear", axis, np.zeros(len(axis.at), np.int32), basis, np.zeros((2, 2)), 0.0)


def spline(family: Spline, axis: Axis, smoothing: Smoothing) -> Space:
    """A P-spline."""
    u = axis.rank if family.scale == "rank" else axis.at
    first, basis = b_splines(u, family.knots, family.degree)
    penalty = difference_penalty(family.knots + family.degree, family.difference)
    made = _space("spline", axis, first, basis, penalty, 1.0)
    return _calibrated(made, axis.weight, family.df, smoothing)


def categorical(family: CategoricalRidge, axis: Axis, smoothing: Smoothing) -> Space:
    """An effect for each cell."""
    c = len(axis.weight)
    mean = axis.weight / max(exact_sum(axis.weight), 1.0)
    ones = np.ones((c, 1))
    made = Space("categorical", axis.grid, np.arange(c, dtype=np.int32), ones, mean, ones, 1.0)
    return _calibrated(made, axis.weight, family.df, smoothing)


def tensor(family: TensorSpline, data: TrainingSet, a: Axis, b: Axis, smoothing: Smoothing) -> Space:
    """Products of two bases. It says nothing where one of the two features is missing."""
    parts = [_grouped(axis, family) for axis in (a, b)]
    (cells_a, basis_a), (cells_b, basis_b) = parts
    penalty = np.kron(_full(basis_a, family), np.eye(basis_b.shape[1]))
    penalty += np.kron(np.eye(basis_a.shape[1]), _full(basis_b, family))
    q, groups = len(penalty), len(basis_b)
    grid = Grid((a.feature, b.feature), (cells_a * groups, cells_b), len(basis_a) * groups + 1)
    codes = [smoothing.codes(data.bins, one.feature) for one in (a, b)]
    at = grid.cells[0][codes[0]] + grid.cells[1][codes[1]]
    weight = _filled(at, data, grid.n_cells)[:-1]
    basis = np.einsum("ik,jl->ijkl", basis_a, basis_b).reshape(-1, q)
    band = np.zeros((q, q))
    for i in range(q):
        band[i, : q - i] = penalty[i, i:]
    made = Space("tensor", grid, np.zeros(len(basis), np.int32), basis, np.zeros(q), band, 1.0)
    return _calibrated(made, weight, family.df, smoothing)


def _grouped(axis: Axis, family: TensorSpline) -> tuple[NDArray[np.int32], Floats]:
    """The group of each bin, (256,), and the basis in each group; the last group, of what is missing, has none."""
    u = axis.rank
    group = np.unique(np.minimum((u * family.cells).astype(np.int64), family.cells - 1), return_inverse=True)[1]
    known = axis.weight[: len(u)]
    middle = np.bincount(group, u * known) / np.maximum(np.bincount(group, known), 1e-300)
    first, values = b_splines(middle, family.knots, family.degree)
    basis = np.zeros((len(middle) + 1, family.knots + family.degree))
    for g in range(len(middle)):
        basis[g, first[g] : first[g] + values.shape[1]] = values[g]
    cells = np.full(256, len(middle), np.int32)
    cells[: len(u)] = group
    return cells, basis


def _full(basis: Floats, family: TensorSpline) -> Floats:
    d = np.diff(np.eye(basis.shape[1]), family.difference, axis=0)
    return np.asarray(d.T @ d)


def b_splines(u: Floats, pieces: int, degree: int) -> tuple[NDArray[np.int32], Floats]:
    """B-splines on equidistant knots over [u[0], u[-1]]: first (c,) and the values (c, degree + 1) from there on."""
    at = np.clip((u - u[0]) / (u[-1] - u[0]) * pieces if u[-1] > u[0] else np.zeros(len(u)), 0.0, float(pieces))
    first = np.minimum(at.astype(np.int32), pieces - 1)
    t = at - first
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


def _space(family: str, axis: Axis, first: NDArray[np.int32], basis: Floats, penalty: Floats, ridge: float) -> Space:
    """With one coefficient more for missing values, if there are any; else these count as the average row."""
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


def _calibrated(space: Space, weight: Floats, df: float, smoothing: Smoothing) -> Space:
    """The same with the ridge that gives it so many degrees of freedom; hardly any, if it has no more."""
    gram = smoothing.gram(weight, space.first, space.basis, space.size)
    total = exact_sum(weight)
    scale = exact_sum(gram[:, 0]) / exact_sum(space.penalty[:, 0])
    low, high = 1e-10 * scale, 1e10 * scale
    found = low
    if smoothing.degrees_of_freedom(gram, space.penalty, low) > df:
        for _ in range(200):
            found = sqrt(low) * sqrt(high)
            now = smoothing.degrees_of_freedom(gram, space.penalty, found)
            if abs(now - df) < 1e-8 or not low < found < high:
                break
            low, high = (found, high) if now > df else (low, found)
    return Space(space.family, space.grid, space.first, space.basis, space.mean, space.penalty, found / total)


def _features(cuts: Cuts, family: Any) -> list[int]:
    kind = cuts.is_categorical
    if family.columns is not None:
        named = [f for column in family.columns for f in _of_column(cuts, family, column)]
        wrong = [f for f in named if kind[f] and not isinstance(family, CategoricalRidge)]
        if wrong:
            column = int(cuts.columns[wrong[0]])
            raise InputError(f"base_learner: {family!r} is for numeric features; column {column} is categorical.")
        return named
    found = np.flatnonzero(kind if isinstance(family, CategoricalRidge) else ~kind).tolist()
    if not found:
        wanted = "categorical" if isinstance(family, CategoricalRidge) else "numeric"
        raise InputError(
            f"base_learner: {family!r} is for {wanted} features; X has none. Leave it out, or name "
            "them in categorical_features."
        )
    return [int(f) for f in found]


def _of_column(cuts: Cuts, family: Any, column: Any) -> list[int]:
    found = [int(f) for f in np.flatnonzero(cuts.columns == column)]
    if not found:
        raise InputError(f"base_learner: {family!r} names column {column!r}; X has {cuts.n_columns} columns.")
    return found


def _feature(cuts: Cuts, family: Any, column: Any) -> int:
    found = _of_column(cuts, family, column)
    if cuts.is_categorical[found[0]]:
        raise InputError(f"base_learner: {family!r} is for numeric features; column {column!r} is categorical.")
    return found[0]
