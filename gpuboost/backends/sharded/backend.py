"""The sharded machine: the shards hold the rows, the driver makes every decision. The same bits as Reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, Concatenate, ParamSpec

import numpy as np

from gpuboost.backends.cpu.leaves import with_values
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspaces
from gpuboost.backends.numerics.leaf_values import climbed, weight_scale
from gpuboost.backends.numerics.monotone import bound_leaves
from gpuboost.backends.numerics.one_tree import VectorTree
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.backends.numerics.random_trees import counted, random_structure
from gpuboost.backends.protocol import CPU_SHARDS
from gpuboost.backends.sharded.arrays import Distributed, Driver
from gpuboost.backends.sharded.drawing import draw
from gpuboost.backends.sharded.extents import Extent, Scales, scales_of
from gpuboost.backends.sharded.grower import RootSums, ShardedGrower
from gpuboost.backends.sharded.machine import Machine
from gpuboost.backends.sharded.one_tree import ShardedRows
from gpuboost.backends.sharded.ordered import joined
from gpuboost.backends.sharded.quantiles import quantiles
from gpuboost.backends.sharded.shard import Shard
from gpuboost.backends.sharded.shard_data import ShardSource
from gpuboost.backends.sharded.worker_group import Kept, WorkerGroup
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.losses.protocol import DrawnLoss, Loss
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    DenseBins,
    FittedTree,
    Gradients,
    Limits,
    Noise,
    RowScore,
    Sample,
    SparseBins,
    Structure,
    Target,
    TrainingSet,
)

P = ParamSpec("P")

NO_BINS = np.empty((0, 0), np.uint8)
NO_LONGS, NO_INTS, NO_BYTES = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint8)


class Sharded(Machine):
    """The shards hold the training rows (``place``). The driver holds other rows: eval sets and rows to predict.

    ``threads``: the driver's threads, for the split search and for its own rows.
    """

    offers = CPU_SHARDS
    whole = False  # whether shards must begin where stretches do
    why = "shards compute on CPUs"
    _shard = Shard

    def __init__(self, workers: WorkerGroup, threads: int = 1) -> None:
        driver = Driver(workers)
        super().__init__(driver, driver, threads)
        self._pool = ThreadPool(threads)
        self._last_extents: tuple[Any, list[Extent]] | None = None
        self._workspaces = Workspaces()
        self._empty: Bins = DenseBins(NO_BINS, NO_BINS)
        self._multiplicity: Distributed | None = None

    # the data, once

    def place(
        self, sources: Sequence[ShardSource], cuts: Cuts, y: Array, weight: Array | None, multiplicity: Array | None,
        query_start: Array | None, sizes: Sequence[int],
    ) -> TrainingSet:  # fmt: skip
        """Send every shard its rows. The driver keeps the target and the weights of all rows, and no feature.

        sources: one per shard, or fewer. sizes: their numbers of rows. The other arguments are for all rows, in that
        order.
        """
        firsts, self._last_extents = self._sized(sizes, len(y)), None
        self._driver.workers.keep_first(len(sources))
        each = [(source, cuts, first) for source, first in zip(sources, firsts, strict=True)]
        numbers, defaults = self._driver.ask_each_and_keep(2, Shard.hold, each)
        if all(default is not None for default in defaults):
            self._empty = _no_rows(defaults[0])
        else:
            self._empty = DenseBins(NO_BINS, NO_BINS)
            self._driver.tell(Shard.fill)
        bins = self._array(numbers[0], (len(y), cuts.n_features))
        kept = self._array(numbers[1], (len(y),))
        self._multiplicity = None if multiplicity is None else kept
        return TrainingSet(DenseBins(bins, bins), cuts, y, weight, multiplicity, query_start)

    # the round

    def recorded(self, step: int, sequence: int = 0) -> AbstractContextManager[None]:
        return nullcontext()

    # the target, once a round

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        g, h = self._driver.keep(2, Shard.differentiate, self._remote_loss(loss), scores, curvature)
        return Gradients(self._array(g, scores.shape), self._array(h, scores.shape), self._multiplicity)

    def drawn_gradients(
        self, loss: DrawnLoss, scores: Array, data: TrainingSet, curvature: float | None, key: Key
    ) -> Gradients:
        g, h = self._driver.keep(2, Shard.differentiate_drawn, loss, scores, curvature, key)
        return Gradients(self._array(g, scores.shape), self._array(h, scores.shape), self._multiplicity)

    def sample(self, probability: float, n_rows: int, key: Key) -> Sample:
        return self._sample(*self._driver.ask_and_keep(2, Shard.draw_evenly, probability, key))

    def draw(
        self, gradients: Gradients, kappa: float, rule: ProbabilityRule, key: Key,
        losses: Array | RowScore | None = None,
    ) -> Sample:  # fmt: skip
        return self._sample(*draw(self._driver, gradients, kappa, rule, key, losses))

    def losses(self, loss: Loss, scores: Array, data: TrainingSet) -> Array:
        (number,) = self._driver.keep(1, Shard.row_losses, self._remote_loss(loss), scores)
        return self._array(number, scores.shape[1:])

    def score_rows(
        self, gradients: Gradients, kappa: float, losses: Array | None = None, factor: Array | None = None
    ) -> Array:
        """Not offered by shards; the composition check refuses rules that need it."""
        raise RecipeError("sampling: shards of DataParallel hold no scores of rows between rounds.")

    def keep_gradients(self, gradients: Gradients, rounds: int) -> Gradients:
        return gradients

    def node_control_variate(self, gradients: Gradients, sample: Sample, before: Gradients, eta: float) -> Gradients:
        return self._made(gradients.g.shape, self._sizes, Shard.node_control_variate, gradients, sample, before, eta)

    def horvitz_thompson(self, gradients: Gradients, sample: Sample) -> Gradients:
        return self._made(gradients.g.shape, self._sizes, Shard.horvitz_thompson, gradients, sample)

    def leaf_control_variate(
        self, gradients: Gradients, sample: Sample, before: Gradients, eta: float, leaves: tuple[Array, ...],
        sizes: tuple[int, ...],
    ) -> Gradients:  # fmt: skip
        means = []
        for output, (leaf_of_row, size) in enumerate(zip(leaves, sizes, strict=True)):
            exact, _, units = self._leaf_integers(before, output, leaf_of_row, size)
            rows = self._total(Shard.weight_of_leaves, leaf_of_row, size, before.multiplicity)
            means.append(exact[:, 0] * units[0] / np.maximum(rows, 1))
        counts = self._sizes if sample.rows is None else sample.rows.sizes
        shape = gradients.g.shape[0], sum(counts)
        return self._made(
            shape, counts, Shard.leaf_control_variate, gradients, sample, before, eta, tuple(leaves), tuple(means)
        )

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        if sample.rows is None:
            return gradients
        counts = sample.rows.sizes
        return self._made((gradients.g.shape[0], sum(counts)), counts, Shard.weighed, gradients, sample)

    def noise(self, gradients: Gradients, rows: Array | None, noise: Noise) -> Gradients:
        (number,) = self._driver.keep(1, Shard.with_noise, gradients, rows, noise)
        return replace(gradients, g=self._driver.array(number, gradients.g.shape, gradients.g.sizes))

    # the tree

    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        if key is not None:
            return random_structure(data, target, output, candidates, limits, key)
        sizes = target.gradients.g.sizes
        scales, weight = self._scales(target.gradients, output)
        tree = next(self._driver.numbers)
        sums = self._driver.ask(Shard.init_root, tree, target, output, candidates, limits, scales)
        totals = sum(g for g, _ in sums), sum(h for _, h in sums)
        root = RootSums(sum(sizes), weight, totals, (1.0 / scales[0], 1.0 / scales[1]))
        workspace = self._workspaces.take()
        of_tree = data.cuts, output, candidates, limits
        grower = ShardedGrower(tree, self._driver, root, self._empty, *of_tree, self._pool, workspace)
        grower.grow()
        (number,), counts = self._driver.ask_and_keep(1, Shard.settle, tree)
        leaf_of_row = self._driver.array(number, (data.n_rows,), sizes)
        nodes = grower.finished(reduce(add, counts))
        self._workspaces.give_back(workspace)
        leaf_sums = grower.sums() if target.gives_leaf_sums else None
        leaf_of_all = leaf_of_row if target.rows is None else None
        return Structure(nodes, output, target.version, leaf_of_all, leaf_sums, weight=weight)

    def grow_together(
        self, data: TrainingSet, target: Target, searched: Gradients, candidates: Candidates, limits: Limits
    ) -> tuple[Structure, ...]:
        scales, number = [self._scales(searched, j)[0] for j in range(searched.g.shape[0])], next(self._driver.numbers)
        rows = ShardedRows(number, self._driver, target, searched, tuple(scales), data.cuts, limits, self._pool)
        tree = VectorTree(rows, data.cuts.n_bins, data.cuts.is_categorical, rows.units, candidates, limits)
        tree.grow()
        nodes, sizes = tree.as_arrays(), searched.g.sizes
        (kept,) = self._driver.keep(1, Shard.settle_together, number)
        leaf_of_row = self._driver.array(kept, (sum(sizes),), sizes)
        leaf_of_all = leaf_of_row if target.rows is None else None

        def structure(output: int) -> Structure:
            sums = None
            if target.gives_leaf_sums:
                exact, _, units = self._leaf_integers(target.gradients, output, leaf_of_row, len(nodes.feature))
                sums = exact[:, 0] * units[0], exact[:, 1] * units[1]
            return Structure(nodes, output, target.version, leaf_of_all, sums)

        return tuple(structure(output) for output in range(target.gradients.g.shape[0]))

    def squared_norms(self, gradients: Gradients) -> Array:
        of_shards = self._driver.ask_each(Shard.squared_norms, self._with_firsts(gradients))
        return np.array([joined(parts) for parts in zip(*of_shards, strict=True)])

    def chosen_outputs(self, gradients: Gradients, outputs: Array, factors: Array) -> Gradients:
        shape, sizes = (len(outputs), gradients.g.shape[1]), gradients.g.sizes
        return self._made(shape, sizes, Shard.chosen_outputs, gradients, outputs, factors)

    def projected_outputs(self, gradients: Gradients, matrix: Array) -> Gradients:
        shape, sizes = (matrix.shape[1], gradients.g.shape[1]), gradients.g.sizes
        return self._made(shape, sizes, Shard.projected_outputs, gradients, matrix)

    def leaf_values(
        self, structure: Structure, gradients: Gradients, data: TrainingSet, limits: Limits, version: int,
        noise: Noise | None = None,
    ) -> tuple[FittedTree, Array]:  # fmt: skip
        nodes, leaf_of_row, sums, weight = structure.nodes, structure.leaf_of_row, structure.sums, structure.weight
        if leaf_of_row is None:
            (number,) = self._driver.keep(1, Shard.route, nodes)
            leaf_of_row = self._array(number, (data.n_rows,))
        if sums is None or structure.version != version:
            exact, rows, units = self._leaf_integers(gradients, structure.output, leaf_of_row, len(nodes.feature))
            if limits.path_smooth > 0.0:
                exact = np.stack([climbed(nodes, sums) for sums in exact.T], axis=1)
                _, weight = self._scales(gradients, structure.output)
            sums = exact[:, 0] * units[0], exact[:, 1] * units[1]
            if structure.blind:
                nodes = counted(nodes, exact[:, 1], rows, units[1])
        return with_values(structure, nodes, sums, weight, limits, noise), leaf_of_row

    def leaf_quantiles(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        assert loss.leaf_quantile is not None
        scale = 1.0 if data.weight is None else weight_scale(data.weight)
        (number,) = self._driver.keep(1, Shard.residuals, leaf_of_row, scores, tree.output, scale)
        residuals: Any = self._array(number, (data.n_rows,))
        n_nodes = len(tree.value)

        def rank(prefixes: Array, shift: int) -> Array:
            return self._total(Shard.rank, residuals, n_nodes, prefixes, shift)

        value = quantiles(rank, n_nodes, loss.leaf_quantile)
        return replace(tree, value=np.where(tree.nodes.is_leaf, value, 0.0))

    def bound_leaves(
        self, tree: FittedTree, leaf_of_row: Array, data: TrainingSet, limits: Limits, *, refined: bool = False
    ) -> FittedTree:
        return bound_leaves(tree, data.cuts, limits, refined=refined)

    # the model

    def add_leaves(self, scores: Array, tree: FittedTree, factor: float, leaf_of_row: Array) -> None:
        if isinstance(scores, Distributed):
            self._driver.tell(Shard.add, scores, tree, factor, leaf_of_row)
        else:
            self._local.add_leaves(scores, tree, factor, leaf_of_row)

    def add_tree(self, scores: Array, tree: FittedTree, factor: float, bins: Bins, cuts: Cuts) -> None:
        if isinstance(scores, Distributed):
            self._driver.tell(Shard.add_routed, scores, tree, factor)
        else:
            self._local.add_tree(scores, tree, factor, bins, cuts)

    # parts of the above

    def _sum_of_losses(self, loss: Loss, scores: Array, *, weighted: bool) -> float:
        return joined(self._driver.ask(Shard.loss_part, self._remote_loss(loss), scores, weighted))

    def _sample(self, numbers: tuple[int, ...], counts: list[int], n_excluded: int = 0) -> Sample:
        rows, inverse = (self._driver.array(number, (sum(counts),), tuple(counts)) for number in numbers)
        return Sample(rows, inverse, n_excluded)

    def _made(
        self, shape: tuple[int, ...], sizes: tuple[int, ...],
        method: Callable[Concatenate[Shard, P], tuple[Kept, None]], *args: P.args, **kwargs: P.kwargs,
    ) -> Gradients:  # fmt: skip
        """Gradients that the shards compute; ``sizes``: their numbers of rows."""
        numbers = self._driver.keep(3, method, *args, **kwargs)
        g, h, m = (self._driver.array(number, shape, sizes) for number in numbers)
        return Gradients(g, h, None if self._multiplicity is None else m)

    def _total(self, method: Callable[Concatenate[Shard, P], Array], *args: P.args, **kwargs: P.kwargs) -> Array:
        """The sum of the shards' answers. They are integers, so the order does not matter."""
        return reduce(add, self._driver.ask(method, *args, **kwargs))

    def _leaf_integers(
        self, gradients: Gradients, output: int, leaf_of_row: Array, n_nodes: int
    ) -> tuple[Array, Array, Scales]:
        """(v, 2) sums of the integers of each leaf, (v,) its rows, and the value of one unit of g and of h."""
        scales, _ = self._scales(gradients, output)
        answers = self._driver.ask(Shard.leaf_integers, gradients, output, leaf_of_row, n_nodes, scales)
        sums, rows = (reduce(add, column) for column in zip(*answers, strict=True))
        return sums, rows, (1.0 / scales[0], 1.0 / scales[1])

    def _scales(self, gradients: Gradients, output: int) -> tuple[Scales, int]:
        """The scales at which gradients become integers, and the sum of the rows' multiplicities."""
        if self._last_extents is None or self._last_extents[0] is not gradients.g:
            self._last_extents = gradients.g, self._driver.ask_each(Shard.size_of, self._with_firsts(gradients))
        return scales_of(self._last_extents[1], output)

    @staticmethod
    def _with_firsts(gradients: Gradients) -> list[tuple[Gradients, int]]:
        """The gradients, and the number of each shard's first row among theirs."""
        return [(gradients, first) for first in np.cumsum([0, *gradients.g.sizes])[:-1].tolist()]


def _no_rows(default: Array) -> SparseBins:
    """Sparse bins without rows: the driver needs only the default bins."""
    start = np.zeros(len(default) + 1, np.int64)
    return SparseBins(default, np.zeros(1, np.int64), NO_INTS, NO_BYTES, start, NO_INTS, NO_BYTES)
