"""Protocol of a backend's smoothing: sums by cell, penalised least squares, and adding components to scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.components import Grid, SmoothTerm, Space, TreeComponent
from gpuboost.records import dataclass
from gpuboost.types import Array, Bins, Cuts, Gradients, Structure, TrainingSet

Tables: TypeAlias = Sequence[tuple[Grid, Array]]
"""Grids, and the (c,) float64 contribution of each of their cells to a score."""


@dataclass(frozen=True, slots=True)
class Fits:
    """Least-squares fits of several spaces: their gains and coefficients."""

    drop: NDArray[np.float64]  # (t,) decrease of the weighted sum of squares
    slope: NDArray[np.float64]  # (t,) -<g, f>
    curvature: NDArray[np.float64]  # (t,) <f, h f>
    coefficients: list[NDArray[np.float64]]  # (q,) each


class Smoothing(Protocol):
    """Verbs for components; ``Reference`` defines them, in ``reference.smoothing``."""

    def gram(self, h: Array, first: Array, basis: Array, size: int) -> Array:
        """(q, w) upper band of sum h b b' over cells."""
        ...

    def degrees_of_freedom(self, gram: Array, penalty: Array, ridge: float) -> float:
        """tr(2 M - M M) with M = (G + ridge P)^-1 G."""
        ...

    def codes(self, bins: Bins, feature: int) -> Array:
        """(n,) uint8 in the host's memory: the bin of every row."""
        ...

    def cells(self, gradients: Gradients, rows: Array | None, output: int, grid: Grid, bins: Bins) -> Array:
        """(c + 1, 2) float64: exact sums of g and h in each cell, the cell of unseen values last."""
        ...

    def fit(
        self, plan: SmoothingPlan, gradients: Gradients, rows: Array | None, output: int, chosen: Array, bins: Bins
    ) -> Fits:
        """Fits of the chosen spaces, (t,) int32 increasing."""
        ...

    def values(self, component: SmoothTerm) -> Array:
        """(c + 1,) float64: the component's function value in each cell."""
        ...

    def add(self, scores: Array, steps: Array, grid: Grid, bins: Bins) -> None:
        """scores[i] <- scores[i] + steps[cell of row i], in place. scores (n,)."""
        ...

    def add_all(self, scores: Array, tables: Tables, bins: Bins) -> None:
        """``add`` of one table after the other."""
        ...

    def kept_tree(self, structure: Structure, own_sums: bool) -> tuple[Structure, Array, Array]:
        """A tree that stays valid while others are grown, and G and H of each of its leaves, in the host's memory.

        own_sums: leaf values may be computed from these sums; otherwise they need the sums over all rows.
        """
        ...

    def fit_lines(
        self, structure: Structure, gradients: Gradients, data: TrainingSet, leaf_of_row: Array, features: Array,
        centres: Array, ridge: float, reg_lambda: float,
    ) -> tuple[Array, Array]:  # fmt: skip
        """(v,) constants and (v, s) slopes of a ridge regression in each leaf, see ``TreeComponent``."""
        ...

    def add_lines(self, scores: Array, component: TreeComponent, factor: float, bins: Bins, cuts: Cuts) -> None:
        """scores[i] <- scores[i] + factor * the prediction of row i by its leaf's line, in place. scores (n,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SmoothingPlan:
    """Spaces laid out side by side, as one kernel call reads them."""

    spaces: tuple[Space, ...]
    grids: tuple[Grid, ...]
    grid: NDArray[np.int32]  # (s,) of each space
    cell_start: NDArray[np.int64]  # (grids + 1,)
    q_start: NDArray[np.int64]  # (s + 1,)
    width: NDArray[np.int64]  # (s,)
    basis_start: NDArray[np.int64]  # (s + 1,)
    band_start: NDArray[np.int64]  # (s + 1,)
    first: NDArray[np.int32]  # (s, most cells)
    basis: NDArray[np.float64]
    penalty: NDArray[np.float64]
    ridge: NDArray[np.float64]  # (s,)

    @classmethod
    def of(cls, spaces: tuple[Space, ...], more: tuple[Grid, ...] = ()) -> SmoothingPlan:
        """Lay out ``spaces``. ``more``: further grids, which need not have a space."""
        grids = tuple(dict.fromkeys((*(space.grid for space in spaces), *more)))
        number = {grid: i for i, grid in enumerate(grids)}
        max_cells = max((space.basis.shape[0] for space in spaces), default=1)
        first = np.zeros((len(spaces), max_cells), np.int32)
        for s, space in enumerate(spaces):
            first[s, : len(space.first)] = space.first
        return cls(
            spaces=spaces,
            grids=grids,
            grid=np.array([number[space.grid] for space in spaces], np.int32),
            cell_start=_starts(grid.n_cells for grid in grids),
            q_start=_starts(space.size for space in spaces),
            width=np.array([space.basis.shape[1] for space in spaces], np.int64),
            basis_start=_starts(space.basis.size for space in spaces),
            band_start=_starts(space.penalty.size for space in spaces),
            first=first,
            basis=_joined([space.basis for space in spaces]),
            penalty=_joined([space.penalty for space in spaces]),
            ridge=np.array([space.ridge for space in spaces]),
        )


def _starts(sizes: Iterable[int]) -> NDArray[np.int64]:
    return np.array([0, *accumulate(sizes)], np.int64)


def _joined(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate([part.reshape(-1) for part in parts]) if parts else np.empty(0)
