"""The CPU backend: numba kernels run by a pool of threads. The same bits as Reference, for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuboost.backends.cpu import binning as cpu_binning
from gpuboost.backends.cpu import formulas, rankings, sampling
from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.compilation.warm_up import HELPER, load_numba
from gpuboost.backends.cpu.explanations import Explanations
from gpuboost.backends.cpu.growth import CpuGrowth
from gpuboost.backends.cpu.leaves import bound_leaves, compact, wide, with_values
from gpuboost.backends.cpu.numpy_prediction import NumpyPrediction
from gpuboost.backends.cpu.repeated_rounds import RepeatedRounds
from gpuboost.backends.cpu.trees.histograms import PACKED_ROWS
from gpuboost.backends.host import threads as host_threads
from gpuboost.backends.host.ranking_losses import HostLosses
from gpuboost.backends.host.threads import RowShares, ThreadPool
from gpuboost.backends.host.workspace import Workspaces
from gpuboost.backends.numerics import line_search, sketches
from gpuboost.backends.numerics.leaf_values import climbed, whole_weights
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.backends.numerics.random_trees import counted, random_structure
from gpuboost.backends.optional_verbs import Repeated, Shrinkage
from gpuboost.backends.prediction import additive, few_binned_rows, predictor
from gpuboost.backends.prediction.few_binned_rows import walked
from gpuboost.backends.prediction.flat_forest import FlatForest
from gpuboost.backends.prediction.memo import Memo, ServingMemo
from gpuboost.backends.prediction.raw_values import rows_of
from gpuboost.backends.protocol import Capabilities
from gpuboost.backends.reference.ranking import list_losses
from gpuboost.backends.smoothing import Smoothing
from gpuboost.kernels.gradients import pointwise
from gpuboost.keys import Key
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.protocol import DrawnLoss, Loss, is_list_loss, is_on_host, is_smoothed, perturbs_labels
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
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

if TYPE_CHECKING:  # kernels that few fits need are imported at their first use
    from gpuboost.backends.cpu.smoothing import CpuSmoothing
    from gpuboost.backends.cpu.trees.one_tree import OneTreeGrowth

NO_WEIGHT = np.empty(0, np.float64)
FORMULA, ADDITION = 2, 8  # times as many rows before several threads share them, where a row takes little time


class Cpu:
    """A CPU with at most ``threads`` threads; the caller does small pieces of work without waking the others."""

    name = "cpu"
    offers = Capabilities(repeated_rounds=True, counted_rounds=True, scores_of_rounds=True)

    def __init__(self, threads: int = 1) -> None:
        self._pool = ThreadPool(threads)
        shares, self._workspaces = RowShares(self._pool), Workspaces()
        self._by_rows, self._in_parts = shares.by_rows, shares.in_parts
        self._growth = CpuGrowth(self._pool, self._workspaces)
        self._rounds = RepeatedRounds(self._growth)
        self._lists: ServingMemo[rankings.ranking.QueryConstants] = ServingMemo()
        self._smoothed_lists: ServingMemo[rankings.smoothed_ranking.SmoothedQueries] = ServingMemo()
        self._perturbed_lists: ServingMemo[rankings.cross_entropy.PerturbedQueries] = ServingMemo()
        self._of_host = HostLosses(self._pool)
        self._last_constant: tuple[Array | None, float, Array] | None = None
        self._numpy_prediction, self._formulas = NumpyPrediction(), Memo(formulas.gradients)
        self._forests, self._explanations = Memo(predictor.ForestPredictor.of), Explanations(self._pool)
        self._additives = Memo(lambda ensemble, cpu: additive.Additive.of(cpu, ensemble))

    # the data, once

    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        HELPER.start(x.shape[0], self._pool.size, categorical=bool(cuts.is_categorical.any()))
        load_numba()
        if hasattr(x, "tocsr"):
            return cpu_binning.of_sparse(x, cuts, self._pool)
        return cpu_binning.of_dense(x, cuts, self._pool if x.shape[0] >= host_threads.SMALL else ThreadPool(1))

    # the round

    def recorded(self, step: int, sequence: int = 0) -> AbstractContextManager[None]:
        return self._rounds

    def repeat(self, trees: tuple[FittedTree, ...], shrinkage: Shrinkage, rounds: int, left: int) -> Sequence[Repeated]:
        return self._rounds.repeat(trees, shrinkage, rounds, left)

    def collect(self, ensemble: Ensemble) -> Ensemble:
        self._rounds.forget()
        return ensemble

    def to_host(self, result: Array) -> Array:
        return result

    # the target, once a round

    def start(self, data: TrainingSet, bias: Array) -> Array:
        begin = np.asarray(bias, np.float64)
        of_rows = begin if begin.ndim == 2 else np.broadcast_to(begin[:, None], (len(begin), data.n_rows))
        return self._filled(of_rows.shape, np.float64, lambda a, b: of_rows[:, a:b])

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        if is_of_arrays(loss):
            return Gradients(*loss.host_derivatives(scores, data, curvature), data.multiplicity)
        if is_on_host(loss):
            return Gradients(*self._of_host.derivatives(loss, scores, data, curvature), data.multiplicity)
        many = curvature is None and data.n_rows > PACKED_ROWS  # few rows grow in memory that is kept for the next tree
        if is_list_loss(loss):
            lists = self._lists.of(rankings.ranking.QueryConstants.made_of, loss, data)
            made = rankings.ranking.gradients(loss, lists, scores, data, curvature, self._pool)
            return replace(made, disposable=many)
        run, g, constant = self._formulas.of(loss), np.empty(scores.shape, np.float32), curvature is not None
        h = np.empty(scores.shape, np.float32) if curvature is None else self._constant(data, scores.shape, curvature)
        weight = NO_WEIGHT if data.weight is None else data.weight
        single_output = loss.n_outputs == 1
        rows = (data.y, scores[0], weight) if single_output else (data.y, scores, weight)
        out = (g[0], h[0]) if single_output else (g, h)
        times = FORMULA if single_output else 1
        self._by_rows(data.n_rows, lambda a, b: run(*rows, loss.parameter, constant, a, b, *out), times)
        gradients = Gradients(g, h, data.multiplicity, disposable=many)
        of_run = *rows, loss.parameter, constant, 0, data.n_rows, *out
        self._rounds.note("gradients", gradients, scores, run, of_run)
        return gradients

    def drawn_gradients(
        self, loss: DrawnLoss, scores: Array, data: TrainingSet, curvature: float | None, key: Key, first: int = 0
    ) -> Gradients:
        """See the verb. first: number of the first row in the stream, for a part of the rows."""
        if is_smoothed(loss):
            smoothed = self._smoothed_lists.of(rankings.smoothed_ranking.SmoothedQueries.made_of, loss, data)
            return rankings.smoothed_ranking.smoothed_gradients(
                smoothed, scores, data, curvature or 0.0, key, first, self._pool
            )
        assert perturbs_labels(loss)
        perturbed = self._perturbed_lists.of(rankings.cross_entropy.PerturbedQueries.made_of, data)
        return rankings.cross_entropy.gradients(perturbed, scores, data, curvature, key, first, self._pool)

    def sample(self, probability: float, n_rows: int, key: Key) -> Sample:
        with self._workspaces.lent() as room:
            sample = sampling.draws.uniform(probability, n_rows, key, self._pool, room)
        self._rounds.note("sample", sample, probability, n_rows, key)
        return sample

    def draw(
        self, gradients: Gradients, kappa: float, rule: ProbabilityRule, key: Key,
        losses: Array | RowScore | None = None,
    ) -> Sample:  # fmt: skip
        with self._workspaces.lent() as room:
            sample = sampling.draws.draw(gradients, kappa, rule, key, losses, self._pool, room)
        if losses is None:
            self._rounds.note("draw", sample, gradients, kappa, rule, key)
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
        return sampling.draws.score_rows(gradients, kappa, losses, factor, self._pool)

    def keep_gradients(self, gradients: Gradients, rounds: int) -> Gradients:
        return gradients

    def node_control_variate(self, gradients: Gradients, sample: Sample, before: Gradients, eta: float) -> Gradients:
        return sampling.control_variates.node(gradients, sample, before, eta, self._by_rows)

    def horvitz_thompson(self, gradients: Gradients, sample: Sample) -> Gradients:
        return sampling.control_variates.horvitz_thompson(gradients, sample, self._by_rows)

    def leaf_control_variate(
        self, gradients: Gradients, sample: Sample, before: Gradients, eta: float, leaves: tuple[Array, ...],
        sizes: tuple[int, ...],
    ) -> Gradients:  # fmt: skip
        means = np.empty(before.g.shape)
        for output, (leaf_of_row, size) in enumerate(zip(leaves, sizes, strict=True)):
            sums, _ = cpu_sums.leaf_sums(before, output, wide(leaf_of_row), size, self._pool, self._in_parts)
            rows = np.bincount(leaf_of_row, before.multiplicity, size)
            means[output] = (sums / np.maximum(rows, 1.0))[leaf_of_row]
        return sampling.control_variates.leaf(gradients, sample, before, eta, means, self._by_rows)

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        if sample.rows is None:
            return gradients
        weighed = sampling.draws.weigh(gradients, sample, self._pool)
        self._rounds.note("weigh", weighed, gradients, sample)
        return weighed

    def noise(self, gradients: Gradients, rows: Array | None, noise: Noise) -> Gradients:
        noisy = sampling.noise.noisy(gradients, rows, noise, self._by_rows)
        self._rounds.note("noise", noisy, gradients, rows, noise)
        return noisy

    # the tree

    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        if key is not None:
            return random_structure(data, target, output, candidates, limits, key)
        grown = self._growth.grow(data, target, output, candidates, limits)
        structure = compact(grown, target.gradients)
        self._rounds.note("grow", structure, data, target, output, candidates, limits)
        return structure

    def grow_together(
        self, data: TrainingSet, target: Target, searched: Gradients, candidates: Candidates, limits: Limits
    ) -> tuple[Structure, ...]:
        return self._one_tree.grow(data, target, searched, candidates, limits)

    def squared_norms(self, gradients: Gradients) -> Array:
        return sketches.squared_norms(gradients)

    def chosen_outputs(self, gradients: Gradients, outputs: Array, factors: Array) -> Gradients:
        return sketches.chosen_outputs(gradients, outputs, factors)

    def projected_outputs(self, gradients: Gradients, matrix: Array) -> Gradients:
        return sketches.projected_outputs(gradients, matrix)

    def leaf_values(
        self, structure: Structure, gradients: Gradients, data: TrainingSet, limits: Limits, version: int,
        noise: Noise | None = None,
    ) -> tuple[FittedTree, Array]:  # fmt: skip
        nodes, leaf_of_row, sums, weight = structure.nodes, structure.leaf_of_row, structure.sums, structure.weight
        if sums is None or structure.version != version:
            route: cpu_sums.Route | None = None
            if leaf_of_row is None:
                leaf_of_row = np.empty(data.n_rows, np.int32)
                if not walked(nodes, data.bins, data.cuts, leaf_of_row):
                    route = partial(FlatForest.of([nodes], data.cuts).route_and_sum, data.bins, leaf_of_row)
            leaves = wide(leaf_of_row), len(nodes.feature)
            exact, units = cpu_sums.leaf_integers(
                gradients, structure.output, *leaves, self._pool, self._in_parts, route
            )
            if limits.path_smooth > 0.0:
                exact, weight = np.stack([climbed(nodes, sums) for sums in exact.T], axis=1), gradients.weight
            sums = exact[:, 0] * units[0], exact[:, 1] * units[1]
            if structure.blind:
                nodes = counted(nodes, exact[:, 1], cpu_sums.leaf_counts(*leaves, self._pool, self._in_parts), units[1])
        elif leaf_of_row is None:
            leaf_of_row = self._route(nodes, data.bins, data.cuts)
        tree = with_values(structure, nodes, sums, weight, limits, noise)
        self._rounds.note("leaf_values", tree, noise, structure, gradients, limits)
        return tree, leaf_of_row

    def leaf_quantiles(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        from gpuboost.backends.cpu.quantiles import leaf_quantiles

        assert loss.leaf_quantile is not None
        residual = data.target_of(tree.output) - scores[tree.output] + 0.0  # + 0.0: no negative zero
        of_rows = wide(leaf_of_row), residual, whole_weights(data)
        return replace(tree, value=leaf_quantiles(tree.nodes, *of_rows, loss.leaf_quantile, self._pool))

    def line_search(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool
    ) -> FittedTree:
        return line_search.along_tree(self, tree, wide(leaf_of_row), loss, scores, data, per_leaf)

    def length_along(self, loss: Loss, scores: Array, output: int, along: Array, data: TrainingSet) -> float:
        return float(line_search.lengths(self, loss, scores, output, along, data)[0])

    def bound_leaves(
        self, tree: FittedTree, leaf_of_row: Array, data: TrainingSet, limits: Limits, *, refined: bool = False
    ) -> FittedTree:
        bounded = bound_leaves(tree, data.cuts, limits, refined=refined)
        self._rounds.note("bound_leaves", bounded, tree, limits, refined)
        return bounded

    # the model

    def add_leaves(self, scores: Array, tree: FittedTree, factor: float, leaf_of_row: Array) -> None:
        steps, leaf_of_row = factor * tree.value, wide(leaf_of_row)
        row = scores[tree.output]
        self._by_rows(len(row), lambda a, b: pointwise.add_leaves(row, steps, leaf_of_row, a, b), ADDITION)
        self._rounds.note("add_leaves", None, scores, tree, factor)

    def add_tree(self, scores: Array, tree: FittedTree, factor: float, bins: Bins, cuts: Cuts) -> None:
        self.add_leaves(scores, tree, factor, self._route(tree.nodes, bins, cuts))

    scores_after = staticmethod(few_binned_rows.scores_after)
    loss_values = staticmethod(formulas.values_of_rounds)

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        for output in range(len(sums)):
            shrunken = partial(pointwise.shrunken, sums[output], out[output], float(bias[output]), scale)
            self._by_rows(sums.shape[1], shrunken, ADDITION)
        self._rounds.note("scores", None, sums, bias, scale, out)

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
        few = self._numpy_prediction.scores(ensemble, x)
        if few is not None:
            return few
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
        return self._explanations.contributions(ensemble, x)

    def interactions(self, ensemble: Ensemble, x: Any) -> Array:
        return self._explanations.interactions(ensemble, x)

    def smoothing(self) -> Smoothing:
        """The verbs for components."""
        return self._smoothing

    # parts of the above

    @cached_property
    def _smoothing(self) -> CpuSmoothing:
        from gpuboost.backends.cpu.smoothing import CpuSmoothing

        return CpuSmoothing(self._pool, self._in_parts, self._route)

    @cached_property
    def _one_tree(self) -> OneTreeGrowth:
        from gpuboost.backends.cpu.trees.one_tree import OneTreeGrowth

        return OneTreeGrowth(self._pool, self._workspaces, self._route)

    def _constant(self, data: TrainingSet, shape: tuple[int, ...], curvature: float) -> Array:
        """(k, n) float32: the constant that replaces h, times the weights. One read-only array for all rounds."""
        last = self._last_constant
        if last is None or last[0] is not data.weight or last[1] != curvature or last[2].shape != shape:
            w = data.weight
            h = self._filled(shape, np.float32, lambda a, b: curvature if w is None else curvature * w[a:b])
            last = self._last_constant = w, curvature, h
        return last[2]

    def _filled(self, shape: tuple[int, ...], dtype: Any, values: Callable[[int, int], Array | float]) -> Array:
        """(k, n) array: rows [a, b) are values(a, b). Each thread writes the stretch that it works on in each round:
        where processors have memory of their own, a page belongs to the one that writes to it first."""
        out = np.empty(shape, dtype)

        def fill(a: int, b: int) -> None:
            out[:, a:b] = values(a, b)

        self._by_rows(shape[1], fill)
        return out

    def _route(self, nodes: Nodes, bins: Bins, cuts: Cuts) -> Array:
        out = np.empty(bins.shape[0], np.int32)
        if not walked(nodes, bins, cuts, out):
            self._by_rows(len(out), partial(FlatForest.of([nodes], cuts).route, bins, out=out))
        return out
