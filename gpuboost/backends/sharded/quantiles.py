"""Quantiles of residuals on shards by radix selection: no row is sent, and nothing is sorted.

The bits of a float64, flipped for negative numbers, are integers in the order of the numbers. Integer weights are
counted by the first byte; the byte that contains the quantile is fixed, and its rows are counted by the next one. After
eight rounds all 64 bits are known. The result is exact, equal to that of ``Reference`` by sorting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from gpuboost.types import Array, TrainingSet

DIGIT, BITS = 8, 64
_TOP = np.uint64(1 << 63)

Rank = Callable[[NDArray[np.uint64], int], NDArray[np.int64]]
"""(prefixes (v,), shift) -> (v, 256) weight of each next digit, among rows whose higher bits are their leaf's prefix"""


@dataclass(frozen=True, slots=True)
class Residuals:
    """Residuals of one shard's rows."""

    leaf_of_row: Array  # (n,) int32
    key: NDArray[np.uint64]  # (n,) in the order of the residuals
    weight: NDArray[np.int64]  # (n,) positive

    @classmethod
    def of(cls, data: TrainingSet, leaf_of_row: Array, scores: Array, output: int, scale: float) -> Residuals:
        """scores: (k, n). scale: factor of non-integer weights before they are rounded."""
        bits = (data.target_of(output) - scores[output] + 0.0).view(np.uint64)  # + 0.0: no negative zero
        key = np.where(bits >= _TOP, ~bits, bits | _TOP)
        if data.weight is not None:
            weight = np.maximum(np.rint(data.weight * scale).astype(np.int64), 1)
        else:
            weight = np.ones(data.n_rows, np.int64)
            weight = weight if data.multiplicity is None else data.multiplicity.astype(np.int64)
        return cls(leaf_of_row, key, weight)

    def rank(self, n_nodes: int, prefixes: NDArray[np.uint64], shift: int) -> NDArray[np.int64]:
        counts = np.zeros((n_nodes, 1 << DIGIT), np.int64)
        leaf, key, weight = self.leaf_of_row, self.key, self.weight
        if shift + DIGIT < BITS:
            rows = np.flatnonzero(key >> np.uint64(shift + DIGIT) == prefixes[leaf])
            leaf, key, weight = leaf[rows], key[rows], weight[rows]
        digit = (key >> np.uint64(shift)) & np.uint64((1 << DIGIT) - 1)
        np.add.at(counts, (leaf, digit.astype(np.int64)), weight)
        return counts


def quantiles(rank: Rank, n_nodes: int, alpha: float) -> NDArray[np.float64]:
    """(v,) the smallest residual whose cumulative weight reaches alpha of its leaf's total; 0 for no rows.

    See ``numerics.leaf_values.weighted_quantile``.
    """
    prefixes, needed, empty = np.zeros(n_nodes, np.uint64), np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.bool_)
    for shift in range(BITS - DIGIT, -1, -DIGIT):
        reached = np.cumsum(rank(prefixes, shift), axis=1)
        if shift == BITS - DIGIT:
            totals = reached[:, -1].tolist()
            needed = np.array([min(max(ceil(alpha * float(t)), 1), t) for t in totals], np.int64)
            empty = reached[:, -1] == 0
        digit = np.argmax(reached >= needed[:, None], axis=1)
        before = np.where(digit > 0, reached[np.arange(n_nodes), np.maximum(digit - 1, 0)], 0)
        needed = needed - before
        prefixes = prefixes << np.uint64(DIGIT) | digit.astype(np.uint64)
    bits = np.where(prefixes >= _TOP, prefixes & ~_TOP, ~prefixes)
    return np.where(empty, 0.0, bits.view(np.float64))
