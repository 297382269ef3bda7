"""Families that compete: in each round the one that lowers the weighted sum of squares most is taken.

The worker's half fits every candidate to the target; for all functions of bins that is one histogram and a small system
of equations each. The server's half decides on all rows how far to go along the winner. Ties: the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.protocol import Backend
from gpuboost.backends.smoothing import Plan, Smoothing
from gpuboost.base_learners import line
from gpuboost.base_learners.protocol import Now
from gpuboost.base_learners.spaces import Axis, axis_of, spaces_of
from gpuboost.components import Grid, Leaves, Nothing, Smooth, Space
from gpuboost.growth import DepthWise
from gpuboost.keys import Key
from gpuboost.langevin import Grow
from gpuboost.learners.families import Family, LinearTree, Tree
from gpuboost.losses.averages import exact_sum
from gpuboost.steps import searches
from gpuboost.types import Array, Candidates, Component, Limits, Nodes, Structure, Target, TrainingSet


@dataclass(frozen=True, slots=True)
class Smoothed:
    """What a worker sends of a space."""

    number: int  # of the space
    coefficients: NDArray[np.float64]
    slope: float  # -<g, f> and <f, h f> on the rows it was fitted to
    curvature: float
    output: int
    version: int
    of_all_rows: bool


@dataclass(frozen=True, slots=True)
class Grown:
    """What a worker sends of a tree."""

    family: Tree | LinearTree
    structure: Structure

    @property
    def output(self) -> int:
        return self.structure.output

    @property
    def version(self) -> int:
        return self.structure.version


@dataclass(frozen=True, slots=True, eq=False)
class Competition:
    """``families`` in the order in which ties are broken; those on bins first, then trees."""

    families: tuple[Family, ...]
    plan: Plan | None = None  # None until it is prepared
    centres: NDArray[np.float64] | None = None  # (d, 256), if a family has lines in its leaves

    def prepared(self, backend: Backend, data: TrainingSet) -> Competition:
        """Bases, penalties and degrees of freedom, for these data.

        Raises:
            InputError: if a family finds no feature of its kind.
        """
        smoothing = backend.smoothing()
        spaces: list[Space] = []
        axes: dict[int, Axis] = {}
        for family in self.families:
            if not isinstance(family, (Tree, LinearTree)):
                spaces += spaces_of(family, data, smoothing, axes)
        lines = any(isinstance(family, LinearTree) for family in self.families)
        return replace(
            self, plan=Plan.of(on_shared_grids(spaces)), centres=_centres(data, smoothing) if lines else None
        )

    @property
    def trees(self) -> tuple[Tree | LinearTree, ...]:
        return tuple(family for family in self.families if isinstance(family, (Tree, LinearTree)))

    def n_groups(self, data: TrainingSet) -> int:
        """Pairs of family and feature; a family of trees is one."""
        assert self.plan is not None
        return len(self.plan.spaces) + len(self.trees)

    def search(self, key: Key) -> Grow:
        return cast(Grow, self._fit)

    def _fit(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Smoothed | Grown:
        assert self.plan is not None
        n = len(self.plan.spaces)
        chosen = np.asarray(candidates.features)
        best: Smoothed | Grown | None = None
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
            grown, own = self._grow(backend, data, target, output, self.trees[number - n])
            if best is None or own > drop:
                best, drop = grown, own
        assert best is not None
        return best

    def _grow(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, family: Tree | LinearTree
    ) -> tuple[Grown, float]:
        """A tree, and what its constants take off the sum of squares; of lines in its leaves nobody knows yet."""
        every = Candidates(np.arange(data.cuts.n_features, dtype=np.int32))
        asked = target if target.rows is None else replace(target, own_leaves=True)
        structure = DepthWise(_limits(family)).structure(backend, data, asked, output, every)
        structure, g, h = backend.smoothing().settled(structure, own_sums=target.rows is None)
        below = h + family.reg_lambda
        value = np.divide(-g, below, out=np.zeros(len(g)), where=below > 0.0)
        drop = exact_sum(-2.0 * g * value - h * value * value)
        return Grown(family, structure), drop

    def join(self, backend: Backend, structure: Smoothed | Grown, now: Now) -> tuple[Component, None]:
        """rho by the step rule, on all rows."""
        if isinstance(structure, Grown):
            return self._join_tree(backend, structure, now), None
        assert self.plan is not None
        space, output, version = self.plan.spaces[structure.number], structure.output, structure.version
        found = Smooth(space, structure.coefficients, output, version)
        rho = self._length(backend, structure, found, now)
        if not rho > 0.0:
            return Nothing(output, version), None
        found = replace(found, coefficients=rho * structure.coefficients)
        found.add(backend, now.running.sums, now.factor, now.data)
        return found, None

    def _length(self, backend: Backend, structure: Smoothed, found: Smooth, now: Now) -> float:
        """By the sums of cells where they say it all; those of the worker, if they are of these very gradients."""
        if searches(now.step):
            return line.length(backend, now, found.output, _by_row(backend, now, found))
        slope, curvature = structure.slope, structure.curvature
        if not (structure.of_all_rows and structure.version == now.version):
            smoothing = backend.smoothing()
            cells = smoothing.cells(now.gradients, None, found.output, found.space.grid, now.data.bins)
            f = smoothing.values(found)
            slope, curvature = -exact_sum(cells[:, 0] * f), exact_sum(cells[:, 1] * f * f)
        return slope / curvature if slope > 0.0 and curvature > 0.0 else 0.0

    def _join_tree(self, backend: Backend, grown: Grown, now: Now) -> Component:
        family, structure = grown.family, grown.structure
        at = structure, now.gradients, now.data, _limits(family), now.version
        tree, leaf_of_row = backend.leaf_values(*at)
        if isinstance(family, Tree):
            tree = now.step.refine(backend, tree, leaf_of_row, now.loss, now.running.scores, now.data)
            backend.add_leaves(now.running.sums, tree, now.factor, leaf_of_row)
            return Leaves(tree, tree.output, tree.version)
        assert self.centres is not None
        features = on_the_way(structure.nodes, now.data.cuts.is_categorical)
        weights = family.ridge, family.reg_lambda
        value, slopes = backend.smoothing().fit_lines(
            structure, now.gradients, now.data, leaf_of_row, features, self.centres, *weights
        )
        found = Leaves(replace(tree, value=value), tree.output, tree.version, features, slopes, self.centres)
        if searches(now.step):
            rho = line.length(backend, now, found.output, _by_row(backend, now, found))
            if rho == 0.0:
                return Nothing(found.output, found.version)
            found = replace(found, tree=replace(found.tree, value=rho * value), slopes=rho * slopes)
        found.add(backend, now.running.sums, now.factor, now.data)
        return found


def _by_row(backend: Backend, now: Now, found: Component) -> Array:
    """(n,) float64 in the host's memory: what it says of each row."""
    f = backend.start(now.data, np.zeros(now.loss.n_outputs))
    found.add(backend, f, 1.0, now.data)
    return backend.to_host(f[found.output])


def _limits(family: Tree | LinearTree) -> Limits:
    return Limits(max_leaves=2**family.max_depth, max_depth=family.max_depth, reg_lambda=family.reg_lambda)


def on_the_way(nodes: Nodes, is_categorical: Array) -> NDArray[np.int32]:
    """(v, s) int32: the numeric features that are asked for above each leaf, in increasing order; -1 fills the rest."""
    above: list[frozenset[int]] = [frozenset()] * len(nodes.feature)
    for v in range(len(nodes.feature)):
        f = int(nodes.feature[v])
        if f >= 0:
            own = above[v] if is_categorical[f] else above[v] | {f}
            above[int(nodes.left[v])] = above[int(nodes.right[v])] = own
    leaves = [sorted(above[v]) if nodes.feature[v] < 0 else [] for v in range(len(above))]
    found = np.full((len(leaves), max(map(len, leaves))), -1, np.int32)
    for v, own_features in enumerate(leaves):
        found[v, : len(own_features)] = own_features
    return found


def on_shared_grids(spaces: list[Space]) -> tuple[Space, ...]:
    """The same, those on one feature on one grid: so they have one histogram."""
    known: dict[tuple[int, ...], Grid] = {}
    return tuple(
        replace(space, grid=known.setdefault(space.grid.features, space.grid))
        if len(space.grid.features) == 1
        else space
        for space in spaces
    )


def _centres(data: TrainingSet, smoothing: Smoothing) -> NDArray[np.float64]:
    """(d, 256) what each bin stands for, from its feature's mean, in standard deviations; 0 if missing."""
    centres = np.zeros((data.cuts.n_features, 256))
    for f in np.flatnonzero(~data.cuts.is_categorical).tolist():
        axis: Axis = axis_of(data, f, smoothing)
        known = axis.weight[: len(axis.at)]
        total = exact_sum(known)
        if total > 0.0:
            away = axis.at - exact_sum(known * axis.at) / total
            spread = np.sqrt(exact_sum(known * away * away) / total)
            centres[f, : len(away)] = away / spread if spread > 0.0 else 0.0
    return centres
