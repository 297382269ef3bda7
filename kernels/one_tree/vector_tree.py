"""Growth of one tree for several outputs: which nodes are split, and their rows. ``numerics/one_tree`` defines it.

The node table is that of ``common/nodes`` with a column more: ALL_BUT, 1 if all categories go left.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.nodes import BEGIN, BIN, COLUMNS, DEPTH, END, FEATURE, LEFT, MISSING_LEFT, RIGHT

ALL_BUT = COLUMNS
_BINS = 257
_LOW = np.int64(0xFFFF_FFFF)


class VectorTreeArrays(NamedTuple):
    """A growing tree and its rows.

    node (v, COLUMNS + 1) int64, gain (v,) float64, sums (v, s, 2) int64 of g and h; rows (m,) int32, those of each node
    together; scratch (m,) int32.
    """

    node: Any
    gain: Any
    sums: Any
    rows: Any
    scratch: Any


@kernel
@inlined
def _mean_h(sums, v, units):
    """Mean of H over the outputs, added up in their order."""
    total = 0.0
    for j in range(units.shape[0]):
        total += sums[v, j, 1] * units[j, 1]
    return total / units.shape[0]


@kernel
def mean_h(sums, units, out):
    """out (v,) = mean over the outputs of H of each node. sums (v, s, 2) int64; units (s, 2)."""
    for v in range(out.shape[0]):
        out[v] = _mean_h(sums, v, units)


@kernel
def nodes_to_search(tree, units, first, last, max_depth, least_rows, least_h, out):
    """out = the nodes first .. last - 1 that may be split, by what is known before a search. Returns how many."""
    node, _, sums, _, _ = tree
    count = 0
    for v in range(first, last):
        any_h = False
        for j in range(units.shape[0]):
            any_h = any_h or sums[v, j, 1] != 0
        large = node[v, END] - node[v, BEGIN] >= 2 * least_rows
        if any_h and large and node[v, DEPTH] < max_depth and _mean_h(sums, v, units) >= 2.0 * least_h:
            out[count] = v
            count += 1
    return count


@kernel
def keep_best(tree, searched, found):
    """Write the best split of each node: the largest gain, the lowest feature among equals.

    searched (k,) int64; found (k, d, 4): see ``vector_split.best_splits``.
    """
    node, gain = tree[0], tree[1]
    for i in range(searched.shape[0]):
        v, best = searched[i], -1
        for f in range(found.shape[1]):
            if found[i, f, 0] > gain[v]:
                gain[v], best = found[i, f, 0], f
        node[v, FEATURE] = best
        if best >= 0:
            node[v, BIN], node[v, MISSING_LEFT] = np.int64(found[i, best, 1]), np.int64(found[i, best, 2])
            node[v, ALL_BUT] = np.int64(found[i, best, 3])


@kernel
def choose(tree, n_nodes, at_most, chosen):
    """chosen = the leaves that gain most by their splits, in the order of their numbers. Returns how many."""
    node, gain = tree[0], tree[1]
    count = 0
    for v in range(n_nodes):
        if gain[v] > 0.0 and node[v, LEFT] == 0:
            chosen[count] = v
            count += 1
    if count <= at_most:
        return count
    by_gain = np.argsort(-gain[chosen[:count]], kind="mergesort")[:at_most]  # of equals the lower number
    chosen[:at_most] = np.sort(chosen[by_gain])
    return at_most


@kernel
def _mark_left(node, v, b, is_categorical, table):
    """table[c] = 1 if rows of bin c of the node's feature go left, else 0; b: the bin of missing values."""
    for c in range(b):
        if is_categorical:
            table[c] = node[v, ALL_BUT] != 0 or c == node[v, BIN]
        else:
            table[c] = c <= node[v, BIN]
    table[b] = node[v, MISSING_LEFT]


@kernel
def _divide_rows(rows, scratch, bins, f, begin, end, to_left):
    """Bring the rows that go left to the front, each side in the order it has. Returns where the right ones begin."""
    left, right = begin, begin
    for k in range(begin, end):
        row = rows[k]
        goes = np.int64(to_left[np.uint64(bins[np.uint64(row), np.uint64(f)])])
        rows[left], scratch[right] = row, row
        left += goes
        right += 1 - goes
    rows[left:end] = scratch[begin:right]
    return left


@kernel
def divide(tree, bins, packed, n_bins, categorical, chosen, first, last, n_nodes):
    """Split the nodes chosen[first:last]; the children of chosen[i] are n_nodes + 2 i and the next one.

    bins (m, d) uint8; packed (m, s or more) int64, g * 2**32 + h of each output.
    """
    node, gain, sums, rows, scratch = tree
    s, to_left = sums.shape[1], np.zeros(_BINS, np.uint8)
    for i in range(first, last):
        v, left, right = chosen[i], n_nodes + 2 * i, n_nodes + 2 * i + 1
        f, begin, end = node[v, FEATURE], node[v, BEGIN], node[v, END]
        _mark_left(node, v, n_bins[f], categorical[f], to_left)
        middle = _divide_rows(rows, scratch, bins, f, begin, end, to_left)
        node[v, LEFT], node[v, RIGHT] = left, right
        for child, its_begin, its_end in ((left, begin, middle), (right, middle, end)):
            node[child, :] = 0
            gain[child] = 0.0
            node[child, BEGIN], node[child, END], node[child, DEPTH] = its_begin, its_end, node[v, DEPTH] + 1
        few, many = (left, right) if middle - begin <= end - middle else (right, left)
        sums[few] = 0
        for k in range(node[few, BEGIN], node[few, END]):
            for j in range(s):
                both = packed[rows[k], j]
                sums[few, j, 0] += both >> 32
                sums[few, j, 1] += both & _LOW
        for j in range(s):
            for part in range(2):
                sums[many, j, part] = sums[v, j, part] - sums[few, j, part]


@kernel
def leaves_of_rows(tree, n_nodes, out):
    """out (m,) int32 = the leaf of each row."""
    node, rows = tree[0], tree[3]
    for v in range(n_nodes):
        if node[v, LEFT] == 0:
            for k in range(node[v, BEGIN], node[v, END]):
                out[rows[k]] = v
