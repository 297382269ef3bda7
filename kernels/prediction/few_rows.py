"""predict for few rows: codes, leaves and scores in one call, in which eight trees, and not eight rows, walk together.

A row alone would wait for memory at every step. The sums are those of ``predict``: tree after tree.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.prediction.predict import CHILD, EIGHT, RULE, SLOT, code_dense


class WalkedTrees(NamedTuple):
    """Trees to walk, with their values: fields of ``FlatTrees``, whose ``starts`` are given line by line."""

    nodes: Any  # (v, 4) int32
    node_start: Any  # (trees + 1,) int64
    leaf_of: Any  # (v,) int32
    leaf_start: Any  # (trees + 1,) int64
    sets: Any  # (sets, 4) uint64
    values: Any  # (leaves,) float64
    output: Any  # (trees,) int32


@kernel
def _walk_trees(codes, first, trees, nodes, node_start, sets, places):
    """places[i] = node of tree ``first + i`` at which the row of these codes arrives, for ``trees`` <= EIGHT trees."""
    for i in range(trees):
        places[i] = np.uint64(node_start[first + i])
    moved = True
    while moved:
        moved = False
        for i in range(trees):
            node = places[i]
            code, rule = codes[np.uint64(nodes[node, SLOT])], nodes[node, RULE]
            if rule < 0:
                bits = sets[np.uint64(-1 - rule), np.uint64(code >> 6)]
                right = np.uint64(1) - ((bits >> np.uint64(code & 63)) & np.uint64(1))
            else:
                right = np.uint64(np.uint8(code + np.uint8(rule & 255)) > np.uint8(rule >> 8))
            root = np.uint64(node_start[first + i])
            places[i] = root + np.uint64(nodes[node, np.uint64(CHILD) + right])
            moved |= places[i] != node


@kernel
def add_rows(x, row_stride, column_stride, start, n, columns, kinds, thresholds, missing, cuts, categories,
             category_bins, trees, scores):  # fmt: skip
    """scores[output[t], start + r] += value of the leaf of each tree t in turn, for rows start .. start + n of x.

    x to ``category_bins``: see ``code_dense``, with ``places`` as ``thresholds``; trees: ``WalkedTrees``; scores:
    (k, rows).
    """
    output = trees.output
    codes, places = np.empty((1, max(len(columns), 1), 1), np.uint8), np.empty(EIGHT, np.uint64)
    codes[0, 0, 0] = 0
    for r in range(start, start + n):
        code_dense(x, row_stride, column_stride, r, 1, columns, kinds, thresholds, missing, cuts, categories,
                   category_bins, codes)  # fmt: skip
        row = codes[0, :, 0]
        for first in range(0, len(output), EIGHT):
            together = min(EIGHT, len(output) - first)
            _walk_trees(row, first, together, trees.nodes, trees.node_start, trees.sets, places)
            for i in range(together):
                t = first + i
                scores[output[t], r] += trees.values[trees.leaf_start[t] + trees.leaf_of[places[i]]]
