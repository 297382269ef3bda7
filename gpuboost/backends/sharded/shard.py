"""A worker of the sharded machine: some of the rows, and its part of every verb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from gpuboost.backends.cpu import formulas
from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.sampling import control_variates
from gpuboost.backends.cpu.sampling import draws as cpu_sampling
from gpuboost.backends.cpu.sampling.noise import EVERY_ROW
from gpuboost.backends.cpu.trees.layout import laid_out, layout_of
from gpuboost.backends.cpu.trees.partition import RowsByNode, rows_of_target
from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.host.workspace import Workspaces
from gpuboost.backends.numerics import sketches
from gpuboost.backends.numerics.probabilities import Parameters, ProbabilityRule
from gpuboost.backends.prediction.flat_forest import FlatForest
from gpuboost.backends.prediction.memo import Memo
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.sharded.extents import Extent, extent_of
from gpuboost.backends.sharded.object_store import ObjectStore
from gpuboost.backends.sharded.ordered import Part, part_of_numbers
from gpuboost.backends.sharded.quantiles import Residuals
from gpuboost.backends.sharded.rows import ShardRows
from gpuboost.backends.sharded.shard_data import ShardSource
from gpuboost.backends.sharded.shared_tree import TreeOfShard, columns_of
from gpuboost.backends.sharded.worker_group import Kept, Message
from gpuboost.kernels.common import fixed_point, philox
from gpuboost.kernels.sampling import importance as sampling
from gpuboost.kernels.sampling.probability import inverse, is_below, is_drawn
from gpuboost.keys import Key
from gpuboost.losses.protocol import DrawnLoss, Loss
from gpuboost.types import (
    Array,
    Candidates,
    Cuts,
    DenseBins,
    FittedTree,
    Gradients,
    Limits,
    Nodes,
    Noise,
    RowScore,
    Sample,
    SparseBins,
    Target,
)

ROWS_PER_THREAD = 8_192  # below it, waking another thread costs more than it saves


class Shard:
    """The verbs that need rows, on this shard's rows. ``do`` is the only entry point of messages."""

    def __init__(self, threads: int = 1) -> None:
        self._objects, self._cpu, self._pool = ObjectStore(), Cpu(threads), ThreadPool(threads)
        self._trees: dict[int, ShardRows] = {}
        self._workspaces = Workspaces()
        self._full_columns, self._every_column = Memo(laid_out), Memo(columns_of)
        self._shared_trees: dict[int, TreeOfShard] = {}
        self._first = 0

    def do(self, message: Message) -> Any:
        """See ``AnyShard``."""
        return self._objects.call(self, message)

    def abort(self) -> None:
        """See ``AnyShard``. These shards do not wait for each other."""

    def receive(self, *objects: Any) -> tuple[Kept, None]:
        """See ``AnyShard``."""
        return objects, None

    def fetch(self, kept: Any) -> Any:
        """See ``AnyShard``."""
        return kept

    # the data, once

    def hold(self, source: ShardSource, cuts: Cuts, first: int) -> tuple[tuple[Any, ...], Array | None]:
        """Bin the rows. Returns the (d,) default bins if they are kept sparse."""
        data = source()
        bins = self._cpu.quantise(data.x, cuts)
        self._data = data.binned(bins, cuts)
        self._first = first
        return (None, data.multiplicity), bins.default if isinstance(bins, SparseBins) else None

    def fill(self) -> None:
        """Convert the bins to dense ones, as another shard's are dense."""
        if not isinstance(self._data.bins, DenseBins):
            rows = dense_rows(self._data.bins)
            self._data = replace(self._data, bins=DenseBins(rows, np.ascontiguousarray(rows.T)))

    # the target, once a round

    def begin(self, bias: Array) -> tuple[tuple[Array], None]:
        return (self._cpu.start(self._data, bias),), None

    def differentiate(self, loss: Loss, scores: Array, curvature: float | None) -> tuple[tuple[Array, Array], None]:
        gradients = self._cpu.gradients(loss, scores, self._data, curvature)
        return (gradients.g, gradients.h), None

    def differentiate_drawn(
        self, loss: DrawnLoss, scores: Array, curvature: float | None, key: Key
    ) -> tuple[tuple[Array, Array], None]:
        """Row numbers in the stream count the rows of all shards."""
        gradients = self._cpu.drawn_gradients(loss, scores, self._data, curvature, key, self._first)
        return (gradients.g, gradients.h), None

    def row_losses(self, loss: Loss, scores: Array) -> tuple[tuple[Array], None]:
        return (self._cpu.losses(loss, scores, self._data),), None

    def loss_part(self, loss: Loss, scores: Array, weighted: bool) -> Part:
        """Part of the ordered sum of losses, times weights or multiplicities."""
        run, each = formulas.values(loss), np.empty(self._data.n_rows)
        self._by_rows(len(each), lambda a, b: run(self._data.y, scores, loss.parameter, a, b, each))
        return part_of_numbers(self._first, each * self._data.row_weight() if weighted else each)

    def size_of(self, gradients: Gradients, first: int) -> Extent:
        """first: number of the shard's first row among those of the gradients."""
        return extent_of(gradients, first)

    def weighed(self, gradients: Gradients, sample: Sample) -> tuple[tuple[Array, Array, Array | None], None]:
        return _arrays(self._cpu.weigh(gradients, sample)), None

    def with_noise(self, gradients: Gradients, rows: Array | None, noise: Noise) -> tuple[tuple[Array], None]:
        """Row numbers in the stream count the rows of all shards."""
        n = gradients.g.shape[1]
        if rows is None and self._first:
            rows = np.arange(n, dtype=np.int32)
        row_numbers = EVERY_ROW if rows is None else rows + np.int32(self._first)
        return (self._cpu.noise(gradients, row_numbers if rows is not None else None, noise).g,), None

    # which rows

    def draw_evenly(self, probability: float, key: Key) -> tuple[tuple[Array, Array], int]:
        drawn = np.flatnonzero(is_below.py_func(self._numbers(key), int(probability * 2.0**32))).astype(np.int32)
        return (drawn, np.full(len(drawn), 1.0 / probability, dtype=np.float32)), len(drawn)

    def importance(
        self, gradients: Gradients, kappa: float, losses: Array | RowScore | None
    ) -> tuple[tuple[Array], tuple[Array, Array, int]]:
        """Compute the sampling scores; return their counts by bucket, and the number of NaN."""
        losses = cpu_sampling.row_scores(gradients, losses) if callable(losses) else losses
        m, n = cpu_sums.multiplicity_of(gradients), gradients.g.shape[1]
        scores, counts = np.empty(n, np.float32), np.zeros((2, sampling.BUCKETS), np.int64)
        if losses is None:
            made_of = sampling.CURVATURE if kappa == inf else sampling.BOTH if kappa > 0.0 else sampling.GRADIENT
            bad = sampling.importance(gradients.g, gradients.h, m, made_of, kappa, 0, n, scores, *counts)
        else:
            bad = sampling.clip(losses, m, 0, n, scores)
            sampling.count(scores.view(np.uint32), 0, n, *counts)
        return (scores,), (counts[0], counts[1], int(bad))

    def three_sums(self, scores: Array, mu: float, low: float, scale: float) -> Array:
        """See ``threshold.ThreeSums``."""
        out = np.zeros(3, np.int64)
        sampling.three_sums(scores, 0, len(scores), mu, low, scale, out)
        return out

    def within(self, scores: Array, shift: int, prefix: int, low_bits: int) -> Array:
        """See ``threshold.Within``."""
        out = np.zeros((2, 1 << (shift - low_bits)), np.int64)
        bits = scores.view(np.uint32)
        sampling.count_within(bits, 0, len(bits), shift, np.uint32(prefix), low_bits, *out)
        return out

    def draw_by(
        self, scores: Array, rule: ProbabilityRule, parameters: Parameters, key: Key
    ) -> tuple[tuple[Array, Array], tuple[int, int]]:
        """Draw rows, with 1 / p; return their number, and the number of rows of probability 0."""
        p = rule.probability(scores.astype(np.float64), parameters)
        rows = np.flatnonzero(is_drawn.py_func(self._numbers(key), p))
        return (rows.astype(np.int32), inverse.py_func(p[rows]).astype(np.float32)), (len(rows), int((p == 0.0).sum()))

    def _numbers(self, key: Key) -> Array:
        """(n,) uint32: this shard's numbers of the stream."""
        n, whole = self._data.n_rows, self._first - self._first % philox.NUMBERS
        words, stop = np.empty(philox.NUMBERS, np.uint32), self._first + n
        out = np.empty(-(-(stop - whole) // philox.NUMBERS) * philox.NUMBERS, np.uint32)
        for offset in range(0, len(out), philox.NUMBERS):
            philox.numbers((whole + offset) // 4, *key.words, words)
            out[offset : offset + philox.NUMBERS] = words
        return out[self._first - whole :][:n]

    def node_control_variate(
        self, gradients: Gradients, sample: Sample, before: Gradients, eta: float
    ) -> tuple[tuple[Array, Array, Array | None], None]:
        return _arrays(self._cpu.node_control_variate(gradients, sample, before, eta)), None

    def horvitz_thompson(self, gradients: Gradients, sample: Sample) -> tuple[tuple[Array, Array, Array | None], None]:
        return _arrays(self._cpu.horvitz_thompson(gradients, sample)), None

    def leaf_control_variate(
        self, gradients: Gradients, sample: Sample, before: Gradients, eta: float, leaves: tuple[Array, ...],
        means: tuple[Array, ...],
    ) -> tuple[tuple[Array, Array, Array | None], None]:  # fmt: skip
        """means: (v,) means of the earlier gradient over the leaves of each output's tree."""
        of_row = np.stack([mean[leaf] for mean, leaf in zip(means, leaves, strict=True)])
        return _arrays(control_variates.leaf(gradients, sample, before, eta, of_row, self._by_rows)), None

    # the tree

    def init_root(
        self, tree: int, target: Target, output: int, candidates: Candidates, limits: Limits,
        scales: tuple[float, float],
    ) -> tuple[int, int]:  # fmt: skip
        """Put all rows of the target into the root; return the sums of their integers."""
        data, gradients = self._data, target.gradients
        workspace = self._workspaces.take()
        g, h, m = gradients.g[output], gradients.h[output], cpu_sums.multiplicity_of(gradients)
        packed, totals = workspace.array("packed", g.shape, np.int64), np.zeros((self._pool.size, 8), np.int64)
        self._in_parts(len(g), lambda part, a, b: fixed_point.pack(g, h, m, *scales, a, b, packed, totals[part]))
        bins, rows, drawn = rows_of_target(data, target, workspace, self._by_rows)
        if target.rows is not None and not isinstance(bins, DenseBins):
            by_row = np.zeros(data.n_rows, np.int64)
            by_row[target.rows] = packed
            packed = by_row
        layout = layout_of(bins, data.cuts, candidates, by_column=False)
        in_full = None if isinstance(bins, DenseBins) else self._full_columns.of(bins)
        by_node = RowsByNode(bins, layout, in_full, rows, drawn, self._pool, workspace)
        self._trees[tree] = ShardRows(by_node, packed, limits, workspace)
        return int(totals[:, 0].sum()), int(totals[:, 1].sum())

    def sum_up(self, tree: int, built: Array) -> tuple[list[Array], Array | None]:
        return self._trees[tree].sum_up(built)

    def sort(self, tree: int, chosen: Array, rule: Array, left_sets: Array) -> Array:
        return self._trees[tree].sort(chosen, rule, left_sets)

    def apply_splits(self, tree: int, chosen: Array, children: Array, rule: Array, left_sets: Array) -> None:
        self._trees[tree].apply_splits(chosen, children, rule, left_sets)

    def settle(self, tree: int) -> tuple[tuple[Array], Array]:
        """Find the leaf of each row of the target; return the number of rows of each node."""
        rows = self._trees.pop(tree)
        leaf_of_row = rows.settle()
        self._workspaces.give_back(rows.workspace)
        return (leaf_of_row,), rows.count()

    # one tree for several outputs

    def begin_together(
        self, tree: int, target: Target, searched: Gradients, scales: tuple[tuple[float, float], ...]
    ) -> Array:
        """Put all rows of the target into the root; return the (s, 2) sums of their integers."""
        g, h, m = searched.g, searched.h, cpu_sums.multiplicity_of(searched)
        packed, column = np.empty((g.shape[1], len(g)), np.int64), np.empty(g.shape[1], np.int64)
        for output, scale in enumerate(scales):
            fixed_point.pack(g[output], h[output], m, *scale, 0, len(column), column, np.zeros(8, np.int64))
            packed[:, output] = column
        columns = self._every_column.of(self._data.bins)
        columns = columns if target.rows is None else np.ascontiguousarray(columns[:, target.rows])
        self._shared_trees[tree] = TreeOfShard(columns, packed, self._data.cuts, self._pool)
        return self._shared_trees[tree].sums

    def histograms_together(self, tree: int, nodes: Array, lines: Array) -> tuple[Array, Array]:
        return self._shared_trees[tree].histograms(nodes, lines)

    def divide_together(
        self, tree: int, numbers: Array, splits: tuple[tuple[int, float, int, bool, bool], ...]
    ) -> tuple[Array, Array]:
        return self._shared_trees[tree].divide(numbers, splits)

    def settle_together(self, tree: int) -> tuple[tuple[Array], None]:
        """Find the leaf of each row of the target."""
        return (self._shared_trees.pop(tree).leaf_of_row(),), None

    def squared_norms(self, gradients: Gradients, first: int) -> list[Part]:
        """first: number of the shard's first row among those of the gradients."""
        return [part_of_numbers(first, squares) for squares in sketches.squared(gradients)]

    def chosen_outputs(
        self, gradients: Gradients, outputs: Array, factors: Array
    ) -> tuple[tuple[Array, Array, Array | None], None]:
        return _arrays(sketches.chosen_outputs(gradients, outputs, factors)), None

    def projected_outputs(self, gradients: Gradients, matrix: Array) -> tuple[tuple[Array, Array, Array | None], None]:
        return _arrays(sketches.projected_outputs(gradients, matrix)), None

    # the leaves

    def route(self, nodes: Nodes) -> tuple[tuple[Array], None]:
        data, leaf_of_row = self._data, np.empty(self._data.n_rows, np.int32)
        flat_forest = FlatForest.of([nodes], data.cuts)
        self._by_rows(data.n_rows, lambda a, b: flat_forest.route(data.bins, a, b, leaf_of_row))
        return (leaf_of_row,), None

    def leaf_integers(
        self, gradients: Gradients, output: int, leaf_of_row: Array, n_nodes: int, scales: tuple[float, float]
    ) -> tuple[Array, Array]:
        """(v, 2) sums of the integers in each leaf, and (v,) numbers of rows."""
        g, h, m = gradients.g[output], gradients.h[output], cpu_sums.multiplicity_of(gradients)
        sums = np.zeros((self._pool.size, n_nodes, 2), np.int64)
        self._in_parts(
            len(g), lambda part, a, b: fixed_point.leaf_sums(g, h, m, *scales, leaf_of_row, a, b, sums[part])
        )
        return sums.sum(axis=0), np.bincount(leaf_of_row, minlength=n_nodes)

    def weight_of_leaves(self, leaf_of_row: Array, n_nodes: int, multiplicity: Array | None) -> Array:
        """(v,) int64: rows in each leaf, times their multiplicity."""
        counts = np.zeros(n_nodes, np.int64)
        np.add.at(counts, leaf_of_row, 1 if multiplicity is None else multiplicity)
        return counts

    def residuals(self, leaf_of_row: Array, scores: Array, output: int, scale: float) -> tuple[tuple[Residuals], None]:
        """Residuals y - F of one output, for the search for quantiles."""
        return (Residuals.of(self._data, leaf_of_row, scores, output, scale),), None

    def rank(self, residuals: Residuals, n_nodes: int, prefixes: Array, shift: int) -> Array:
        return residuals.rank(n_nodes, prefixes, shift)

    # the model

    def add(self, scores: Array, tree: FittedTree, factor: float, leaf_of_row: Array) -> None:
        self._cpu.add_leaves(scores, tree, factor, leaf_of_row)

    def add_routed(self, scores: Array, tree: FittedTree, factor: float) -> None:
        self._cpu.add_tree(scores, tree, factor, self._data.bins, self._data.cuts)

    def show(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        self._cpu.scores(sums, bias, scale, out)

    # parts of the above

    def _by_rows(self, n_rows: int, work: Callable[[int, int], object]) -> None:
        """Call work(begin, end) on stretches of the rows, in parallel if there are many."""
        self._in_parts(n_rows, lambda _, begin, end: work(begin, end))

    def _in_parts(self, n_rows: int, work: Callable[[int, int, int], object]) -> None:
        """``_by_rows`` for work(part, begin, end), part below the number of threads."""
        parts = self._pool.n_parts(n_rows, ROWS_PER_THREAD)
        self._pool.run_parts(parts, lambda part: work(part, *share(n_rows, part, parts)))


def _arrays(gradients: Gradients) -> tuple[Array, Array, Array | None]:
    return gradients.g, gradients.h, gradients.multiplicity
