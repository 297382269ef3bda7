"""predict for few rows: codes, leaves and scores in one call, in which eight trees, and not eight rows, walk together.

A row alone would wait for memory at every step. The sums are those of ``predict``: tree after tree.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.prediction.predict import CHILD, EIGHT, RULE, SLOT, code_dense

SLOT_BIT, SHIFT_BIT, LAST_BIT, CHILD_MASK = 48, 32, 40, 0xFFFF_FFFF  # of a step


class WalkedTrees(NamedTuple):
    """Trees to walk, in groups of eight. A step is a question ``(code + shift) mod 256 <= last``, as in ``flatten``.

    A right child follows the left one. Without depths no steps are read, but nodes and sets.
    """

    steps: Any  # (v,) int64: slot * 2**48 + last * 2**40 + shift * 2**32 + left child
    depths: Any  # (groups,) int64: steps to the deepest leaf; or (0,)
    roots: Any  # (8 * groups,) int64: those of the last group that are no tree are the first one
    value: Any  # (v,) float64: of each leaf
    output: Any  # (trees,) int32
    nodes: Any  # (v, 4) int32, as in ``FlatTrees``
    sets: Any  # (sets, 4) uint64


@kernel
def _go_down(codes, group, trees, places):
    """places[i] = leaf of tree i of the group at which the row of these codes arrives."""
    first, steps = np.uint64(EIGHT) * np.uint64(group), trees.steps
    for i in range(np.uint64(EIGHT)):
        places[i] = np.uint64(trees.roots[first + i])
    for _ in range(trees.depths[group]):
        for i in range(np.uint64(EIGHT)):
            step = np.uint64(steps[places[i]])
            code = codes[step >> np.uint64(SLOT_BIT)]
            shifted = np.uint8(code + np.uint8(step >> np.uint64(SHIFT_BIT)))
            right = np.uint64(shifted > np.uint8(step >> np.uint64(LAST_BIT)))
            places[i] = (step & np.uint64(CHILD_MASK)) + right


@kernel
def _go_down_by_sets(codes, group, trees, places):
    """``_go_down``, where a split is by categories."""
    first, nodes, sets = np.uint64(EIGHT) * np.uint64(group), trees.nodes, trees.sets
    for i in range(np.uint64(EIGHT)):
        places[i] = np.uint64(trees.roots[first + i])
    moved = True
    while moved:
        moved = False
        for i in range(np.uint64(EIGHT)):
            node = places[i]
            code, rule = codes[np.uint64(nodes[node, SLOT])], nodes[node, RULE]
            if rule < 0:
                bits = sets[np.uint64(-1 - rule), np.uint64(code >> 6)]
                right = np.uint64(1) - ((bits >> np.uint64(code & 63)) & np.uint64(1))
            else:
                right = np.uint64(np.uint8(code + np.uint8(rule & 255)) > np.uint8(rule >> 8))
            places[i] = np.uint64(trees.roots[first + i]) + np.uint64(nodes[node, np.uint64(CHILD) + right])
            moved |= places[i] != node


@kernel
def add_rows(x, row_stride, column_stride, start, n, columns, kinds, thresholds, missing, cuts, categories,
             category_bins, trees, scores):  # fmt: skip
    """scores[output[t], start + r] += value of the leaf of each tree t in turn, for rows start .. start + n of x.

    x to ``category_bins``: see ``code_dense``, with ``places`` as ``thresholds``; trees: ``WalkedTrees``; scores:
    (k, rows).
    """
    output, value = trees.output, trees.value
    codes, places = np.empty((1, max(len(columns), 1), 1), np.uint8), np.empty(EIGHT, np.uint64)
    codes[0, 0, 0] = 0
    for r in range(start, start + n):
        code_dense(x, row_stride, column_stride, r, 1, columns, kinds, thresholds, missing, cuts, categories,
                   category_bins, codes)  # fmt: skip
        row = codes[0, :, 0]
        for group in range(len(trees.roots) // EIGHT):
            if len(trees.depths) > 0:
                _go_down(row, group, trees, places)
            else:
                _go_down_by_sets(row, group, trees, places)
            first = group * EIGHT
            for i in range(min(EIGHT, len(output) - first)):
                scores[output[first + i], r] += value[places[i]]
