"""An ensemble made ready for prediction: flat arrays, the features it uses, and how their values become codes.

Order of operations, which is part of the contract: scores start at the bias and every tree in turn adds
``factor * value`` (rounded once), in float64; of an ensemble that was shrunk, that sum starts at 0 and the score is
``bias + scale * sum``. So the scores of a row do not depend on the other rows, on blocks or on threads, and those of
an ensemble that was never shrunk are the running scores of the training loop, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.rows import DenseRows, Rows, rows_of
from gpuboost.errors import InputError
from gpuboost.kernels import predict as kernels
from gpuboost.kernels.flatten import STEP_COLUMNS, flatten
from gpuboost.types import Array, Bins, Cuts, DenseBins, Ensemble, Nodes

WIDTH = 512  # rows of a block
_CONSTANTS = np.repeat(np.arange(256, dtype=np.uint8), 64)
_CODES = 1 << 19  # bytes of codes in flight: they should stay in the second-level cache


@dataclass(frozen=True, slots=True)
class Programme:
    """Trees without values, flattened (see ``gpuboost.kernels.flatten``); s is the number of features they use."""

    features: NDArray[np.int32]  # (s,) increasing
    missing: NDArray[np.uint8]  # (s,) code of a missing value
    starts: NDArray[np.int64]  # (4, trees + 1) first operation, set, leaf and node of each tree
    ops: NDArray[np.int32]  # (., 14) three questions of (row, shift, last), four answers, a slot
    sets: NDArray[np.uint64]  # (., 4) 256 bits: which codes go left
    set_slot: NDArray[np.int32]  # (., 2) slot of the codes, and the highest of them
    nodes: NDArray[np.int32]  # (v, 4) to walk: slot, rule, left, right
    leaf_of: NDArray[np.int32]  # (v,) number of a leaf within its tree, -1 at inner nodes
    leaf_node: NDArray[np.int32]  # node id of each leaf
    slots: int
    most_sets: int

    @classmethod
    def of(cls, trees: Sequence[Nodes], cuts: Cuts) -> Programme:
        def all_of(name: str) -> Array:
            return np.concatenate([getattr(_NO_NODES, name)] + [getattr(nodes, name) for nodes in trees])

        feature, missing_left = all_of("feature"), all_of("missing_left")
        node_start = np.cumsum([0] + [len(nodes.feature) for nodes in trees])
        local = np.arange(len(feature)) - np.repeat(node_start[:-1], np.diff(node_start))
        features = np.unique(feature[feature >= 0]).astype(np.int32)
        b, categorical = _bins_of(features, cuts)
        slot = np.where(feature < 0, 0, np.searchsorted(features, feature)).astype(np.int32)

        is_leaf, is_set = feature < 0, (feature >= 0) & np.append(categorical, False)[slot]
        leaf_start, leaf_of = _numbered(is_leaf, node_start)
        set_start, set_of = _numbered(is_set, node_start)
        missing = np.append(b, 0)[slot]
        shift = np.where(missing_left & ~is_set, 256 - missing, 0)
        last = np.where(is_set | is_leaf, 0, all_of("bin") + shift)
        question = np.stack([np.where(is_set, -1 - set_of, slot), shift, last], axis=1).astype(np.int32)
        rule = np.where(is_set, -np.cumsum(is_set), np.where(is_leaf, kernels.LEAD_LEFT, shift + 256 * last))
        child = np.stack([all_of("left"), all_of("right")], axis=1)
        ways = np.where(is_leaf[:, None], local[:, None], child)

        step_start = np.zeros(len(node_start), np.int64)
        steps = np.empty((int((~is_leaf).sum()), STEP_COLUMNS), np.int32)
        largest = int(np.diff(node_start).max(initial=0))
        slots = int(flatten(node_start, largest, child, leaf_of, step_start, steps))
        steps = steps[: step_start[-1]]
        return cls(
            features=features,
            missing=b.astype(np.uint8),
            starts=np.stack([step_start, set_start, leaf_start, node_start]),
            ops=np.concatenate([question[steps[:, :3]].reshape(len(steps), 9), steps[:, 3:]], axis=1),
            sets=_words(all_of("left_set")[is_set], missing[is_set], missing_left[is_set]),
            set_slot=np.stack([slot[is_set], missing[is_set]], axis=1),
            nodes=np.concatenate([slot[:, None], rule[:, None], ways], axis=1).astype(np.int32),
            leaf_of=leaf_of,
            leaf_node=local[is_leaf].astype(np.int32),
            slots=slots,
            most_sets=int(np.diff(set_start).max(initial=0)),
        )

    @property
    def n_trees(self) -> int:
        return len(self.starts[0]) - 1

    def room(self, n: int) -> Array:
        """(blocks, s, width) uint8 for the codes of at most n rows, fewer if they would leave the cache."""
        s = len(self.features)
        width = min(WIDTH, max(1, -(-n // 64)) * 64)
        blocks = max(1, min(-(-n // width), _CODES // (width * max(s, 1))))
        return np.empty((blocks, s, width), np.uint8)

    def _arguments(self, codes: Array) -> tuple[Array, ...]:
        """The trees, and room to work in."""
        width = codes.shape[2]
        found = np.empty(len(_CONSTANTS) + self.slots * width, np.uint8)
        found[: len(_CONSTANTS)] = _CONSTANTS
        room = found, np.empty((self.most_sets, width), np.uint8), np.empty(width, np.int32), np.empty(8, np.uint64)
        return self.starts, self.ops, self.sets, self.set_slot, self.nodes, self.leaf_of, *room

    def find_leaves(self, codes: Array, n: int, out: Array, at: int) -> None:
        """out[at : at + n] (rows, trees) = node ids for n coded rows."""
        kernels.find_leaves(codes, n, 0, self.n_trees, *self._arguments(codes), self.leaf_node, out, at)

    def add(self, codes: Array, n: int, trees: range, values: Array, output: Array, scores: Array, at: int) -> None:
        """scores[output, at : at + n] += values, tree after tree, for n coded rows."""
        kernels.add_trees(codes, n, trees.start, trees.stop, *self._arguments(codes), values, output, scores, at)

    def route(self, bins: Bins, start: int, stop: int, out: Array) -> None:
        """out[start:stop] = node in which each row of the one tree comes to rest. out: (n,) int32."""
        codes = self.room(stop - start)
        step = codes.shape[0] * codes.shape[2]
        for first in range(start, stop, step):
            n = min(step, stop - first)
            if isinstance(bins, DenseBins):
                kernels.take_columns(bins.columns, first, n, self.features, codes)
            else:
                entries = bins.default, bins.column_start, bins.row, bins.column_bin
                kernels.take_sparse_columns(*entries, first, n, self.features, codes)
            self.find_leaves(codes, n, out.reshape(-1, 1), first)


@dataclass(frozen=True, slots=True)
class Forest:
    """An ensemble, flattened. Only arrays and numbers: it can be pickled, and shared by threads."""

    programme: Programme
    n_features: int  # columns of X
    bias: NDArray[np.float64]  # (k,)
    scale: float
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

    @classmethod
    def of(cls, ensemble: Ensemble) -> Forest:
        ensemble = with_asked_cuts(ensemble)
        programme = Programme.of([tree.nodes for tree in ensemble.trees], ensemble.cuts)
        pairs = zip(ensemble.trees, ensemble.factors, strict=True)
        values = [factor * tree.value[tree.nodes.is_leaf] for tree, factor in pairs]
        columns = ensemble.cuts.columns[programme.features]
        kinds, places, cuts, categories, category_bins = _tables(programme, ensemble.cuts)
        with np.errstate(over="ignore"):
            cuts32 = cuts.astype(np.float32)
        above = cuts32 > cuts
        cuts32[above] = np.nextafter(cuts32[above], np.float32(-np.inf))
        forest = cls(
            programme=programme,
            n_features=ensemble.cuts.n_columns,
            bias=np.asarray(ensemble.bias, dtype=np.float64),
            scale=ensemble.scale,
            values=np.concatenate([np.empty(0), *values]),
            output=np.array([tree.output for tree in ensemble.trees], dtype=np.int32),
            columns=columns,
            slot_start=np.searchsorted(columns, np.arange(ensemble.cuts.n_columns + 1)),
            absent=np.empty(len(programme.features), np.uint8),
            kinds=kinds,
            places=places,
            cuts=cuts,
            cuts32=cuts32,
            categories=categories,
            category_bins=category_bins,
        )
        codes = programme.room(1)
        forest.code(rows_of(np.zeros((1, forest.n_features))), 0, 1, codes)
        forest.absent[:] = codes[0, :, 0]
        return forest

    def code(self, rows: Rows, start: int, n: int, codes: Array) -> None:
        """codes[block, slot, row] of rows start .. start + n."""
        cuts = self.cuts32 if rows.values.dtype == np.float32 else self.cuts
        tables = self.kinds, self.places, self.programme.missing, cuts, self.categories, self.category_bins
        if isinstance(rows, DenseRows):
            strides = rows.row_stride, rows.column_stride
            kernels.code_dense(rows.values, *strides, start, n, self.columns, *tables, codes)
        else:
            entries = rows.values, rows.indices, rows.row_start
            kernels.code_sparse(*entries, start, n, self.slot_start, self.absent, *tables, codes)

    def rows_of(self, x: Any) -> Rows:
        """x as the kernels read it. Raises InputError if it has another number of features than the forest."""
        rows = rows_of(x)
        if rows.shape[1] != self.n_features:
            raise InputError(
                f"x: the model was trained on {self.n_features} features; this has {rows.shape[1]}. "
                "Give the columns of the training data, in their order."
            )
        return rows


def with_asked_cuts(ensemble: Ensemble) -> Ensemble:
    """The same model on only those thresholds that some node asks for: the fewer, the faster a value finds its bin."""
    cuts = ensemble.cuts
    asked = np.zeros((cuts.n_features, 256), np.bool_)
    for tree in ensemble.trees:
        inner = ~tree.nodes.is_leaf
        asked[tree.nodes.feature[inner], tree.nodes.bin[inner]] = True
    place = np.zeros(asked.shape, np.int32)
    place[:, 1:] = np.cumsum(asked[:, :-1], axis=1)
    place[cuts.is_categorical] = 0  # no node asks there by order
    pairs = enumerate(zip(cuts.thresholds, cuts.categories, strict=True))
    thresholds = tuple(every if codes is not None else every[asked[f, : len(every)]] for f, (every, codes) in pairs)
    trees = [
        replace(tree, nodes=replace(tree.nodes, bin=place[tree.nodes.feature, tree.nodes.bin]))
        for tree in ensemble.trees
    ]
    return replace(ensemble, cuts=replace(cuts, thresholds=thresholds), trees=tuple(trees))


def predict(forest: Forest, x: Any, start: int, stop: int, out: Array) -> None:
    """out[:, start:stop] = scores of rows start .. stop - 1 of x.

    x: (n, d) float32 or float64, or scipy sparse, or what ``rows_of`` made of it; out: (k, n) float64.
    Raises InputError if x has another number of features than the forest was grown with.
    """
    rows = forest.rows_of(x)
    trees = range(forest.programme.n_trees)
    out[:, start:stop] = forest.bias[:, None] if forest.scale == 1.0 else 0.0
    codes = forest.programme.room(stop - start)
    step = codes.shape[0] * codes.shape[2]
    for first in range(start, stop, step):
        n = min(step, stop - first)
        forest.code(rows, first, n, codes)
        forest.programme.add(codes, n, trees, forest.values, forest.output, out, first)
    if forest.scale != 1.0:
        out[:, start:stop] = forest.bias[:, None] + forest.scale * out[:, start:stop]


def leaves(forest: Forest, x: Any, start: int, stop: int, out: Array) -> None:
    """out[start:stop] = node in which each row comes to rest, tree by tree. out: (n, trees) int32."""
    rows = forest.rows_of(x)
    codes = forest.programme.room(stop - start)
    step = codes.shape[0] * codes.shape[2]
    for first in range(start, stop, step):
        n = min(step, stop - first)
        forest.code(rows, first, n, codes)
        forest.programme.find_leaves(codes, n, out, first)


def staged_predict(forest: Forest, x: Any) -> Iterator[Array]:
    """(k, n) float64 scores after each round, each a new array; the values are turned to codes once."""
    rows, programme, k = forest.rows_of(x), forest.programme, len(forest.bias)
    n = rows.shape[0]
    codes = np.empty((-(-n // WIDTH), len(programme.features), WIDTH), np.uint8)
    forest.code(rows, 0, n, codes)
    sums = np.zeros((k, n))
    if forest.scale == 1.0:
        sums += forest.bias[:, None]
    for first in range(0, programme.n_trees, k):
        programme.add(codes, n, range(first, first + k), forest.values, forest.output, sums, 0)
        yield sums.copy() if forest.scale == 1.0 else forest.bias[:, None] + forest.scale * sums


def _bins_of(features: Array, cuts: Cuts) -> tuple[Array, Array]:
    """How many value bins each of the features has, and whether it is categorical."""
    listed = [cuts.categories[f] for f in features]
    counts = [len(cuts.thresholds[f]) + 1 if c is None else len(c) for f, c in zip(features, listed, strict=True)]
    return np.array(counts, dtype=np.int32), np.array([c is not None for c in listed], dtype=np.bool_)


def _numbered(chosen: Array, node_start: Array) -> tuple[Array, Array]:
    """Where the chosen nodes of each tree start among all chosen ones, and each one's number within its tree or -1."""
    before = np.concatenate([[0], np.cumsum(chosen)])
    start = before[node_start]
    number = before[:-1] - np.repeat(start[:-1], np.diff(node_start))
    return start, np.where(chosen, number, -1).astype(np.int32)


def _words(left_set: Array, missing: Array, missing_left: Array) -> Array:
    """(q, 4) uint64: the codes that go left, that of missing values among them."""
    halves = left_set.astype(np.uint64).reshape(-1, 4, 2)
    words = halves[:, :, 0] | (halves[:, :, 1] << np.uint64(32))
    at = np.arange(len(words)), missing >> 6
    bit = np.uint64(1) << (missing & 63).astype(np.uint64)
    words[at] = np.where(missing_left, words[at] | bit, words[at] & ~bit)
    return words


def _tables(programme: Programme, cuts: Cuts) -> tuple[Array, Array, Array, Array, Array]:
    """How the values of each used feature find their bin, see ``kernels.predict.code_dense``."""
    kinds, places = np.empty(len(programme.features), np.uint8), np.empty(len(programme.features), np.int64)
    numbers, codes, bins = [np.empty(0)], [np.empty(0)], [np.empty(0, np.uint8)]
    sizes = [0, 0]  # of numbers and of codes
    for slot, feature in enumerate(programme.features):
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


_NO_NODES = Nodes(
    feature=np.empty(0, np.int32),
    bin=np.empty(0, np.int32),
    missing_left=np.empty(0, np.bool_),
    left=np.empty(0, np.int32),
    right=np.empty(0, np.int32),
    gain=np.empty(0, np.float64),
    cover=np.empty(0, np.float64),
    count=np.empty(0, np.int64),
    left_set=np.empty((0, 8), np.uint32),
)
