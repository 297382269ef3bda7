"""An ensemble on a device, in the layouts of the prediction kernels."""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import Any

import numpy as np

from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.types import Array, Cuts, Ensemble, Nodes

MISSING_LEFT, CATEGORICAL = 1 << 16, 1 << 17  # as in walk.cuh
STAGE_NODES = 4096  # as in predict.cu
BY_SET = np.uint32(1 << 31)  # as in predict.cu
BLOCK_ROWS = 1024  # as in predict.cu and predict_complete.cu
DEEPEST, MOST_FEATURES = 10, 64  # of complete trees: an offset has 16 bits
COMPLETE_BY_SET, ALWAYS_LEFT = np.uint32(4), np.uint32(255 << 24)  # as in predict_complete.cu


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
        counts = [len(tree_steps) for tree_steps in steps]
        compact = [_compact(tree_steps) for tree_steps in steps]
        small = all(compact_steps is not None and len(compact_steps) <= STAGE_NODES for compact_steps in compact)
        depth = np.array([_depth(tree_steps) for tree_steps in steps] or [0], np.int32)

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
        ensemble, n = self.ensemble, len(asked.trees)
        if ensemble is asked:
            return True
        same = ensemble.cuts is asked.cuts and ensemble.bias is asked.bias and ensemble.factors[:n] == asked.factors
        return same and all(map(is_, ensemble.trees, asked.trees))


@dataclass(frozen=True, slots=True, eq=False)
class CompleteForest:
    """An ensemble as complete binary trees, for ``predict_complete``: 2**depth places to a tree."""

    nodes: Array  # (places,) uint32 words; the children of node v of a tree are 2 v + 1 and 2 v + 2
    leaves: Array  # (places,) float64 factor * value
    sets: Array  # (places, 8) uint32, with the bit of what is missing where that goes left; (1, 8) without categories
    begin: Array  # (trees,) int64 first place of each tree
    depth: Array  # (trees,) int32
    categories: bool

    @classmethod
    def of(cls, ensemble: Ensemble, runtime: Runtime) -> CompleteForest | None:
        """Upload an ensemble of trees that are on the host; None if a tree is too deep, or features are too many."""
        trees, cuts = ensemble.trees, ensemble.cuts
        steps = [_steps(tree.nodes, cuts) for tree in trees]
        depth = np.array([_depth(tree_steps) for tree_steps in steps] or [0], np.int32)
        if not trees or depth.max() > DEEPEST or cuts.n_features > MOST_FEATURES:
            return None
        begin = np.concatenate([[0], np.cumsum(1 << depth)]).astype(np.int64)
        first = np.concatenate([[0], np.cumsum([len(of_tree) for of_tree in steps])])  # node of each tree, of all nodes
        every = np.concatenate(steps)
        words = _words(every)
        values = np.concatenate([factor * tree.value for tree, factor in zip(trees, ensemble.factors, strict=True)])
        of_sets = np.concatenate([_sets(tree.nodes, cuts) for tree in trees]) if cuts.is_categorical.any() else None
        nodes, leaves = np.full(begin[-1], ALWAYS_LEFT), np.empty(begin[-1])
        sets = np.zeros((1 if of_sets is None else begin[-1], 8), np.uint32)
        for levels in np.unique(depth):
            (some,) = np.nonzero(depth == levels)
            node = first[some][:, None]  # (trees, nodes of the level): which node has that place
            base, shift = first[some][:, None], 0
            for _ in range(levels):
                place = begin[some][:, None] + shift + np.arange(node.shape[1])
                nodes[place] = words[node]
                if of_sets is not None:
                    sets[place] = of_sets[node]
                leaf = every[node, 0] < 0
                sides = [np.where(leaf, node, base + every[node, side]) for side in (2, 3)]
                shift, node = shift + node.shape[1], np.stack(sides, axis=2).reshape(len(some), -1)
            leaves[begin[some][:, None] + np.arange(node.shape[1])] = values[node]
        upload = runtime.upload
        return cls(
            upload(nodes), upload(leaves), upload(sets), upload(begin[:-1]), upload(depth), of_sets is not None
        )  # fmt: skip


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
    (index,) = np.nonzero(nodes.missing_left & cuts.is_categorical[feature] & (nodes.feature >= 0))
    sets[index, missing[index] >> 5] |= np.uint32(1) << (missing[index] & 31).astype(np.uint32)
    return sets


def _limits(steps: Any) -> tuple[Any, Any]:
    """(v,) turn and limit of (v, 4) int32: a row goes left if its bin + turn <= limit, modulo 256."""
    feature, rule = steps[:, 0], steps[:, 1]
    turn = np.where(rule & MISSING_LEFT, -(rule >> 8 & 255), 0) & 255  # the missing bin comes first, or last
    leaf = feature < 0
    return np.where(leaf, 0, turn).astype(np.uint32), np.where(leaf, 255, (rule & 255) + turn & 255).astype(np.uint32)


def _by_set(steps: Any) -> Any:
    """(v,) bool"""
    return (steps[:, 1] & CATEGORICAL != 0) & (steps[:, 0] >= 0)


def _words(steps: Any) -> Any:
    """(v,) uint32 nodes of complete trees, as in predict_complete.cu, of (v, 4) int32."""
    turn, limit = _limits(steps)
    feature = np.maximum(steps[:, 0], 0).astype(np.uint32)
    offset = (feature >> 2) * np.uint32(4 * BLOCK_ROWS) | feature & 3
    return limit << 24 | turn << 16 | offset | np.where(_by_set(steps), COMPLETE_BY_SET, np.uint32(0))


def _compact(steps: Any) -> Any:
    """(v, 2) uint32, as CompactStep of predict.cu, of (v, 4) int32; None if siblings are apart, features too many."""
    feature, _, left, right = steps.T
    leaf = feature < 0
    if feature.max(initial=0) > 0xFFFF or not np.array_equal(right[~leaf], left[~leaf] + 1):
        return None
    turn, limit = _limits(steps)
    left_word = np.where(leaf, np.arange(len(steps)), left).astype(np.uint32)
    left_word |= np.where(_by_set(steps), BY_SET, np.uint32(0))
    return np.stack([turn | limit << 8 | np.maximum(feature, 0).astype(np.uint32) << 16, left_word], axis=1)


def _depth(steps: Any) -> int:
    depth, level = 0, np.zeros(1, np.int32)
    while True:
        level = level[steps[level, 0] >= 0]
        if not len(level):
            return depth
        depth, level = depth + 1, steps[level, 2:].ravel()
