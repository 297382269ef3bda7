"""Predictor of an ensemble: flat arrays, the features it uses, and look-up tables from values to codes.

Order of operations, which is part of the contract: scores start at the bias and every tree in turn adds
``factor * value`` (rounded once), in float64; for an ensemble that was shrunk, that sum starts at 0 and the score is
``bias + scale * sum``. So the scores of a row do not depend on the other rows, on blocks or on threads, and the scores
of an ensemble that was never shrunk are the running scores of the training loop, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.prediction.flat_forest import WIDTH, FlatForest
from gpuboost.backends.prediction.raw_values import DenseRows, RawRows, rows_of
from gpuboost.backends.prediction.walked_trees import walked_trees
from gpuboost.errors import InputError
from gpuboost.kernels.prediction import few_rows
from gpuboost.kernels.prediction import predict as kernels
from gpuboost.records import dataclass
from gpuboost.types import Array, Cuts, Ensemble, FittedTree, Nodes

FEW = 24  # rows up to which ``few_rows`` is faster


@dataclass(frozen=True, slots=True)
class ForestPredictor:
    """A flattened ensemble. It consists of arrays and numbers, so it can be pickled, and shared by threads."""

    flat_forest: FlatForest
    n_features: int  # columns of X
    bias: NDArray[np.float64]  # (k,)
    scale: float
    scales: tuple[float, ...]  # after each round; () if it is always the same
    values: NDArray[np.float64]  # factor * value of every leaf of every tree
    output: NDArray[np.int32]  # (trees,)
    columns: NDArray[np.int32]  # (s,) column of X that each used feature reads
    slot_start: NDArray[np.int64]  # (n_features + 1,) first used feature that reads each column
    absent: NDArray[np.uint8]  # (s,) code of 0
    kinds: NDArray[np.uint8]  # (s,)
    places: NDArray[np.int64]  # (s,) in cuts, or in categories
    cuts: NDArray[np.float64]
    cuts32: NDArray[np.float32]  # the largest float32 that is at most the cut
    categories: NDArray[np.float64]
    category_bins: NDArray[np.uint8]
    walked: few_rows.WalkedTrees  # the same trees, for few rows

    @classmethod
    def of(cls, ensemble: Ensemble) -> ForestPredictor:
        ensemble = with_asked_cuts(ensemble)
        flat_forest = FlatForest.of([tree.nodes for tree in ensemble.trees], ensemble.cuts)
        sizes = [len(tree.value) for tree in ensemble.trees]
        values = np.concatenate([np.empty(0), *[tree.value for tree in ensemble.trees]])
        values *= np.repeat(np.array(ensemble.factors, np.float64), sizes)
        columns = ensemble.cuts.columns[flat_forest.features]
        kinds, places, cuts, categories, category_bins = _tables(flat_forest, ensemble.cuts)
        with np.errstate(over="ignore"):
            cuts32 = cuts.astype(np.float32)
        above = cuts32 > cuts
        cuts32[above] = np.nextafter(cuts32[above], np.float32(-np.inf))
        leaf_values = values[flat_forest.leaf_of >= 0]
        outputs = np.array([tree.output for tree in ensemble.trees], dtype=np.int32)
        forest = cls(
            flat_forest=flat_forest,
            n_features=ensemble.cuts.n_columns,
            bias=np.asarray(ensemble.bias, dtype=np.float64),
            scale=ensemble.scale,
            scales=ensemble.scales,
            values=leaf_values,
            output=outputs,
            columns=columns,
            slot_start=np.searchsorted(columns, np.arange(ensemble.cuts.n_columns + 1)),
            absent=np.empty(len(flat_forest.features), np.uint8),
            kinds=kinds,
            places=places,
            cuts=cuts,
            cuts32=cuts32,
            categories=categories,
            category_bins=category_bins,
            walked=walked_trees(flat_forest, leaf_values, outputs),
        )
        codes = flat_forest.room(1)
        forest.code(rows_of(np.zeros((1, forest.n_features))), 0, 1, codes)
        forest.absent[:] = codes[0, :, 0]
        return forest

    def add_few(self, rows: DenseRows, start: int, n: int, out: Array) -> None:
        """out[:, start : start + n] += values, tree after tree, in one call. out: (k, rows) float64."""
        cuts = self.cuts32 if rows.values.dtype == np.float32 else self.cuts
        few_rows.add_rows(
            rows.values, rows.row_stride, rows.column_stride, start, n, self.columns, self.kinds, self.places,
            self.flat_forest.missing, cuts, self.categories, self.category_bins, self.walked, out,
        )  # fmt: skip

    def code(self, rows: RawRows, start: int, n: int, codes: Array) -> None:
        """codes[block, slot, row] of rows start .. start + n."""
        cuts = self.cuts32 if rows.values.dtype == np.float32 else self.cuts
        tables = self.kinds, self.places, self.flat_forest.missing, cuts, self.categories, self.category_bins
        if isinstance(rows, DenseRows):
            strides = rows.row_stride, rows.column_stride
            kernels.code_dense(rows.values, *strides, start, n, self.columns, *tables, codes)
        else:
            entries = rows.values, rows.indices, rows.row_start
            kernels.code_sparse(*entries, start, n, self.slot_start, self.absent, *tables, codes)

    def rows_of(self, x: Any) -> RawRows:
        """x as the kernels read it. Raises InputError if it has another number of features than the forest."""
        rows = rows_of(x)
        if rows.shape[1] != self.n_features:
            raise InputError(
                f"x: the model was trained on {self.n_features} features; this has {rows.shape[1]}. "
                "Give the columns of the training data, in their order."
            )
        return rows


def with_asked_cuts(ensemble: Ensemble) -> Ensemble:
    """The same model with only the thresholds that its nodes use: binning is faster with fewer thresholds."""
    cuts, every_tree, none = ensemble.cuts, [tree.nodes for tree in ensemble.trees], np.empty(0, np.int32)
    feature = np.concatenate([none, *[nodes.feature for nodes in every_tree]])  # of many trees, one pass over all
    bin = np.concatenate([none, *[nodes.bin for nodes in every_tree]])
    asked = np.zeros((cuts.n_features, 256), np.bool_)
    asked[feature[feature >= 0], bin[feature >= 0]] = True
    new_bin = np.zeros(asked.shape, np.int32)
    new_bin[:, 1:] = np.cumsum(asked[:, :-1], axis=1)
    new_bin[cuts.is_categorical] = 0  # no node compares categories by order
    pairs = enumerate(zip(cuts.thresholds, cuts.categories, strict=True))
    thresholds = tuple(every if codes is not None else every[asked[f, : len(every)]] for f, (every, codes) in pairs)
    bins, begin, trees = new_bin[feature, bin], 0, []
    for tree, nodes in zip(ensemble.trees, every_tree, strict=True):
        fields = nodes.feature, bins[begin : begin + len(nodes.feature)], nodes.missing_left, nodes.left, nodes.right
        same = Nodes(*fields, nodes.gain, nodes.cover, nodes.count, nodes.left_set)
        trees.append(FittedTree(same, tree.value, tree.output, tree.version))
        begin += len(nodes.feature)
    return replace(ensemble, cuts=replace(cuts, thresholds=thresholds), trees=tuple(trees))


def predict(forest: ForestPredictor, x: Any, start: int, stop: int, out: Array) -> None:
    """out[:, start:stop] = scores of rows start .. stop - 1 of x.

    x: (n, d) float32 or float64, or scipy sparse, or a result of ``rows_of``; out: (k, n) float64.
    Raises InputError if x has another number of features than the forest was grown with.
    """
    rows = forest.rows_of(x)
    out[:, start:stop] = forest.bias[:, None] if forest.scale == 1.0 else 0.0
    if stop - start <= FEW and isinstance(rows, DenseRows):
        forest.add_few(rows, start, stop - start, out)
    else:
        _add_blocks(forest, rows, start, stop, out)
    if forest.scale != 1.0:
        out[:, start:stop] = forest.bias[:, None] + forest.scale * out[:, start:stop]


def _add_blocks(forest: ForestPredictor, rows: RawRows, start: int, stop: int, out: Array) -> None:
    """out[:, start:stop] += values, tree after tree, over blocks of rows."""
    trees, codes = range(forest.flat_forest.n_trees), forest.flat_forest.room(stop - start)
    step = codes.shape[0] * codes.shape[2]
    for first in range(start, stop, step):
        n = min(step, stop - first)
        forest.code(rows, first, n, codes)
        forest.flat_forest.add(codes, n, trees, forest.values, forest.output, out, first)


def leaves(forest: ForestPredictor, x: Any, start: int, stop: int, out: Array) -> None:
    """out[start:stop] = leaf of each row in each tree. out: (n, trees) int32."""
    rows = forest.rows_of(x)
    codes = forest.flat_forest.room(stop - start)
    step = codes.shape[0] * codes.shape[2]
    for first in range(start, stop, step):
        n = min(step, stop - first)
        forest.code(rows, first, n, codes)
        forest.flat_forest.find_leaves(codes, n, out, first)


def staged_predict(forest: ForestPredictor, x: Any) -> Iterator[Array]:
    """(k, n) float64 scores after each round, each a new array; the values are turned to codes once."""
    rows, flat_forest, k = forest.rows_of(x), forest.flat_forest, len(forest.bias)
    n = rows.shape[0]
    codes = np.empty((-(-n // WIDTH), len(flat_forest.features), WIDTH), np.uint8)
    forest.code(rows, 0, n, codes)
    rounds = flat_forest.n_trees // k
    scales = forest.scales or (forest.scale,) * rounds
    plain = _never_shrunk(scales)
    for begins, shrunk, stop in ((forest.bias, False, plain), (np.zeros(k), True, rounds if plain < rounds else 0)):
        sums = np.repeat(begins[:, None], n, axis=1)
        for i in range(stop):
            flat_forest.add(codes, n, range(k * i, k * i + k), forest.values, forest.output, sums, 0)
            if not shrunk:
                yield sums.copy()
            elif i >= plain:
                yield forest.bias[:, None] + scales[i] * sums


def _never_shrunk(scales: tuple[float, ...]) -> int:
    """Number of rounds before the first that shrank the model."""
    return next((i for i, scale in enumerate(scales) if scale != 1.0), len(scales))


def _tables(flat_forest: FlatForest, cuts: Cuts) -> tuple[Array, Array, Array, Array, Array]:
    """Look-up tables from values to bins for each used feature, see ``kernels.prediction.predict.code_dense``."""
    kinds, places = np.empty(len(flat_forest.features), np.uint8), np.empty(len(flat_forest.features), np.int64)
    numbers, codes, bins = [np.empty(0)], [np.empty(0)], [np.empty(0, np.uint8)]
    sizes = [0, 0]  # of numbers and of codes
    for slot, feature in enumerate(flat_forest.features):
        categories = cuts.categories[feature]
        if categories is not None:
            order = np.argsort(categories, kind="stable")
            place_bins = np.zeros(kernels.WIDE_SIZE, np.uint8)
            place_bins[: len(order)] = order
            kinds[slot], places[slot] = kernels.CATEGORICAL, sizes[1]
            codes.append(_wide(np.asarray(categories[order], dtype=np.float64)))
            bins.append(place_bins)
            sizes[1] += kernels.WIDE_SIZE
        else:
            thresholds = cuts.thresholds[feature]
            narrow = len(thresholds) <= kernels.NARROW_SIZE
            kinds[slot], places[slot] = kernels.NARROW if narrow else kernels.WIDE, sizes[0]
            numbers.append(_padded(thresholds, kernels.NARROW_SIZE) if narrow else _wide(thresholds))
            sizes[0] += len(numbers[-1])
    return kinds, places, np.concatenate(numbers), np.concatenate(codes), np.concatenate(bins)


def _padded(numbers: Array, size: int) -> Array:
    return np.concatenate([numbers, np.full(size - len(numbers), np.inf)])


def _wide(numbers: Array) -> Array:
    cuts = _padded(numbers, 256)
    return np.concatenate([cuts[15::16], cuts])
