"""Competition of families: each round takes the component that lowers the weighted sum of squares most.

The worker's part fits every candidate to the target; for a function of bins that is one histogram and a small system of
equations. The server's part computes the step length along the winner on all rows. Ties: the first candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.protocol import Backend
from gpuboost.backends.smoothing import SmoothingPlan
from gpuboost.base_learners import line
from gpuboost.base_learners.protocol import RoundState
from gpuboost.components import EmptyComponent, Grid, SmoothTerm, Space, TreeComponent
from gpuboost.errors import InputError
from gpuboost.growth import CategoricalSplits, DepthWise
from gpuboost.keys import Key
from gpuboost.learners.families.basis import Axes
from gpuboost.learners.families.protocol import Family, SmoothFamily, TreeFamily
from gpuboost.learners.families.trees import Tree
from gpuboost.losses.averages import exact_sum
from gpuboost.records import dataclass
from gpuboost.steps import Step, searches
from gpuboost.types import Array, Candidates, Component, Grow, Limits, Nodes, Noise, Structure, Target, TrainingSet


@dataclass(frozen=True, slots=True)
class Smoothed:
    """Fit of one space, as a worker sends it to the server."""

    number: int  # of the space
    coefficients: NDArray[np.float64]
    slope: float  # -<g, f> and <f, h f> on the rows it was fitted to
    curvature: float
    output: int
    version: int
    of_all_rows: bool


@dataclass(frozen=True, slots=True)
class GrownTree:
    """Structure of a tree, as a worker sends it to the server, and the family that it belongs to."""

    family: TreeFamily
    structure: Structure

    @property
    def output(self) -> int:
        return self.structure.output

    @property
    def version(self) -> int:
        return self.structure.version


@dataclass(frozen=True, slots=True)
class Direction:
    """A component before its step length is known."""

    origin: Smoothed | GrownTree
    component: SmoothTerm | TreeComponent
    leaf_of_row: Array | None = None  # (n,) int32, of a tree


Length: TypeAlias = Callable[[Backend, Direction, RoundState, Step], float]
"""(backend, direction, state, step) -> step length rho of the direction on all rows, by the step rule"""


def length_of(backend: Backend, values: Direction, state: RoundState, step: Step) -> float:
    """rho, from sums over cells if they suffice, such as the worker's sums of this version's gradients."""
    component, origin = values.component, values.origin
    if searches(step):
        return line.length(backend, state, step, component.output, _by_row(backend, state, component))
    if not (isinstance(component, SmoothTerm) and isinstance(origin, Smoothed)):
        return 1.0  # lines in leaves are fitted to all rows by least squares
    slope, curvature = origin.slope, origin.curvature
    if not (origin.of_all_rows and origin.version == state.version):
        smoothing, grid = backend.smoothing(), component.space.grid
        cells = smoothing.cells(state.gradients, None, component.output, grid, state.data.bins)
        f = smoothing.values(component)
        slope, curvature = -exact_sum(cells[:, 0] * f), exact_sum(cells[:, 1] * f * f)
    return slope / curvature if slope > 0.0 and curvature > 0.0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class BestOfFamilies:
    """Competition of ``families``. Ties go to the earlier one: families on bins first, then trees."""

    families: tuple[Family, ...]
    plan: SmoothingPlan | None = None  # None until it is prepared
    centres: NDArray[np.float64] | None = None  # (d, 256), if a family has lines in its leaves
    length: Length = length_of

    def prepared(self, backend: Backend, data: TrainingSet) -> BestOfFamilies:
        """The competition with bases, penalties and degrees of freedom for these data.

        Raises:
            InputError: if a family finds no feature of its kind, or needs whole columns, and a column has more than
                255 bins.
        """
        lines = any(family.ridge is not None for family in self.trees)
        if (self.smooth or lines) and (column := data.cuts.first_divided) is not None:
            raise InputError(
                f"max_bins: functions of a column have at most 255 bins, and column {column} has more. Use "
                "max_bins=255, or a base learner of plain trees."
            )
        axes = Axes(data, backend.smoothing())
        spaces = [space for family in self.smooth for space in family.spaces(axes)]
        if not spaces and not self.trees:  # no column varies: single leaves
            return replace(self, families=(Tree(max_depth=1),)).prepared(backend, data)
        return replace(self, plan=SmoothingPlan.of(on_shared_grids(spaces)), centres=_centres(axes) if lines else None)

    @property
    def smooth(self) -> tuple[SmoothFamily, ...]:
        return tuple(family for family in self.families if isinstance(family, SmoothFamily))

    @property
    def trees(self) -> tuple[TreeFamily, ...]:
        return tuple(family for family in self.families if isinstance(family, TreeFamily))

    def n_groups(self, data: TrainingSet) -> int:
        """Number of pairs of family and feature; a family of trees counts as one."""
        assert self.plan is not None
        return len(self.plan.spaces) + len(self.trees)

    def search(self, key: Key) -> Grow:
        return cast(Grow, self.fit)

    def fit(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Smoothed | GrownTree:
        """The candidate that lowers the weighted sum of squares most."""
        assert self.plan is not None
        n = len(self.plan.spaces)
        chosen = np.asarray(candidates.features)
        best: Smoothed | GrownTree | None = None
        drop = -np.inf
        smooth = np.ascontiguousarray(chosen[chosen < n], np.int32)
        if len(smooth):
            rows, bins = target.rows, data.bins
            fits = backend.smoothing().fit(self.plan, target.gradients, rows, output, smooth, bins)
            t = int(np.argmax(fits.drop))
            sums, everywhere = (float(fits.slope[t]), float(fits.curvature[t])), rows is None and not target.noisy
            drop = float(fits.drop[t])
            best = Smoothed(int(smooth[t]), fits.coefficients[t], *sums, output, target.version, everywhere)
        for number in chosen[chosen >= n].tolist():
            grown, tree_drop = self.grow_tree(backend, data, target, output, self.trees[number - n])
            if best is None or tree_drop > drop:
                best, drop = grown, tree_drop
        assert best is not None
        return best

    def grow_tree(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, family: TreeFamily
    ) -> tuple[GrownTree, float]:
        """A tree, and the reduction of the sum of squares by constant leaves; linear leaves are fitted later."""
        every = Candidates(np.arange(data.cuts.n_features, dtype=np.int32))
        asked = target if target.rows is None else replace(target, own_leaves=True)
        structure = DepthWise(_limits(family, data.n_counted)).structure(backend, data, asked, output, every)
        structure, g, h = backend.smoothing().kept_tree(structure, own_sums=target.rows is None)
        below = h + family.reg_lambda
        value = np.divide(-g, below, out=np.zeros(len(g)), where=below > 0.0)
        drop = exact_sum(-2.0 * g * value - h * value * value)
        return GrownTree(family, structure), drop

    def values(
        self, backend: Backend, structure: Smoothed | GrownTree, state: RoundState, noise: Noise | None
    ) -> tuple[Direction, None]:
        """The winner before its step length is known: a function of bins, or a tree with leaf values from all rows."""
        if isinstance(structure, GrownTree):
            return self._values_of_tree(backend, structure, state), None
        assert self.plan is not None
        space, output, version = self.plan.spaces[structure.number], structure.output, structure.version
        return Direction(structure, SmoothTerm(space, structure.coefficients, output, version)), None

    def _values_of_tree(self, backend: Backend, grown: GrownTree, state: RoundState) -> Direction:
        family, structure, gradients, data = grown.family, grown.structure, state.gradients, state.data
        tree, leaf_of_row = backend.leaf_values(
            structure, gradients, data, _limits(family, data.n_counted), state.version
        )
        if family.ridge is None:
            return Direction(grown, TreeComponent(tree, tree.output, tree.version), leaf_of_row)
        assert self.centres is not None
        features = on_the_way(structure.nodes, data.cuts.is_categorical)
        value, slopes = backend.smoothing().fit_lines(
            structure, gradients, data, leaf_of_row, features, self.centres, family.ridge, family.reg_lambda
        )
        tree = replace(tree, value=value)
        return Direction(
            grown, TreeComponent(tree, tree.output, tree.version, features, slopes, self.centres), leaf_of_row
        )

    def update(
        self, backend: Backend, values: Direction, leaf_of_row: None, state: RoundState, step: Step
    ) -> Component:
        """The winner times rho of the step rule, on all rows; ``EmptyComponent`` if the loss does not fall."""
        component = values.component
        if isinstance(component, TreeComponent) and component.slopes is None:
            scores, leaves = state.scores, values.leaf_of_row
            tree = step.refine(backend, component.tree, leaves, state.loss, scores.base, state.data)
            backend.add_leaves(scores.sums, tree, state.factor, leaves)
            return replace(component, tree=tree)
        rho = self.length(backend, values, state, step)
        if not rho > 0.0:
            return EmptyComponent(component.output, component.version)
        component = _scaled(component, rho)
        component.add(backend, state.scores.sums, state.factor, state.data)
        return component


def _scaled(component: SmoothTerm | TreeComponent, rho: float) -> SmoothTerm | TreeComponent:
    if isinstance(component, SmoothTerm):
        return replace(component, coefficients=rho * component.coefficients)
    assert component.slopes is not None
    tree = replace(component.tree, value=rho * component.tree.value)
    return replace(component, tree=tree, slopes=rho * component.slopes)


def _by_row(backend: Backend, state: RoundState, component: Component) -> Array:
    """(n,) float64 in the host's memory: the component's value for each row."""
    f = backend.start(state.data, np.zeros(state.loss.n_outputs))
    component.add(backend, f, 1.0, state.data)
    return backend.to_host(f[component.output])


def _limits(family: TreeFamily, n_rows: int) -> Limits:
    return Limits(
        max_leaves=2**family.max_depth,
        max_depth=family.max_depth,
        reg_lambda=family.reg_lambda,
        categories=CategoricalSplits().limits(n_rows),
    )


def on_the_way(nodes: Nodes, is_categorical: Array) -> NDArray[np.int32]:
    """(v, s) int32 numeric features of the splits above each leaf, in increasing order, padded with -1."""
    above: list[frozenset[int]] = [frozenset()] * len(nodes.feature)
    for v in range(len(nodes.feature)):
        f = int(nodes.feature[v])
        if f >= 0:
            below = above[v] if is_categorical[f] else above[v] | {f}
            above[int(nodes.left[v])] = above[int(nodes.right[v])] = below
    leaves = [sorted(above[v]) if nodes.feature[v] < 0 else [] for v in range(len(above))]
    features = np.full((len(leaves), max(map(len, leaves))), -1, np.int32)
    for v, own_features in enumerate(leaves):
        features[v, : len(own_features)] = own_features
    return features


def on_shared_grids(spaces: list[Space]) -> tuple[Space, ...]:
    """The spaces, with one grid per feature, so that spaces on one feature share one histogram."""
    known: dict[tuple[int, ...], Grid] = {}
    return tuple(
        replace(space, grid=known.setdefault(space.grid.features, space.grid))
        if len(space.grid.features) == 1
        else space
        for space in spaces
    )


def _centres(axes: Axes) -> NDArray[np.float64]:
    """(d, 256) float64 standardised value of each bin: deviation from the feature's mean, over its standard deviation;
    0 for missing."""
    cuts = axes.data.cuts
    centres = np.zeros((cuts.n_features, 256))
    for f in np.flatnonzero(~cuts.is_categorical).tolist():
        axis = axes.of(f)
        known = axis.weight[: len(axis.at)]
        total = exact_sum(known)
        if total > 0.0:
            away = axis.at - exact_sum(known * axis.at) / total
            spread = np.sqrt(exact_sum(known * away * away) / total)
            centres[f, : len(away)] = away / spread if spread > 0.0 else 0.0
    return centres
