"""route: the leaf of every binned row, and the sums of its rows' gradients. Definition: Reference.leaf_values.

A few hundred rows at a time: their codes, their leaves and their gradients stay in the nearest cache, from the first
question that is asked of them to the sums that they are added to.
"""

import numpy as np

from gpuboost.kernels.common.fixed_point import pack
from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.prediction.predict import CONSTANTS, find

MOST = 65_535  # rows whose packed sums fit, whatever the scale
_LOW = np.int64(0xFFFF_FFFF)


@kernel
def _take(columns, features, first, codes, rows):
    """codes[slot, : rows] = bins of the features, from row ``first`` on."""
    begin, end = np.uint64(first), np.uint64(first + rows)
    for slot in range(np.uint64(len(features))):
        column, line = columns[np.uint64(features[slot]), begin:end], codes[slot]
        for r in range(column.size):
            line[r] = column[r]


@kernel
def _write(leaf, leaf_node, out):
    for r in range(out.size):
        out[r] = leaf_node[np.uint64(leaf[r])]


@kernel
def _add(leaf, pairs, even, odd):
    """Sums by leaf, in two tables: an addition need not wait for the last one to the same leaf."""
    whole = leaf.size - leaf.size % 2
    for r in range(0, whole, 2):
        even[np.uint64(leaf[r])] += pairs[r]
        odd[np.uint64(leaf[r + 1])] += pairs[r + 1]
    if whole < leaf.size:
        even[np.uint64(leaf[whole])] += pairs[whole]


@kernel
def _spill(packed, leaf_node, sums):
    """Add packed sums of leaves to those of their nodes; packed is 0 again."""
    for leaf in range(packed.size):
        node = leaf_node[leaf]
        sums[node, 0] += packed[leaf] >> 32
        sums[node, 1] += packed[leaf] & _LOW
        packed[leaf] = 0


@kernel
def route(columns, features, codes, trees, scratch, start, stop, out, g, h, multiplicity, scale_g, scale_h, sums):
    """out[start:stop] = leaf of each row of dense columns; sums[leaf] += integers of its rows.

    columns (d, n) uint8; features (s,) int32: those of the tree; codes (1, s, width) uint8: scratch memory; trees:
    FlatTrees, of one tree; scratch: TreeScratch; out (n,) int32; g, h, multiplicity, scales: see ``fixed_point.pack``;
    sums (v, 2) int64, or (0, 2) if they are not wanted, and then g and h are not read.
    """
    width, wanted, leaf, leaf_node = codes.shape[2], sums.shape[0] > 0, scratch.leaf, trees.leaf_node
    even, odd = np.zeros(leaf_node.size, np.int64), np.zeros(leaf_node.size, np.int64)
    pairs, totals, unspilled = np.empty(width, np.int64), np.zeros(2, np.int64), 0
    for first in range(start, stop, width):
        rows = min(width, stop - first)
        last = first + rows
        _take(columns, features, first, codes[0], rows)
        quick = find(codes[0], rows, 0, trees, scratch)
        if wanted:
            if unspilled + rows > MOST:
                _spill(even, leaf_node, sums)
                _spill(odd, leaf_node, sums)
                unspilled = 0
            times = multiplicity[first:last] if multiplicity.shape[0] > 0 else multiplicity
            pack(g[first:last], h[first:last], times, scale_g, scale_h, 0, rows, pairs, totals)
            unspilled += rows
        if quick:
            numbers = scratch.results[CONSTANTS : CONSTANTS + rows]
            _write(numbers, leaf_node, out[first:last])
            if wanted:
                _add(numbers, pairs, even, odd)
        else:
            _write(leaf[:rows], leaf_node, out[first:last])
            if wanted:
                _add(leaf[:rows], pairs, even, odd)
    if wanted:
        _spill(even, leaf_node, sums)
        _spill(odd, leaf_node, sums)
