"""The CPU backend: numba kernels run by a team of threads. The same bits as Reference, for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from gpuboost.backends import forest, formulas
from gpuboost.backends.contributions import Explainer, contributions
from gpuboost.backends.cpu_frontier import CpuFrontier
from gpuboost.backends.fixed_point import fixed_point_scale
from gpuboost.backends.layout import Columns, Layout, columns_of, layout_of
from gpuboost.backends.programme import Programme
from gpuboost.backends.reference import dense_rows, newton_values, weighted_quantile
from gpuboost.backends.rows import rows_of
from gpuboost.backends.team import Team, share
from gpuboost.kernels import binning, binning_sparse, fixed_point, gather, philox, pointwise
from gpuboost.keys import Key
from gpuboost.losses.protocol import Loss
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    DenseBins,
    Ensemble,
    Gradients,
    Limits,
    Nodes,
    Sample,
    SparseBins,
    Structure,
    Target,
    TrainingSet,
    Tree,
)

NO_MULTIPLICITY = np.empty(0, np.int32)
NO_WEIGHT = np.empty(0, np.float64)
DENSE_ABOVE = 4  # sparse bins cost about four times a dense one, entry by entry
SMALL = 16_384  # rows below which waking another thread costs more than it saves


class Cpu:
    """``threads`` is an upper bound; small pieces of work are done by the caller alone."""

    name = "cpu"

    def __init__(self, threads: int = 1) -> None:
        self._team = Team(threads)
        self._last_layout: tuple[Bins, bool, Layout] | None = None
        self._last_columns: tuple[Bins, Columns | None] | None = None
        self._last: tuple[Ensemble, forest.Forest] | None = None

    # the data, once

    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        if hasattr(x, "tocsr"):
            return self._quantise_sparse(x.tocsr(), cuts)
        x = x if cuts.source is None else x[:, cuts.source]
        x = x if x.flags.c_contiguous or x.flags.f_contiguous else np.ascontiguousarray(x)
        team = self._team if x.shape[0] >= SMALL else Team(1)
        return DenseBins(*binning.dense_bins(x, cuts.thresholds, cuts.categories, team.run, team.size))

    # the round

    def recorded(self, step: int) -> AbstractContextManager[None]:
        return nullcontext()

    def collect(self, ensemble: Ensemble) -> Ensemble:
        return ensemble

    # the target, once a round

    def start(self, data: TrainingSet, bias: Array) -> Array:
        return np.repeat(np.asarray(bias, np.float64)[:, None], data.n_rows, axis=1)

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        run = formulas.gradients(loss)
        g, h = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
        weight = NO_WEIGHT if data.weight is None else data.weight
        constant = -1.0 if curvature is None else curvature
        one = loss.n_outputs == 1
        rows = (data.y, scores[0], weight) if one else (data.y, scores, weight)
        out = (g[0], h[0]) if one else (g, h)
        self._by_rows(data.n_rows, lambda a, b: run(*rows, loss.parameter, constant, a, b, *out))
        return Gradients(g, h, data.multiplicity)

    def sample(self, probability: float, n_rows: int, key: Key) -> Sample:
        rows = np.empty(n_rows, np.int32)
        count = philox.drawn_rows(n_rows, np.uint64(int(probability * 2.0**32)), *key.words, rows)
        return Sample(rows[:count].copy(), np.full(count, 1.0 / probability, dtype=np.float32))

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        if sample.rows is None:
            return gradients
        rows, by, m = sample.rows, sample.inverse_probability, gradients.multiplicity
        g, h = (values.take(rows, axis=1) * by for values in (gradients.g, gradients.h))  # [:, rows] is not C order
        return Gradients(g, h, None if m is None else m[rows])

    # the tree

    def plant(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits
    ) -> CpuFrontier:
        packed, totals, units = self._pack(target.gradients, output)
        bins, rows = self._rows_of(data, target)
        if rows is not None and len(packed) < data.n_rows and not isinstance(bins, DenseBins):
            packed_by_row = np.zeros(data.n_rows, np.int64)
            packed_by_row[rows] = packed
            packed = packed_by_row
        by_column = self._columns_of(data) if limits.min_samples_leaf == 1 else None
        layout = self._layout_of(bins, data.cuts, candidates, by_column is not None)
        m = target.gradients.multiplicity
        weight = len(rows) if m is None else int(m.sum())
        return CpuFrontier(
            bins, data.cuts, layout, by_column, rows, packed, weight, totals, units, limits, output, self._team
        )

    def histograms(self, frontier: CpuFrontier) -> None:
        frontier.build_histograms()

    def best_splits(self, frontier: CpuFrontier) -> None:
        frontier.seek_splits()

    def partition(self, frontier: CpuFrontier, most: int | None = None) -> bool:
        return frontier.split(most)

    def harvest(self, frontier: CpuFrontier, data: TrainingSet, target: Target) -> Structure:
        leaf_of_row = frontier.settle()
        nodes = frontier.nodes()
        if target.rows is not None:
            return Structure(nodes, frontier.output, target.version, None, None)
        return Structure(nodes, frontier.output, target.version, leaf_of_row, frontier.sums())

    def leaf_values(
        self, structure: Structure, gradients: Gradients, data: TrainingSet, limits: Limits, version: int
    ) -> tuple[Tree, Array]:
        nodes, leaf_of_row, sums = structure.nodes, structure.leaf_of_row, structure.sums
        if leaf_of_row is None:
            leaf_of_row = self._route(nodes, data.bins, data.cuts)
        if sums is None or structure.version != version:
            sums = self._leaf_sums(gradients, structure.output, leaf_of_row, len(nodes.feature))
        return Tree(nodes, newton_values(nodes, sums, limits), structure.output, structure.version), leaf_of_row

    def leaf_quantiles(self, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet) -> Tree:
        assert loss.leaf_quantile is not None
        residual, weight, value = data.y - scores[tree.output], data.row_weight(), np.zeros(len(tree.value))
        by_leaf = np.argsort(leaf_of_row, kind="stable")
        ends = np.cumsum(np.bincount(leaf_of_row, minlength=len(value)))
        for leaf in np.flatnonzero(tree.nodes.is_leaf):
            rows = by_leaf[ends[leaf - 1] if leaf else 0 : ends[leaf]]
            value[leaf] = weighted_quantile(residual[rows], weight[rows], loss.leaf_quantile)
        return replace(tree, value=value)

    # the model

    def add_leaves(self, scores: Array, tree: Tree, factor: float, leaf_of_row: Array) -> None:
        steps = factor * tree.value
        row = scores[tree.output]
        self._by_rows(len(row), lambda a, b: pointwise.add_leaves(row, steps, leaf_of_row, a, b))

    def add_tree(self, scores: Array, tree: Tree, factor: float, bins: Bins, cuts: Cuts) -> None:
        self.add_leaves(scores, tree, factor, self._route(tree.nodes, bins, cuts))

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        run, each = formulas.values(loss), np.empty(len(y))
        self._by_rows(len(y), lambda a, b: run(y, scores, loss.parameter, a, b, each))
        if weight is None:
            return float(pointwise.sum_in_order(each)) / len(y)
        return float(pointwise.sum_in_order(each * weight)) / float(pointwise.sum_in_order(weight))

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        prepared, rows = self._prepared(ensemble), rows_of(x)
        out = np.empty((ensemble.n_outputs, x.shape[0]))
        self._by_rows(x.shape[0], lambda a, b: forest.predict(prepared, rows, a, b, out))
        return out

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        return forest.staged_predict(self._prepared(ensemble), x)

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        prepared, rows = self._prepared(ensemble), rows_of(x)
        out = np.empty((x.shape[0], len(ensemble.trees)), np.int32)
        self._by_rows(x.shape[0], lambda a, b: forest.leaves(prepared, rows, a, b, out))
        return out

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        explainer, rows = Explainer.of(ensemble), rows_of(x)
        out = np.empty((x.shape[0], ensemble.n_outputs, ensemble.cuts.n_columns + 1))
        self._team.run(lambda part: contributions(explainer, rows, *share(len(out), part, self._team.size), out))
        return out

    # parts of the above

    def _prepared(self, ensemble: Ensemble) -> forest.Forest:
        """The ensemble made ready for prediction; the last one is kept, for whoever predicts row by row."""
        if self._last is None or self._last[0] is not ensemble:
            self._last = ensemble, forest.Forest.of(ensemble)
        return self._last[1]

    def _layout_of(self, bins: Bins, cuts: Cuts, candidates: Candidates, by_column: bool) -> Layout:
        """The layout of the last tree, if this one asks for the same."""
        last = self._last_layout
        if (
            last is None
            or last[0] is not bins
            or last[1] != by_column
            or not np.array_equal(last[2].features, candidates.features)
        ):
            last = self._last_layout = bins, by_column, layout_of(bins, cuts, candidates, by_column=by_column)
        return last[2]

    def _columns_of(self, data: TrainingSet) -> Columns | None:
        """Columns sorted by bin, if that is the way to search these bins; sorted once."""
        if self._last_columns is None or self._last_columns[0] is not data.bins:
            self._last_columns = data.bins, columns_of(data.bins, data.cuts, self._team)
        return self._last_columns[1]

    def _quantise_sparse(self, x: Any, cuts: Cuts) -> Bins:
        """Sparse bins, or dense ones where so many entries are stored that the list of them would be longer."""
        if not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        entries = x.indptr, x.indices, x.data
        sparse = SparseBins(*binning_sparse.sparse_bins(*entries, cuts.thresholds, self._team.run, self._team.size))
        if len(sparse.feature) * DENSE_ABOVE < x.shape[0] * x.shape[1]:
            return sparse
        rows = dense_rows(sparse)
        return DenseBins(rows, np.ascontiguousarray(rows.T))

    def _by_rows(self, n_rows: int, work: Callable[[int, int], object]) -> None:
        """Call work(begin, end) on stretches of the rows, at once if there are enough of them."""
        self._in_parts(n_rows, lambda _, begin, end: work(begin, end))

    def _in_parts(self, n_rows: int, work: Callable[[int, int, int], object]) -> None:
        """The same for work(part, begin, end), part below the number of threads."""
        if n_rows < SMALL or self._team.size == 1:
            work(0, 0, n_rows)
        else:
            self._team.run(lambda part: work(part, *share(n_rows, part, self._team.size)))

    def _scale(self, values: Array, multiplicity: Array, bits: int) -> float:
        """See ``fixed_point_scale``; blocks are summed in order, whoever measured them."""
        n = len(values)
        starts = range(0, max(n, 1), fixed_point.BLOCK)
        extents = np.zeros((len(starts), 3))

        def measure(begin: int, end: int) -> None:
            for block in range(begin, end):
                a = starts[block]
                fixed_point.extent(values, multiplicity, a, min(a + fixed_point.BLOCK, n), extents[block])

        if len(starts) == 1 or self._team.size == 1:
            measure(0, len(starts))
        else:
            self._team.run(lambda part: measure(*share(len(starts), part, self._team.size)))
        total = 0.0
        for block_total in extents[:, 1].tolist():
            total += block_total
        weight = float(multiplicity.sum()) if len(multiplicity) else float(n)
        return fixed_point_scale(float(extents[:, 0].max()), total, float(extents[:, 2].max()), weight, bits)

    def _pack(self, gradients: Gradients, output: int) -> tuple[Array, tuple[int, int], tuple[float, float]]:
        """(m,) packed integers, their sums, and the value of one unit of g and of h."""
        g, h, m = gradients.g[output], gradients.h[output], _multiplicity(gradients)
        scales = self._scale(g, m, 31), self._scale(h, m, 32)
        packed, totals = np.empty(len(g), np.int64), np.zeros((self._team.size, 8), np.int64)  # a cache line each
        self._in_parts(len(g), lambda part, a, b: fixed_point.pack(g, h, m, *scales, a, b, packed, totals[part]))
        sums = totals.sum(axis=0)
        return packed, (int(sums[0]), int(sums[1])), (1.0 / scales[0], 1.0 / scales[1])

    def _leaf_sums(self, gradients: Gradients, output: int, leaf_of_row: Array, n_nodes: int) -> tuple[Array, Array]:
        """(v,) exact G and H of each leaf, over all rows."""
        g, h, m = gradients.g[output], gradients.h[output], _multiplicity(gradients)
        scales = self._scale(g, m, 31), self._scale(h, m, 32)
        sums = np.zeros((self._team.size, n_nodes, 2), np.int64)
        self._in_parts(
            len(g), lambda part, a, b: fixed_point.leaf_sums(g, h, m, *scales, leaf_of_row, a, b, sums[part])
        )
        total = sums.sum(axis=0)
        return total[:, 0] * (1.0 / scales[0]), total[:, 1] * (1.0 / scales[1])

    def _rows_of(self, data: TrainingSet, target: Target) -> tuple[Bins, Array]:
        """The bins that a tree is grown from, and the list of its rows in them.

        Dense rows that were drawn are copied side by side, so that growing costs what they are. Sparse ones are
        found through the list, since a copy would have to turn the columns round as well.
        """
        if target.rows is None:
            return data.bins, np.arange(data.n_rows, dtype=np.int32)
        if not isinstance(data.bins, DenseBins):
            return data.bins, target.rows.copy()
        m, d = len(target.rows), data.bins.shape[1]
        rows, columns = np.empty((m, d), np.uint8), np.empty((d, m), np.uint8)
        bins = data.bins
        self._by_rows(m, lambda a, b: gather.gather(bins.rows, bins.columns, target.rows, a, b, rows, columns))
        return DenseBins(rows, columns), np.arange(m, dtype=np.int32)

    def _route(self, nodes: Nodes, bins: Bins, cuts: Cuts) -> Array:
        programme, out = Programme.of([nodes], cuts), np.empty(bins.shape[0], np.int32)
        self._by_rows(len(out), lambda a, b: programme.route(bins, a, b, out))
        return out


def _multiplicity(gradients: Gradients) -> Array:
    return NO_MULTIPLICITY if gradients.multiplicity is None else gradients.multiplicity
