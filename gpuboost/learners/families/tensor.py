"""A smooth surface over two features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.smoothing import Smoothing
from gpuboost.components import Grid, Space
from gpuboost.errors import RecipeError
from gpuboost.learners.families.basis import Axes, Axis, Floats, b_splines, calibrated, weight_of_cells
from gpuboost.learners.families.checks import check_df, check_int
from gpuboost.learners.families.protocol import Column, SmoothFamily, numeric_feature
from gpuboost.types import Cuts, TrainingSet


@dataclass(frozen=True, slots=True)
class TensorSpline(SmoothFamily):
    """A smooth surface over two numeric features: the products of two B-spline bases, penalised along both.

    Parameters
    ----------
    pairs : tuple of pairs of int or str
        The pairs of features to which it is offered.
    df : float
        Degrees of freedom tr(2S - S'S), the constant among them.
    knots : int
        Pieces along each feature.
    degree, difference : int
        As in ``Spline``.
    cells : int, 2 to 64
        Number of groups of bins along each feature.

    Raises
    ------
    RecipeError
        If a number is out of its range, or there is no pair.
    """

    pairs: tuple[tuple[int | str, int | str], ...]
    df: float = 4.0
    knots: int = 4
    degree: int = 3
    difference: int = 1
    cells: int = 32

    kind: ClassVar[str] = "tensor"

    def __post_init__(self) -> None:
        check_int(self, "knots", 1, 10)
        check_int(self, "degree", 0, 3)
        check_int(self, "difference", 1, 2)
        check_int(self, "cells", 2, 64)
        check_df(self, self.difference**2)
        pairs_argument: Any = self.pairs
        listed = isinstance(pairs_argument, (list, tuple)) and all(
            isinstance(pair, (list, tuple)) for pair in pairs_argument
        )
        pairs = tuple(tuple(pair) for pair in pairs_argument) if listed else ()
        if not pairs or any(len(pair) != 2 or pair[0] == pair[1] for pair in pairs):
            raise RecipeError(f"pairs: TensorSpline needs pairs of two different features; got {self.pairs!r}.")
        object.__setattr__(self, "pairs", pairs)

    def spaces(self, axes: Axes) -> Iterator[Space]:
        for pair in self.pairs:
            first, second = (axes.of(numeric_feature(axes.data.cuts, self, column)) for column in pair)
            yield self._space(axes.data, first, second, axes.smoothing)

    def grids(self, cuts: Cuts) -> Iterator[Grid]:
        nothing = np.zeros(256, np.int32)
        for pair in self.pairs:
            first, second = (numeric_feature(cuts, self, column) for column in pair)
            yield Grid((first, second), (nothing, nothing), (self.cells + 1) ** 2 + 1)

    def numbered(self, number: Callable[[Column], int]) -> TensorSpline:
        return replace(self, pairs=tuple((number(a), number(b)) for a, b in self.pairs))

    def _space(self, data: TrainingSet, a: Axis, b: Axis, smoothing: Smoothing) -> Space:
        """Space of the products of two bases; 0 if one of the two features is missing."""
        parts = [self._grouped(axis) for axis in (a, b)]
        (cells_a, basis_a), (cells_b, basis_b) = parts
        penalty = np.kron(self._full(basis_a), np.eye(basis_b.shape[1]))
        penalty += np.kron(np.eye(basis_a.shape[1]), self._full(basis_b))
        q, groups = len(penalty), len(basis_b)
        grid = Grid((a.feature, b.feature), (cells_a * groups, cells_b), len(basis_a) * groups + 1)
        codes = [smoothing.codes(data.bins, axis.feature) for axis in (a, b)]
        cell = grid.cells[0][codes[0]] + grid.cells[1][codes[1]]
        weight = weight_of_cells(cell, data, grid.n_cells)[:-1]
        basis = np.einsum("ik,jl->ijkl", basis_a, basis_b).reshape(-1, q)
        band = np.zeros((q, q))
        for i in range(q):
            band[i, : q - i] = penalty[i, i:]
        made = Space(self.kind, grid, np.zeros(len(basis), np.int32), basis, np.zeros(q), band, 1.0)
        return calibrated(made, weight, self.df, smoothing)

    def _grouped(self, axis: Axis) -> tuple[NDArray[np.int32], Floats]:
        """(256,) int32 group of each bin, and the basis in each group; the last group, of missing values, has none."""
        u = axis.rank
        group = np.unique(np.minimum((u * self.cells).astype(np.int64), self.cells - 1), return_inverse=True)[1]
        known = axis.weight[: len(u)]
        middle = np.bincount(group, u * known) / np.maximum(np.bincount(group, known), 1e-300)
        first, values = b_splines(middle, self.knots, self.degree)
        basis = np.zeros((len(middle) + 1, self.knots + self.degree))
        for g in range(len(middle)):
            basis[g, first[g] : first[g] + values.shape[1]] = values[g]
        cells = np.full(256, len(middle), np.int32)
        cells[: len(u)] = group
        return cells, basis

    def _full(self, basis: Floats) -> Floats:
        d = np.diff(np.eye(basis.shape[1]), self.difference, axis=0)
        return np.asarray(d.T @ d)
