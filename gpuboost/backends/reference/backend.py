"""The executable definition of every verb, in plain NumPy and Python. Written to be read, not to be fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from gpuboost.backends.numerics import line_search, sketches
from gpuboost.backends.numerics.exact_sums import fixed_order_sum, integers
from gpuboost.backends.numerics.leaf_values import climbed, leaf_noise, newton_values, weighted_quantile, whole_weights
from gpuboost.backends.numerics.monotone import bound_leaves
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.backends.numerics.random_numbers import gaussian_of, uniform_bits
from gpuboost.backends.numerics.random_trees import counted
from gpuboost.backends.prediction import additive
from gpuboost.backends.prediction.routing import dense_rows, route
from gpuboost.backends.prediction.tree_shap import Paths, contributions_by_definition, interactions_by_definition
from gpuboost.backends.protocol import Capabilities
from gpuboost.backends.reference import cross_entropy as reference_cross_entropy
from gpuboost.backends.reference import growth as reference_growth
from gpuboost.backends.reference import host_losses, one_tree
from gpuboost.backends.reference import ranking as reference_lists
from gpuboost.backends.reference import sampling as reference_sampling
from gpuboost.backends.reference import smoothed_ranking as reference_smoothed
from gpuboost.backends.reference.smoothing import ReferenceSmoothing
from gpuboost.backends.smoothing import Smoothing
from gpuboost.keys import Key
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.protocol import DrawnLoss, Loss, is_list_loss, is_on_host, is_smoothed, perturbs_labels
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
    Noise,
    RowScore,
    Sample,
    Structure,
    Target,
    TrainingSet,
)

GrowTree: TypeAlias = Callable[[TrainingSet, Target, int, Candidates, Limits, Key | None], Structure]
"""See ``Backend.grow``"""
PerturbedGradients: TypeAlias = Callable[[Array, TrainingSet, float | None, Key], Gradients]
"""See ``cross_entropy.gradients``"""


class Reference:
    """The backend that defines the others."""

    name = "reference"
    offers = Capabilities()

    def __init__(
        self,
        grow: GrowTree = reference_growth.grow,
        of_lists: reference_lists.Lambdas = reference_lists.lambdas,
        perturbed: PerturbedGradients = reference_cross_entropy.gradients,
    ) -> None:
        """grow, of_lists, perturbed: other ways to the same trees and gradients."""
        self._grow, self._of_lists, self._perturbed = grow, of_lists, perturbed

    # the data, once

    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        codes = [_codes(x, f, cuts) for f in range(cuts.n_features)]
        columns = np.stack(codes).astype(np.uint8) if codes else np.empty((0, x.shape[0]), np.uint8)
        return DenseBins(np.ascontiguousarray(columns.T), columns)

    # the round

    def recorded(self, step: int, sequence: int = 0) -> AbstractContextManager[None]:
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
        if is_on_host(loss):
            return Gradients(*host_losses.derivatives(loss, scores, data, curvature), data.multiplicity)
        if is_list_loss(loss):
            return reference_lists.gradients(loss, scores, data, curvature, self._of_lists)
        g, h = np.empty(scores.shape), np.empty(scores.shape)
        for i, y in enumerate(data.y.tolist()):  # a number, or a list of them
            if loss.n_outputs == 1:
                g[0, i], h[0, i] = loss.derivatives(y, float(scores[0, i]), loss.parameter)
            else:
                loss.row_derivatives(y, scores[:, i], g[:, i], h[:, i], loss.parameter)
        if curvature is not None:
            h[:] = curvature
        if data.weight is not None:
            g, h = g * data.weight, h * data.weight
        return Gradients(g.astype(np.float32), h.astype(np.float32), data.multiplicity)

    def drawn_gradients(
        self, loss: DrawnLoss, scores: Array, data: TrainingSet, curvature: float | None, key: Key
    ) -> Gradients:
        if is_smoothed(loss):
            return reference_smoothed.smoothed_gradients(loss, scores, data, curvature or 0.0, key)
        assert perturbs_labels(loss)
        return self._perturbed(scores, data, curvature, key)

    def sample(self, probability: float, n_rows: int, key: Key) -> Sample:
        drawn = uniform_bits(n_rows, key) < np.uint64(int(probability * 2.0**32))
        rows = np.flatnonzero(drawn).astype(np.int32)
        return Sample(rows, np.full(len(rows), 1.0 / probability, dtype=np.float32))

    def draw(
        self, gradients: Gradients, kappa: float, rule: ProbabilityRule, key: Key,
        losses: Array | RowScore | None = None,
    ) -> Sample:  # fmt: skip
        return reference_sampling.draw(gradients, kappa, rule, uniform_bits(gradients.g.shape[1], key), losses)

    def losses(self, loss: Loss, scores: Array, data: TrainingSet) -> Array:
        if is_list_loss(loss):
            each = reference_lists.list_losses(loss, scores, data)
        else:
            each = np.array(_values(loss, scores, data.y), np.float64)
        return each if data.weight is None else each * data.weight

    def score_rows(
        self, gradients: Gradients, kappa: float, losses: Array | None = None, factor: Array | None = None
    ) -> Array:
        return reference_sampling.score_rows(gradients, kappa, losses, factor)

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
            g, _, units = integers(before, output)
            sums, rows = np.zeros(size, np.int64), np.zeros(size, np.int64)
            np.add.at(sums, leaf_of_row, g)
            np.add.at(rows, leaf_of_row, 1 if before.multiplicity is None else before.multiplicity)
            means[output] = (sums * units[0] / np.maximum(rows, 1))[leaf_of_row]
        return reference_sampling.leaf_control_variate(gradients, sample, before, eta, means)

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        if sample.rows is None:
            return gradients
        rows, by = sample.rows, sample.inverse_probability
        m = None if gradients.multiplicity is None else gradients.multiplicity[rows]
        return Gradients(gradients.g[:, rows] * by, gradients.h[:, rows] * by, m)

    def noise(self, gradients: Gradients, rows: Array | None, noise: Noise) -> Gradients:
        k, m = gradients.g.shape
        rows = np.arange(m) if rows is None else rows
        z = np.stack([gaussian(int(rows.max(initial=-1)) + 1, noise.key / output)[rows] for output in range(k)])
        times = 1.0 if gradients.multiplicity is None else gradients.multiplicity.astype(np.float64)
        scale = noise.scale
        scaled = gradients.h.astype(np.float64) if scale is None else reference_sampling.squared_scale(gradients, scale)
        spread = noise.deviation * np.sqrt(scaled / times)
        return replace(gradients, g=(gradients.g.astype(np.float64) + spread * z).astype(np.float32))

    # the tree

    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        return self._grow(data, target, output, candidates, limits, key)

    def grow_together(
        self, data: TrainingSet, target: Target, searched: Gradients, candidates: Candidates, limits: Limits
    ) -> tuple[Structure, ...]:
        return one_tree.grow_together(data, target, searched, candidates, limits)

    def squared_norms(self, gradients: Gradients) -> Array:
        return sketches.squared_norms(gradients)

    def chosen_outputs(self, gradients: Gradients, outputs: Array, factors: Array) -> Gradients:
        return sketches.chosen_outputs(gradients, outputs, factors)

    def projected_outputs(self, gradients: Gradients, matrix: Array) -> Gradients:
        return sketches.projected_outputs(gradients, matrix)

    def leaf_values(
        self,
        structure: Structure,
        gradients: Gradients,
        data: TrainingSet,
        limits: Limits,
        version: int,
        noise: Noise | None = None,
    ) -> tuple[FittedTree, Array]:
        nodes, leaf_of_row, sums, weight = structure.nodes, structure.leaf_of_row, structure.sums, structure.weight
        if leaf_of_row is None:
            leaf_of_row = route(nodes, dense_rows(data.bins), data.cuts)
        if sums is None or structure.version != version:
            g, h, units = integers(gradients, structure.output)
            exact = np.zeros((2, len(nodes.feature)), np.int64)
            np.add.at(exact[0], leaf_of_row, g)
            np.add.at(exact[1], leaf_of_row, h)
            of_nodes = [climbed(nodes, sums) for sums in exact] if limits.path_smooth > 0.0 else exact
            sums, weight = (of_nodes[0] * units[0], of_nodes[1] * units[1]), gradients.weight
            if structure.blind:
                nodes = counted(nodes, exact[1], np.bincount(leaf_of_row, minlength=len(exact[1])), units[1])
        value = newton_values(nodes, sums, limits, weight)
        if noise is not None:
            value += leaf_noise(
                nodes, sums[1], limits, noise.deviation, gaussian(len(value), noise.key / structure.output)
            )
        return FittedTree(nodes, value, structure.output, structure.version), leaf_of_row

    def leaf_quantiles(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        assert loss.leaf_quantile is not None
        residual = data.target_of(tree.output) - scores[tree.output] + 0.0  # + 0.0: no negative zero
        weight, value = whole_weights(data), np.zeros(len(tree.value))
        for leaf in np.flatnonzero(tree.nodes.is_leaf):
            rows = np.flatnonzero(leaf_of_row == leaf)
            value[leaf] = weighted_quantile(residual[rows], weight[rows], loss.leaf_quantile)
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
        scores[tree.output] += steps[leaf_of_row]

    def add_tree(self, scores: Array, tree: FittedTree, factor: float, bins: Bins, cuts: Cuts) -> None:
        self.add_leaves(scores, tree, factor, route(tree.nodes, dense_rows(bins), cuts))

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        out[:] = bias[:, None] + scale * sums

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        if is_of_arrays(loss):
            return loss.mean(y, scores, weight)
        each = _values(loss, scores, y)
        total = fixed_order_sum(np.array(each) if weight is None else np.array(each) * weight)
        return total / (len(y) if weight is None else fixed_order_sum(weight))

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        if ensemble.components:
            return additive.Additive.of(self, ensemble).predict(self, ensemble, x)
        n, bins = x.shape[0], dense_rows(self.quantise(x, ensemble.cuts))
        sums = np.zeros((ensemble.n_outputs, n))
        if ensemble.scale == 1.0:
            sums += ensemble.bias[:, None]
        for tree, factor in zip(ensemble.trees, ensemble.factors, strict=True):
            self.add_leaves(sums, tree, factor, route(tree.nodes, bins, ensemble.cuts))
        return sums if ensemble.scale == 1.0 else ensemble.bias[:, None] + ensemble.scale * sums

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        if ensemble.components:
            yield from additive.staged_predict(self, ensemble, x, np.copy)
            return
        for rounds in range(1, ensemble.n_rounds + 1):
            yield self.predict(ensemble.first(rounds), x)

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        bins = dense_rows(self.quantise(x, ensemble.cuts))
        leaves = [route(tree.nodes, bins, ensemble.cuts) for tree in ensemble.trees]
        return np.stack(leaves, axis=1) if leaves else np.empty((len(bins), 0), np.int32)

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        bins = dense_rows(self.quantise(x, ensemble.cuts))
        return contributions_by_definition(Paths.of(ensemble), bins, ensemble.cuts.n_columns)

    def interactions(self, ensemble: Ensemble, x: Any) -> Array:
        bins = dense_rows(self.quantise(x, ensemble.cuts))
        return interactions_by_definition(Paths.of(ensemble), bins, ensemble.cuts.n_columns)

    def smoothing(self) -> Smoothing:
        """The verbs for components."""
        return ReferenceSmoothing(integers, dense_rows, route)


def gaussian(n: int, key: Key) -> Array:
    """(n,) float64: Gaussian numbers 0 .. n - 1 of the stream."""
    return gaussian_of(uniform_bits(n, key))


def _values(loss: Loss, scores: Array, y: Array) -> list[float]:
    """The loss of each row."""
    if loss.n_outputs == 1:
        return [loss.value(float(t), float(f), loss.parameter) for t, f in zip(y, scores[0], strict=True)]
    return [loss.row_value(t, scores[:, i], loss.parameter) for i, t in enumerate(y.tolist())]


def _codes(x: Any, f: int, cuts: Cuts) -> Array:
    c = cuts.columns[f]
    column = x[:, [c]].toarray()[:, 0] if hasattr(x, "toarray") else x[:, c]
    column = np.asarray(column, np.float64)
    categories, b = cuts.categories[f], cuts.n_bins[f]
    if categories is None:
        codes = np.searchsorted(cuts.thresholds[f], column, side="left")
    else:
        place = {float(code): c for c, code in enumerate(categories)}
        codes = np.array([place.get(v, b) for v in column.tolist()], np.int64)
    return np.where(np.isnan(column), b, codes)
