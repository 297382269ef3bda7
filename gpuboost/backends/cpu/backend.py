"""The CPU backend: numba kernels run by a pool of threads. The same bits as Reference, for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpuboost.backends.cpu import binning as cpu_binning
from gpuboost.backends.cpu import formulas
from gpuboost.backends.cpu import noise as cpu_noise
from gpuboost.backends.cpu import sampling as cpu_sampling
from gpuboost.backends.cpu import stump as cpu_stump
from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.grower import TreeGrower
from gpuboost.backends.cpu.layout import (
    IndicatorBitmaps,
    Layout,
    SortedColumns,
    columns_of,
    indicator_bitmaps,
    laid_out,
    layout_of,
)
from gpuboost.backends.cpu.leaves import with_values
from gpuboost.backends.cpu.partition import RowsByNode, rows_of_target
from gpuboost.backends.cpu.rankings import ranking as cpu_lists
from gpuboost.backends.cpu.rankings import smoothed_ranking as cpu_smoothed
from gpuboost.backends.cpu.sampled_columns import drawn_columns
from gpuboost.backends.cpu.small_stump import SmallStumps, grow_small_stump
from gpuboost.backends.cpu.smoothing import CpuSmoothing
from gpuboost.backends.cpu.stump import StumpGrower
from gpuboost.backends.cpu.warm_up import HELPER, load_numba
from gpuboost.backends.cpu.warm_up_tree import is_usual
from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics import line_search
from gpuboost.backends.numerics.leaf_values import leaf_quantiles, whole_weights
from gpuboost.backends.numerics.monotone import bound_leaves
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.backends.numerics.random_trees import counted, random_structure
from gpuboost.backends.prediction import additive, predictor
from gpuboost.backends.prediction.contributions import Explainer, contributions, interactions
from gpuboost.backends.prediction.flat_forest import FlatForest
from gpuboost.backends.prediction.memo import Memo
from gpuboost.backends.prediction.raw_values import rows_of
from gpuboost.backends.protocol import Capabilities
from gpuboost.backends.reference import sampling as reference_sampling
from gpuboost.backends.reference.ranking import list_losses
from gpuboost.backends.smoothing import Smoothing
from gpuboost.kernels.gradients import pointwise
from gpuboost.keys import Key
from gpuboost.losses.arrays import is_of_arrays
from gpuboost.losses.protocol import ListLoss, Loss, SmoothedLoss, is_list_loss
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    DenseBins,
    Ensemble,
    FittedTree,
    Gradients,
    Limits,
    Nodes,
    Noise,
    RowScore,
    Sample,
    Structure,
    Target,
    TrainingSet,
)

NO_WEIGHT = np.empty(0, np.float64)
SMALL = 16_384  # rows below which waking another thread costs more than it saves,
FORMULA, ROUNDING, ADDITION = 2, 4, 8  # times as many where a row takes no more than that


class Cpu:
    """A CPU with at most ``threads`` threads; the caller does small pieces of work without waking the others."""

    name = "cpu"
    offers = Capabilities()

    def __init__(self, threads: int = 1) -> None:
        self._pool = ThreadPool(threads)
        self._smoothing: CpuSmoothing | None = None
        self._workspaces: list[Workspace] = []  # of trees that are done; one for each that grows at the same time
        self._last_layout: tuple[Bins, bool, Layout] | None = None
        self._columns = Memo(partial(columns_of, pool=self._pool))
        self._full_columns, self._bitmaps = Memo(laid_out), Memo(indicator_bitmaps)
        self._last_lists: cpu_lists.QueryConstants | None = None
        self._last_smoothed: cpu_smoothed.SmoothedQueries | None = None
        self._scales, self._small_stumps = cpu_sums.Scales(), SmallStumps()
        self._last_constant: tuple[Array | None, float, Array] | None = None
        self._forests, self._explainers, self._additives = (
            Memo(predictor.ForestPredictor.of),
            Memo(Explainer.of),
            Memo(_additive),
        )

    # the data, once

    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        HELPER.start(x.shape[0], self._pool.size, categorical=bool(cuts.is_categorical.any()))
        load_numba()
        if hasattr(x, "tocsr"):
            return cpu_binning.of_sparse(x.tocsr(), cuts, self._pool)
        return cpu_binning.of_dense(x, cuts, self._pool if x.shape[0] >= SMALL else ThreadPool(1))

    # the round

    def recorded(self, step: int) -> AbstractContextManager[None]:
        return nullcontext()

    def collect(self, ensemble: Ensemble) -> Ensemble:
        return ensemble

    def to_host(self, result: Array) -> Array:
        return result

    # the target, once a round

    def start(self, data: TrainingSet, bias: Array) -> Array:
        begin = np.array(bias, np.float64, order="C")
        return begin if begin.ndim == 2 else np.repeat(begin[:, None], data.n_rows, axis=1)

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        if is_of_arrays(loss):
            return Gradients(*loss.host_derivatives(scores, data, curvature), data.multiplicity)
        if is_list_loss(loss):
            return cpu_lists.gradients(loss, self._lists_of(loss, data), scores, data, curvature, self._pool)
        run, g, constant = formulas.gradients(loss), np.empty(scores.shape, np.float32), curvature is not None
        h = np.empty(scores.shape, np.float32) if curvature is None else self._constant(data, scores.shape, curvature)
        weight = NO_WEIGHT if data.weight is None else data.weight
        one = loss.n_outputs == 1
        rows = (data.y, scores[0], weight) if one else (data.y, scores, weight)
        out = (g[0], h[0]) if one else (g, h)
        times = FORMULA if one else 1
        self._by_rows(data.n_rows, lambda a, b: run(*rows, loss.parameter, constant, a, b, *out), times)
        return Gradients(g, h, data.multiplicity)

    def smoothed_gradients(
        self, loss: SmoothedLoss, scores: Array, data: TrainingSet, curvature: float, key: Key, first: int = 0
    ) -> Gradients:
        """See the verb. first: number of the first row in the stream, for a part of the rows."""
        queries = self._smoothed_lists_of(loss, data)
        return cpu_smoothed.smoothed_gradients(queries, scores, data, curvature, key, first, self._pool)

    def sample(self, probability: float, n_rows: int, key: Key) -> Sample:
        room = self._free_workspace()
        sample = cpu_sampling.uniform(probability, n_rows, key, self._pool, room)
        self._workspaces.append(room)
        return sample

    def draw(
        self, gradients: Gradients, kappa: float, rule: ProbabilityRule, key: Key,
        losses: Array | RowScore | None = None,
    ) -> Sample:  # fmt: skip
        room = self._free_workspace()
        sample = cpu_sampling.draw(gradients, kappa, rule, key, losses, self._pool, room)
        self._workspaces.append(room)
        return sample

    def losses(self, loss: Loss, scores: Array, data: TrainingSet) -> Array:
        if is_list_loss(loss):
            each = list_losses(loss, scores, data)
        else:
            run, each = formulas.values(loss), np.empty(data.n_rows)
            self._by_rows(data.n_rows, lambda a, b: run(data.y, scores, loss.parameter, a, b, each))
        return each if data.weight is None else each * data.weight

    def score_rows(
        self, gradients: Gradients, kappa: float, losses: Array | None = None, factor: Array | None = None
    ) -> Array:
        return cpu_sampling.score_rows(gradients, kappa, losses, factor, self._pool)

    def keep_gradients(self, gradients: Gradients, rounds: int) -> Gradients:
        return gradients

    def node_control_variate(self, gradients: Gradients, sample: Sample, before: Gradients, eta: float) -> Gradients:
        return reference_sampling.node_control_variate(gradients, sample, before, eta)

    def horvitz_thompson(self, gradients: Gradients, sample: Sample) -> Gradients:
        return reference_sampling.horvitz_thompson(gradients, sample)

    def leaf_control_variate(
        self, gradients: Gradients, sample: Sample, before: Gradients, eta: float, leaves: tuple[Array, ...],
        sizes: tuple[int, ...],
    ) -> Gradients:  # fmt: skip
        means = np.empty(before.g.shape)
        for output, (leaf_of_row, size) in enumerate(zip(leaves, sizes, strict=True)):
            sums, _ = cpu_sums.leaf_sums(before, output, leaf_of_row, size, self._pool, self._in_parts)
            rows = np.bincount(leaf_of_row, before.multiplicity, size)
            means[output] = (sums / np.maximum(rows, 1.0))[leaf_of_row]
        return reference_sampling.leaf_control_variate(gradients, sample, before, eta, means)

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        return cpu_sampling.weigh(gradients, sample, self._pool)

    def noise(self, gradients: Gradients, rows: Array | None, noise: Noise) -> Gradients:
        return cpu_noise.noisy(gradients, rows, noise, self._by_rows)

    # the tree

    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        if key is not None:
            return random_structure(data, target, output, candidates, limits, key)
        workspace = self._free_workspace()
        structure = self._grown(data, target, output, candidates, limits, workspace)
        self._workspaces.append(workspace)
        return structure

    def leaf_values(
        self,
        structure: Structure,
        gradients: Gradients,
        data: TrainingSet,
        limits: Limits,
        version: int,
        noise: Noise | None = None,
    ) -> tuple[FittedTree, Array]:
        nodes, leaf_of_row, sums = structure.nodes, structure.leaf_of_row, structure.sums
        if sums is None or structure.version != version:
            route: cpu_sums.Route | None = None
            if leaf_of_row is None:
                leaf_of_row, flat_forest = np.empty(data.n_rows, np.int32), FlatForest.of([nodes], data.cuts)
                route = partial(flat_forest.route_and_sum, data.bins, leaf_of_row)
            leaves = leaf_of_row, len(nodes.feature)
            exact, units = cpu_sums.leaf_integers(
                gradients, structure.output, *leaves, self._pool, self._in_parts, route
            )
            sums = exact[:, 0] * units[0], exact[:, 1] * units[1]
            if structure.blind:
                nodes = counted(nodes, exact[:, 1], cpu_sums.leaf_counts(*leaves, self._pool, self._in_parts), units[1])
        elif leaf_of_row is None:
            leaf_of_row = self._route(nodes, data.bins, data.cuts)
        return with_values(structure, nodes, sums, limits, noise), leaf_of_row

    def leaf_quantiles(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        assert loss.leaf_quantile is not None
        residual = data.y - scores[tree.output] + 0.0  # + 0.0: no negative zero
        value = leaf_quantiles(leaf_of_row, tree.nodes.is_leaf, residual, whole_weights(data), loss.leaf_quantile)
        return replace(tree, value=value)

    def line_search(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool
    ) -> FittedTree:
        return line_search.along_tree(self, tree, leaf_of_row, loss, scores, data, per_leaf)

    def length_along(self, loss: Loss, scores: Array, output: int, along: Array, data: TrainingSet) -> float:
        return float(line_search.lengths(self, loss, scores, output, along, data)[0])

    def bound_leaves(
        self, tree: FittedTree, leaf_of_row: Array, data: TrainingSet, limits: Limits, *, refined: bool = False
    ) -> FittedTree:
        return bound_leaves(tree, data.cuts, limits, refined=refined)

    # the model

    def add_leaves(self, scores: Array, tree: FittedTree, factor: float, leaf_of_row: Array) -> None:
        steps = factor * tree.value
        row = scores[tree.output]
        self._by_rows(len(row), lambda a, b: pointwise.add_leaves(row, steps, leaf_of_row, a, b), ADDITION)

    def add_tree(self, scores: Array, tree: FittedTree, factor: float, bins: Bins, cuts: Cuts) -> None:
        self.add_leaves(scores, tree, factor, self._route(tree.nodes, bins, cuts))

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        for output in range(len(sums)):
            shrunken = partial(pointwise.shrunken, sums[output], out[output], float(bias[output]), scale)
            self._by_rows(sums.shape[1], shrunken, ADDITION)

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        if is_of_arrays(loss):
            return loss.mean(y, scores, weight)
        run, each = formulas.values(loss), np.empty(len(y))
        self._by_rows(len(y), lambda a, b: run(y, scores, loss.parameter, a, b, each))
        if weight is None:
            return float(pointwise.sum_in_order(each)) / len(y)
        return float(pointwise.sum_in_order(each * weight)) / float(pointwise.sum_in_order(weight))

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        if ensemble.components:
            return self._additives.of(ensemble, self).predict(self, ensemble, x)
        prepared, rows = self._forests.of(ensemble), rows_of(x)
        out = np.empty((ensemble.n_outputs, x.shape[0]))
        self._by_rows(x.shape[0], lambda a, b: predictor.predict(prepared, rows, a, b, out))
        return out

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        if ensemble.components:
            return additive.staged_predict(self, ensemble, x, np.copy)
        return predictor.staged_predict(self._forests.of(ensemble), x)

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        prepared, rows = self._forests.of(ensemble), rows_of(x)
        out = np.empty((x.shape[0], len(ensemble.trees)), np.int32)
        self._by_rows(x.shape[0], lambda a, b: predictor.leaves(prepared, rows, a, b, out))
        return out

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        explainer, rows = self._explainers.of(ensemble), rows_of(x)
        out = np.empty((x.shape[0], ensemble.n_outputs, ensemble.cuts.n_columns + 1))
        self._pool.run(lambda part: contributions(explainer, rows, *share(len(out), part, self._pool.size), out))
        return out

    def interactions(self, ensemble: Ensemble, x: Any) -> Array:
        explainer, rows, side = self._explainers.of(ensemble), rows_of(x), ensemble.cuts.n_columns + 1
        out = np.empty((x.shape[0], ensemble.n_outputs, side, side))
        self._pool.run(lambda part: interactions(explainer, rows, *share(len(out), part, self._pool.size), out))
        return out

    def smoothing(self) -> Smoothing:
        """The verbs for components."""
        if self._smoothing is None:
            self._smoothing = CpuSmoothing(self._pool, self._in_parts, self._route)
        return self._smoothing

    # parts of the above

    def _grown(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        workspace: Workspace,
    ) -> Structure:  # fmt: skip
        """Grow the tree by the fastest method for it: as a stump, by sorted columns or by histograms."""
        some_cuts = limits.min_samples_leaf > 1 or limits.symmetric or candidates.root is not None
        some_cuts = some_cuts or candidates.noise is not None or candidates.cuts is not None or limits.bounded
        free = not limits.bounded and limits.interactions is None
        if target.rows is None and free and cpu_stump.suits(limits):
            stump = self._stump(data, target, output, candidates, limits, workspace, some_cuts=some_cuts)
            if stump is not None:
                return stump
        by_column = None if some_cuts else self._columns_of(data)
        return self._tree(data, target, output, candidates, limits, by_column, workspace)

    def _stump(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        workspace: Workspace, *, some_cuts: bool,
    ) -> Structure | None:  # fmt: skip
        """None if sorted columns are searched instead, which need all cuts to compete."""
        bitmaps = self._bitmaps_of(data.bins)
        few = cpu_stump.by_columns(data.bins, bitmaps, candidates)
        if few and self._small_stumps.suit(data, candidates, bitmaps, self._pool):
            known = bitmaps, self._laid_out(data.bins), self._scales, workspace
            return grow_small_stump(data, target, output, candidates, limits, *known)
        if not (few or some_cuts or self._columns_of(data) is None):
            return None
        some = len(candidates.features) < data.bins.shape[1]  # rows would have to be laid out for these alone
        by_row = None if few or some else self._layout_of(data.bins, data.cuts, candidates, by_column=False)
        bins = by_row, bitmaps, self._laid_out(data.bins), self._scales.of(target.gradients, output, self._pool)
        return StumpGrower(data, target, output, candidates, limits, *bins, self._pool, workspace).grow()

    def _tree(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        by_column: SortedColumns | None, workspace: Workspace,
    ) -> Structure:  # fmt: skip
        """by_column: the columns to search without histograms, or None."""
        HELPER.join(usual=is_usual(limits, candidates, by_column, data.n_rows))
        in_parts = partial(self._in_parts, times=ROUNDING)
        packed, totals, units = cpu_sums.pack(target.gradients, output, self._pool, in_parts, workspace)
        m = target.gradients.multiplicity
        weight = len(packed) if m is None else int(m.sum())
        bins, rows, drawn = rows_of_target(data, target, workspace, self._by_rows)
        if len(packed) < data.n_rows and not isinstance(bins, DenseBins):
            packed_by_row = np.zeros(data.n_rows, np.int64)
            packed_by_row[rows] = packed
            packed = packed_by_row
        if by_column is not None and target.rows is not None:
            by_column = drawn_columns(by_column, target.rows, data.n_rows, self._pool, workspace)
        layout = self._layout_of(bins, data.cuts, candidates, by_column=by_column is not None)
        by_node = RowsByNode(bins, layout, self._laid_out(bins), rows, drawn, self._pool, workspace)
        grower = TreeGrower(
            by_node, packed, weight, totals, units, by_column, data.cuts, limits, candidates, output, workspace
        )
        return grower.grow(target)

    def _free_workspace(self) -> Workspace:
        """A workspace that no other tree, grown by another thread, is using."""
        try:
            return self._workspaces.pop()
        except IndexError:
            return Workspace()

    def _layout_of(self, bins: Bins, cuts: Cuts, candidates: Candidates, by_column: bool) -> Layout:
        """The histogram layout: that of the last tree if its candidates are the same."""
        last = self._last_layout
        if last is not None and last[0] is bins and last[1] == by_column:
            before, now = last[2].features, candidates.features
            if before is now or np.array_equal(before, now):
                return last[2]
        made = layout_of(bins, cuts, candidates, by_column=by_column)
        self._last_layout = bins, by_column, made
        return made

    def _constant(self, data: TrainingSet, shape: tuple[int, ...], curvature: float) -> Array:
        """(k, n) float32: the constant that replaces h, times the weights. One read-only array for all rounds."""
        last = self._last_constant
        if last is None or last[0] is not data.weight or last[1] != curvature or last[2].shape != shape:
            h = np.full(shape, curvature) if data.weight is None else np.tile(curvature * data.weight, (shape[0], 1))
            last = self._last_constant = data.weight, curvature, h.astype(np.float32)
        return last[2]

    def _lists_of(self, loss: ListLoss, data: TrainingSet) -> cpu_lists.QueryConstants:
        """Constants of the queries that do not depend on scores; computed once."""
        last = self._last_lists
        if last is None or not last.serves(loss, data):
            last = self._last_lists = cpu_lists.QueryConstants.made_of(loss, data)
        return last

    def _smoothed_lists_of(self, loss: SmoothedLoss, data: TrainingSet) -> cpu_smoothed.SmoothedQueries:
        """``_lists_of`` for a smoothed metric."""
        last = self._last_smoothed
        if last is None or not last.serves(loss, data):
            last = self._last_smoothed = cpu_smoothed.SmoothedQueries.made_of(loss, data)
        return last

    def _columns_of(self, data: TrainingSet) -> SortedColumns | None:
        """Columns sorted by bin, if these bins are searched without histograms; sorted once."""
        return self._columns.of(data.bins, data.cuts)

    def _laid_out(self, bins: Bins) -> Array | None:
        """Columns of sparse bins laid out in full, unless they take too much memory; laid out once."""
        return None if isinstance(bins, DenseBins) else self._full_columns.of(bins)

    def _bitmaps_of(self, bins: Bins) -> IndicatorBitmaps | None:
        """Bitmaps of the columns of sparse bins that are summed by them; made once."""
        return None if isinstance(bins, DenseBins) else self._bitmaps.of(bins)

    def _by_rows(self, n_rows: int, work: Callable[[int, int], object], times: int = 1) -> None:
        """Call work(begin, end) on stretches of the rows, in parallel from ``times`` SMALL rows on."""
        if n_rows < times * SMALL or self._pool.size == 1:
            work(0, n_rows)
        else:
            self._pool.run(lambda part: work(*share(n_rows, part, self._pool.size)))

    def _in_parts(self, n_rows: int, work: Callable[[int, int, int], object], times: int = 1) -> None:
        """``_by_rows`` for work(part, begin, end), part below the number of threads."""
        if n_rows < times * SMALL or self._pool.size == 1:
            work(0, 0, n_rows)
        else:
            self._pool.run(lambda part: work(part, *share(n_rows, part, self._pool.size)))

    def _route(self, nodes: Nodes, bins: Bins, cuts: Cuts) -> Array:
        flat_forest, out = FlatForest.of([nodes], cuts), np.empty(bins.shape[0], np.int32)
        self._by_rows(len(out), lambda a, b: flat_forest.route(bins, a, b, out))
        return out


def _additive(ensemble: Ensemble, cpu: Cpu) -> additive.Additive:
    return additive.Additive.of(cpu, ensemble)
