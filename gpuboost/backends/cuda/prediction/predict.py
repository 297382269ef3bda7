"""Prediction on a device: raw values to bins, bins to leaves, leaves to scores (``backends.prediction.predictor``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import is_
from typing import Any

import numpy as np

from gpuboost.backends.cuda.bins import Binner, DeviceBins
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.errors import InputError
from gpuboost.types import Array, Cuts, Ensemble, Nodes

THREADS = 256
ROWS_PER_SM = 32  # from which a thread for each row keeps the device busy; fewer rows have a block each
MISSING_LEFT, CATEGORICAL = 1 << 16, 1 << 17  # as in walk.cuh
STAGED_THREADS, BLOCK_ROWS, STAGE_NODES = 512, 1024, 4096  # as in predict.cu
BY_SET = np.uint32(1 << 31)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceForest:
    """An ensemble in the layout of the prediction kernels: all nodes of all trees, one tree after the other."""

    ensemble: Ensemble
    steps: Array  # (v, 4) int32 feature, rule, left, right, as Step of walk.cuh
    sets: Array  # (v, 8) uint32, with the bit of what is missing where that goes left
    compact: Array | None  # (v, 2) uint32, as CompactStep of predict.cu; None if a tree is too large for that
    depth: Array  # (trees,) int32
    values: Array  # (v,) float64 factor * value
    begin: Array  # (trees,) int64 first node of each tree
    output: Array  # (trees,) int32
    stride: int  # number of outputs if their trees take turns, else 1
    bias: Array  # (k,) float64
    zero: Array

    @classmethod
    def of(cls, ensemble: Ensemble, runtime: Runtime) -> DeviceForest:
        """Upload an ensemble, whose trees must be on the host."""
        outputs = np.array([tree.output for tree in ensemble.trees] or [0], np.int32)
        take_turns = np.array_equal(outputs, np.arange(len(outputs)) % ensemble.n_outputs)
        pairs = list(zip(ensemble.trees, ensemble.factors, strict=True))
        steps = [_steps(tree.nodes, ensemble.cuts) for tree in ensemble.trees]
        counts = [len(one) for one in steps]
        compact = [_compact(one) for one in steps]
        small = all(one is not None and len(one) <= STAGE_NODES for one in compact)
        depth = np.array([_depth(one) for one in steps] or [0], np.int32)

        def joined(parts: list[Any], empty: Any) -> Array:
            return runtime.upload(np.concatenate(parts) if parts else empty)

        return cls(
            ensemble,
            joined(steps, np.zeros((1, 4), np.int32)),
            joined([_sets(tree.nodes, ensemble.cuts) for tree in ensemble.trees], np.zeros((1, 8), np.uint32)),
            joined(compact, np.zeros((1, 2), np.uint32)) if small else None,
            runtime.upload(depth),
            joined([factor * tree.value for tree, factor in pairs], np.zeros(1)),
            runtime.upload(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)),
            runtime.upload(outputs),
            ensemble.n_outputs if take_turns else 1,
            runtime.upload(np.asarray(ensemble.bias, np.float64)),
            runtime.zeros(ensemble.n_outputs, np.float64),
        )

    def begins_with(self, asked: Ensemble) -> bool:
        """True if the first trees here are those of ``asked``, as of the first rounds of a model."""
        own, n = self.ensemble, len(asked.trees)
        if own is asked:
            return True
        same = own.cuts is asked.cuts and own.bias is asked.bias and own.factors[:n] == asked.factors
        return same and all(map(is_, own.trees, asked.trees))


class CudaPredictor:
    """The verbs of prediction. Results are on the device."""

    def __init__(self, runtime: Runtime, binner: Binner) -> None:
        self._runtime, self._binner = runtime, binner
        self._last: DeviceForest | None = None
        self._kernel = Kernels(runtime, "common/common.cuh", "prediction/walk.cuh", "prediction/predict.cu")

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        """(k, n) float64 scores."""
        forest, bins = self._prepared(ensemble, x)
        sums = self.start(forest.bias if ensemble.scale == 1.0 else forest.zero, bins.n)
        self._add(forest, bins, 0, len(ensemble.trees), sums)
        return sums if ensemble.scale == 1.0 else self.shrunk(sums, forest.bias, ensemble.scale)

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        """(k, n) float64 scores after each round, each a new array."""
        forest, bins = self._prepared(ensemble, x)
        k, sums, begun = ensemble.n_outputs, None, None
        for rounds in range(1, ensemble.n_rounds + 1):
            scale = ensemble.first(rounds).scale
            if sums is None or (scale == 1.0) != begun:  # sums begin at the bias, or where there is a scale at 0
                begun = scale == 1.0
                sums = self.start(forest.bias if begun else forest.zero, bins.n)
                self._add(forest, bins, 0, (rounds - 1) * k, sums)
            self._add(forest, bins, (rounds - 1) * k, rounds * k, sums)
            if begun:
                copy = self._runtime.empty(sums.shape, np.float64)
                self._runtime.copy(copy, sums)
                yield copy
            else:
                yield self.shrunk(sums, forest.bias, scale)

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        """(n, trees) int32."""
        forest, bins = self._prepared(ensemble, x)
        trees = len(ensemble.trees)
        out = self._runtime.empty((bins.n, trees), np.int32)
        self._kernel("leaves")(
            self._blocks(bins.n if trees else 0), (THREADS,),
            steps=forest.steps, sets=forest.sets, begin=forest.begin, trees=trees, rows=bins.rows, n=bins.n,
            shift=bins.shift, out=out,
        )  # fmt: skip
        return out

    def start(self, bias: Array, n: int) -> Array:
        """(k, n) float64 scores, all equal to the bias."""
        k = bias.shape[0]
        scores = self._runtime.empty((k, n), np.float64)
        self._kernel("start")((*self._blocks(n), k), (THREADS,), bias=bias, n=n, scores=scores)
        return scores

    def shrunk(self, sums: Array, bias: Array, scale: float) -> Array:
        """(k, n) float64 bias + scale * sums, a new array."""
        k, n = sums.shape
        out = self._runtime.empty((k, n), np.float64)
        on_device = self._runtime.upload(np.array([scale]))
        self._kernel("shrunk")((*self._blocks(n), k), (THREADS,), sums=sums, bias=bias, scale=on_device, n=n, out=out)
        return out

    def _add(self, forest: DeviceForest, bins: DeviceBins, first: int, last: int, sums: Array) -> None:
        if first == last:
            return
        few = bins.n < ROWS_PER_SM * self._runtime.sm_count
        columns = bins.tiles * bins.width
        shared = 8 * STAGE_NODES + columns * BLOCK_ROWS
        if not few and forest.compact is not None and shared <= self._runtime.block_memory:
            self._kernel("predict_staged", shared_limit=self._runtime.block_memory)(  # one limit, for any model
                (min(-(-bins.n // BLOCK_ROWS), 3 * self._runtime.sm_count), sums.shape[0]), (STAGED_THREADS,),
                steps=forest.compact, sets=forest.sets, values=forest.values, begin=forest.begin, depth=forest.depth,
                output=forest.output, first=first, last=last, stride=forest.stride, rows=bins.rows, n=bins.n,
                shift=bins.shift, columns=columns, sums=sums, shared_mem=shared,
            )  # fmt: skip
            return
        blocks = (bins.n,) if few else self._blocks(bins.n)
        self._kernel("predict_few" if few else "predict")(
            (*blocks, sums.shape[0]), (THREADS,),
            steps=forest.steps, sets=forest.sets, values=forest.values, begin=forest.begin, output=forest.output,
            first=first, last=last, stride=forest.stride, rows=bins.rows, n=bins.n, shift=bins.shift, sums=sums,
        )  # fmt: skip

    def _prepared(self, ensemble: Ensemble, x: Any) -> tuple[DeviceForest, DeviceBins]:
        columns = ensemble.cuts.n_columns
        if x.shape[1] != columns:
            raise InputError(
                f"x: the model was trained on {columns} features; this has {x.shape[1]}. "
                "Give the columns of the training data, in their order."
            )
        if self._last is None or not self._last.begins_with(ensemble):
            self._last = DeviceForest.of(ensemble, self._runtime)
        return self._last, self._binner.quantise(x, ensemble.cuts, by_column=False)

    def _blocks(self, n: int) -> tuple[int]:
        return (min(-(-n // THREADS), 16 * self._runtime.sm_count),)


def _steps(nodes: Nodes, cuts: Cuts) -> Any:
    """(v, 4) int32"""
    feature = np.maximum(nodes.feature, 0)
    flags = nodes.missing_left * MISSING_LEFT | cuts.is_categorical[feature] * CATEGORICAL
    rule = nodes.bin & 255 | cuts.n_bins[feature] << 8 | flags
    return np.stack([nodes.feature, rule, nodes.left, nodes.right], axis=1).astype(np.int32)


def _sets(nodes: Nodes, cuts: Cuts) -> Any:
    """(v, 8) uint32"""
    feature = np.maximum(nodes.feature, 0)
    missing, sets = cuts.n_bins[feature], nodes.left_set.astype(np.uint32)
    (at,) = np.nonzero(nodes.missing_left & cuts.is_categorical[feature] & (nodes.feature >= 0))
    sets[at, missing[at] >> 5] |= np.uint32(1) << (missing[at] & 31).astype(np.uint32)
    return sets


def _compact(steps: Any) -> Any:
    """(v, 2) uint32 of (v, 4) int32; None if siblings are apart, or features are too many."""
    feature, rule, left, right = steps.T
    leaf, missing_left = feature < 0, (rule & MISSING_LEFT) != 0
    if feature.max(initial=0) > 0xFFFF or not np.array_equal(right[~leaf], left[~leaf] + 1):
        return None
    turn = np.where(missing_left, -(rule >> 8 & 255), 0) & 255  # the missing bin comes before all others, or after them
    limit = np.where(leaf, 255, (rule & 255) + turn & 255)
    own = np.where(leaf, np.arange(len(steps)), left).astype(np.uint32)
    own[(rule & CATEGORICAL != 0) & ~leaf] |= BY_SET
    code = np.where(leaf, 0, turn) | limit << 8 | np.where(leaf, 0, feature) << 16
    return np.stack([code.astype(np.uint32), own], axis=1)


def _depth(steps: Any) -> int:
    depth, level = 0, np.zeros(1, np.int32)
    while True:
        level = level[steps[level, 0] >= 0]
        if not len(level):
            return depth
        depth, level = depth + 1, steps[level, 2:].ravel()
