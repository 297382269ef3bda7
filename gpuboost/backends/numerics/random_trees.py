"""Random tree shapes: the definition of ``grow`` with a key, and of the counts computed afterwards.

The distribution of shapes does not depend on the gradients (docs/theory/langevin.md): every split takes each feature,
and each of its cuts, with equal probability; missing values go left or right with probability 1/2. Cuts are quantiles,
so they divide the rows evenly on average. One category of a categorical feature goes left, the next one right, and each
other one by an independent coin flip.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpuboost.backends.numerics.leaf_values import climbed
from gpuboost.backends.numerics.random_numbers import uniform_bits
from gpuboost.keys import Key, Stream
from gpuboost.types import Array, Candidates, Cuts, Limits, Nodes, Structure, Target, TrainingSet


def random_structure(
    data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits, key: Key
) -> Structure:
    """A tree of ``random_nodes`` of stream ``key / output``; its rows are not yet routed, counted and summed."""
    nodes = random_nodes(data.cuts, candidates, limits, key / output)
    return Structure(nodes, output, target.version, None, None, blind=True)


def random_nodes(cuts: Cuts, candidates: Candidates, limits: Limits, key: Key) -> Nodes:
    """A tree filled level by level, to ``max_depth`` or ``max_leaves``; node v has children 2 v + 1 and 2 v + 2.

    Split v uses numbers 4 v .. 4 v + 3 of stream ``key``, and 8 v .. 8 v + 7 of ``key / Stream.SETS``; if all nodes of
    a level share a split, v is the level. Features of one bin have no cut and are left out; if there is no other
    feature, the tree is a single leaf. Gains, cover and count are 0, as no row is read.
    """
    n_bins, usable = cuts.n_bins, usable_features(cuts, candidates)
    splits = splits_of(limits) if len(usable) else 0
    size = 2 * splits + 1
    draw = np.frexp(np.arange(1, splits + 1))[1] - 1 if limits.symmetric else np.arange(splits)
    words = uniform_bits(4 * (int(draw[-1]) + 1) if splits else 0, key).reshape(-1, 4)[draw]
    feature, of_bins = np.full(size, -1, np.int32), np.zeros(size, np.int32)
    bin_, missing_left = np.zeros(size, np.int32), np.zeros(size, np.bool_)
    left, right = np.zeros(size, np.int32), np.zeros(size, np.int32)
    left_set = np.zeros((size, 8), np.uint32)
    if splits:
        feature[:splits] = usable[_below(words[:, 0], len(usable))]
        of_bins[:splits] = n_bins[feature[:splits]]
        categorical = cuts.is_categorical[feature[:splits]]
        bin_[:splits] = np.where(categorical, 0, _below(words[:, 1], of_bins[:splits] - 1))
        missing_left[:splits] = words[:, 2] >> np.uint64(31) == 1
        left[:splits] = 2 * np.arange(splits) + 1
        right[:splits] = left[:splits] + 1
        for v in np.flatnonzero(categorical):
            left_set[v] = _set(int(words[v, 1]), int(of_bins[v]), int(draw[v]), key / Stream.SETS)
    return Nodes(
        feature, bin_, missing_left, left, right, np.zeros(size), np.zeros(size), np.zeros(size, np.int64), left_set
    )


def usable_features(cuts: Cuts, candidates: Candidates) -> Array:
    """Features that have a cut."""
    return candidates.features[cuts.n_bins[candidates.features] >= 2]


def splits_of(limits: Limits) -> int:
    """Number of splits of a random tree."""
    leaves = int(max(1, min(limits.max_leaves, 2 ** min(limits.max_depth, 30))))
    return (1 << leaves.bit_length() - 1 if limits.symmetric else leaves) - 1  # symmetric: whole levels


def counted(nodes: Nodes, h: Array, rows: Array, unit: float) -> Nodes:
    """The nodes with cover and count, from the sums of the leaves. h, rows: (v,) int64, 0 at inner nodes."""
    return replace(nodes, cover=climbed(nodes, h) * unit, count=climbed(nodes, rows))


def _below(words: Array, bound: Array | int) -> Array:
    """Uniform integers from 0 to bound - 1, of a 32-bit word each."""
    return (words * np.asarray(bound).astype(np.uint64) >> np.uint64(32)).astype(np.int64)


def _set(word: int, n_bins: int, v: int, key: Key) -> Array:
    """(8,) uint32 bits of the categories that go left."""
    bits = uniform_bits(8 * (v + 1), key)[8 * v :]
    coins = (bits[np.arange(n_bins) // 32] >> (np.arange(n_bins) % 32).astype(np.uint64) & np.uint64(1)) == 1
    first = word * n_bins >> 32
    coins[first], coins[(first + 1) % n_bins] = True, False
    words = np.zeros(8, np.uint32)
    for c in np.flatnonzero(coins):
        words[c // 32] |= np.uint32(1 << int(c) % 32)
    return words
