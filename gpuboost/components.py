"""Components: the parts of a model whose base learners are not plain trees. ``base_learners`` fits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.records import dataclass
from gpuboost.types import Array, Component, Ensemble, FittedTree, TrainingSet


def collapsed(ensemble: Ensemble) -> tuple[list[SmoothTerm], list[tuple[Component, float]]]:
    """One function per space and output, the sum of its rounds; and the other components, with their factors."""
    parts: dict[tuple[Space, int], list[NDArray[np.float64]]] = {}
    rest: list[tuple[Component, float]] = []
    for component, factor in zip(ensemble.components, ensemble.factors[: len(ensemble.components)], strict=True):
        if isinstance(component, SmoothTerm):
            parts.setdefault((component.space, component.output), []).append(factor * component.coefficients)
        elif not isinstance(component, EmptyComponent):
            rest.append((component, factor))
    sums = [SmoothTerm(space, np.cumsum(each, axis=0)[-1], output, -1) for (space, output), each in parts.items()]
    return sums, rest


def on_spaces(ensemble: Ensemble, spaces: Sequence[Space]) -> Ensemble:
    """The ensemble with its functions on ``spaces`` where they are the same, so that further rounds add up with them.

    A space of a model file has neither penalty nor ridge, so these may differ there; if several spaces fit, none is
    taken.
    """
    known: dict[Space, Space] = {}
    parts: list[Component] = []
    for part in ensemble.components:
        if isinstance(part, SmoothTerm):
            if part.space not in known:
                same = [space for space in spaces if space is part.space] or [
                    space for space in spaces if part.space.continues_as(space)
                ]
                known[part.space] = same[0] if len(same) == 1 else part.space
            part = replace(part, space=known[part.space])  # noqa: PLW2901
        parts.append(part)
    return replace(ensemble, components=tuple(parts))


def fit_for_gpus(ensemble: Ensemble) -> bool:
    """True if a GPU can predict: all components are functions of bins or plain trees. Others need the CPU."""
    return not any(
        isinstance(component, EstimatorComponent)
        or (isinstance(component, TreeComponent) and component.slopes is not None)
        for component in ensemble.components
    )


def add(machine: Any, scores: Array, part: FittedTree | Component, factor: float, data: TrainingSet) -> None:
    """scores[output] <- scores[output] + factor * tree, or component, in place; ``machine``: a ``Backend``."""
    if isinstance(part, Component):
        part.add(machine, scores, factor, data)
    else:
        machine.add_tree(scores, part, factor, data.bins, data.cuts)


def is_constant(part: FittedTree | Component) -> bool:
    """True for a tree of one leaf, and for a round without an improvement."""
    if isinstance(part, TreeComponent):
        part = part.tree
    return len(part.nodes.feature) == 1 if isinstance(part, FittedTree) else isinstance(part, EmptyComponent)


@dataclass(frozen=True, slots=True)
class EmptyComponent(Component):
    """A round without an improvement."""

    output: int
    version: int

    def add(self, machine: Any, scores: Array, factor: float, data: TrainingSet) -> None:
        """Add nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class EstimatorComponent(Component):
    """Prediction of a fitted estimator, times ``coefficient``."""

    estimator: Any  # with predict(x) -> (n,)
    coefficient: float
    columns: NDArray[np.int32] | None  # those of x it was fitted to; None for all
    output: int
    version: int

    def add(self, machine: Any, scores: Array, factor: float, data: TrainingSet) -> None:
        scores[self.output] += (factor * self.coefficient) * self.values(data.x)

    def values(self, x: Any) -> NDArray[np.float64]:
        """(n,) predictions, without the coefficient.

        Raises:
            InputError: if the estimator predicts anything but one finite number a row.
        """
        predictions = np.asarray(self.estimator.predict(x if self.columns is None else x[:, self.columns]), np.float64)
        predictions = predictions[:, 0] if predictions.ndim == 2 and predictions.shape[1] == 1 else predictions
        if predictions.shape != (x.shape[0],) or not np.isfinite(predictions).all():
            name = type(self.estimator).__name__
            raise InputError(
                f"base_learner: predictions must be one finite number a row; {name} gave an array of shape "
                f"{predictions.shape}"
                + ("" if np.isfinite(predictions).all() else " with numbers that are not finite")
                + "."
            )
        return predictions


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Cells that the bins of one feature, or of two, fall into. Cell numbers of the features are added."""

    features: tuple[int, ...]  # one or two
    cells: tuple[NDArray[np.int32], ...]  # (256,) for each feature: the term of each bin in the number of the cell
    n_cells: int


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Functions on a grid: what a family of components can be there. Models add up their coefficients.

    Basis function ``first[c] + i`` is ``basis[c, i]`` in cell c. The last cell is what no training row was in: the
    average over training rows.
    """

    family: str  # a word of ``gpuboost.public.SMOOTH_FAMILIES``
    grid: Grid
    first: NDArray[np.int32]  # (c,) of all cells but the last
    basis: NDArray[np.float64]  # (c, w)
    mean: NDArray[np.float64]  # (q,) basis functions in the last cell
    penalty: NDArray[np.float64]  # (q, w) upper band: entry (i, j) is of row i and column i + j
    ridge: float  # of the penalty, for data of total curvature 1

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.mean)

    def continues_as(self, other: Space) -> bool:
        """True if ``other`` has the same functions, and the same penalty unless this one was read from a file."""
        functions = (
            self.family == other.family
            and self.grid.features == other.grid.features
            and self.grid.n_cells == other.grid.n_cells
            and all(np.array_equal(a, b) for a, b in zip(self.grid.cells, other.grid.cells, strict=True))
            and np.array_equal(self.first, other.first)
            and np.array_equal(self.basis, other.basis)
            and np.array_equal(self.mean, other.mean)
        )
        read = self.ridge == 0.0 and not self.penalty.any()
        return functions and (read or (self.ridge == other.ridge and np.array_equal(self.penalty, other.penalty)))


@dataclass(frozen=True, slots=True, eq=False)
class SmoothTerm(Component):
    """One function of a space."""

    space: Space
    coefficients: NDArray[np.float64]  # (q,)
    output: int
    version: int

    def add(self, machine: Any, scores: Array, factor: float, data: TrainingSet) -> None:
        smoothing = machine.smoothing()
        smoothing.add(scores[self.output], factor * smoothing.values(self), self.space.grid, data.bins)


@dataclass(frozen=True, slots=True, eq=False)
class TreeComponent(Component):
    """A tree, or one with a line in each leaf: value + sum over features of a slope times the centre of their bin.

    Centres are measured from the feature's mean, in standard deviations; a missing value has centre 0.
    """

    tree: FittedTree
    output: int
    version: int
    features: NDArray[np.int32] | None = None  # (v, s) of each node, -1 where there are fewer; None without slopes
    slopes: NDArray[np.float64] | None = None  # (v, s)
    centres: NDArray[np.float64] | None = None  # (d, 256)

    def add(self, machine: Any, scores: Array, factor: float, data: TrainingSet) -> None:
        if self.slopes is None:
            machine.add_tree(scores, self.tree, factor, data.bins, data.cuts)
        else:
            machine.smoothing().add_lines(scores[self.output], self, factor, data.bins, data.cuts)


Estimated, Leaves, Nothing, Smooth = EstimatorComponent, TreeComponent, EmptyComponent, SmoothTerm
"""Names of version 0.1, which pickles of models hold."""
