"""Penalised least squares of components: linear systems of the size of a basis, solved by kernels on the host.

A CPU and a GPU compute the sums of each cell, whose cost grows with the rows, in different ways. The sums are exact
integers, and both continue with this module, so coefficients have the same bits by construction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.smoothing import Fits, SmoothingPlan
from gpuboost.components import SmoothTerm
from gpuboost.kernels.smoothing import smoothing as kernels
from gpuboost.types import Array, Bins, Gradients

SMALL = 16_384  # steps that are not worth waking a thread for


class Penalised(ABC):
    """The verbs of ``Smoothing`` that read no rows, and the equations of all candidate spaces."""

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool

    @abstractmethod
    def fit(
        self, plan: SmoothingPlan, gradients: Gradients, rows: Array | None, output: int, chosen: Array, bins: Bins
    ) -> Fits: ...

    def gram(self, h: Array, first: Array, basis: Array, size: int) -> Array:
        out = np.empty((size, basis.shape[1]))
        kernels.gram(h, first, basis, out)
        return out

    def degrees_of_freedom(self, gram: Array, penalty: Array, ridge: float) -> float:
        return float(kernels.degrees_of_freedom(gram, penalty, ridge))

    def values(self, component: SmoothTerm) -> Array:
        space, out = component.space, np.empty(component.space.grid.n_cells)
        kernels.expand(space.first, space.basis, component.coefficients, out[:-1])
        out[-1] = kernels.dot(space.mean, component.coefficients)
        return out

    def solved(self, a: Array, x: Array) -> Array:
        """The solution of the system of upper band a."""
        kernels.factor(a)
        x = x.copy()
        kernels.solve(a, x)
        return x

    def _fits(
        self, plan: SmoothingPlan, sums: Array, units: tuple[float, float], chosen: Array, scratch: Workspace
    ) -> Fits:
        """Fits of the chosen spaces, from the sums of their cells: sums (cells, 2) int64, grid by grid.

        ``scratch`` keeps the factors of the plan's last fit; they are used again where the curvature is the same.
        """
        kept_h, kept, coef = _kept(plan, scratch)
        results = np.empty((len(chosen), 3))
        spaces = kernels.Spaces(
            plan.grid, plan.cell_start, plan.q_start, plan.width, plan.basis_start, plan.first, plan.basis,
            plan.band_start, plan.penalty, plan.ridge,
        )  # fmt: skip
        data = spaces, sums, *units, kept_h, kept, coef, results
        cost = int(plan.band_start[-1]) * 64
        self._shared(len(chosen), cost, lambda a, b: kernels.fit_all(chosen, a, b, *data))
        coefficients = [coef[plan.q_start[s] : plan.q_start[s + 1]].copy() for s in chosen.tolist()]
        return Fits(results[:, 0], results[:, 1], results[:, 2], coefficients)

    def _shared(self, items: int, cost: int, work: Callable[[int, int], object]) -> None:
        """Call work(begin, end) on stretches of the items, in parallel if the work is large enough."""
        if self._pool.size == 1 or cost < SMALL or items == 1:
            work(0, items)
        else:
            self._pool.run(lambda part: work(*share(items, part, self._pool.size)))


def _kept(plan: SmoothingPlan, scratch: Workspace) -> tuple[Any, Any, Any]:
    """The curvatures and factors of the plan's last fit, and memory for coefficients."""
    shapes = plan.first.shape, (2 * int(plan.band_start[-1]),), (int(plan.q_start[-1]),)
    is_new = scratch.room("kept_h") == 0
    kept_h, kept, coef = (
        scratch.array(name, s, np.float64) for name, s in zip(("kept_h", "kept", "coef"), shapes, strict=True)
    )
    if is_new:
        kept_h[:] = np.nan
    return kept_h, kept, coef
