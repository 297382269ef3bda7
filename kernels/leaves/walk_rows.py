"""Leaves of binned rows, by the nodes of trees as they are. Definition: Reference.route."""

import numpy as np

from gpuboost.kernels.common.jit import kernel

TOGETHER = 16  # rows that go down a tree at the same time: none waits for the step of another
NEVER = 256  # no code


@kernel
def _write_steps(feature, last, missing_left, left, right, n_bins, is_categorical, tests, children):
    """Write the nodes of a tree as words. Returns its depth, or -1 if a split is by categories.

    tests[v] = feature * 2**32 + code of missing values that go left * 2**16 + last bin that goes left; children[2 * v]
    and [2 * v + 1]: the nodes where the test fails and where it holds, and of a leaf itself.
    """
    depth, levels = 0, np.zeros(feature.size, np.int64)
    for v in range(feature.size):
        f = feature[v]
        if f < 0:
            tests[v], children[2 * v], children[2 * v + 1] = 0, v, v
            continue
        if is_categorical[f]:
            return -1
        missing = np.int64(n_bins[f]) if missing_left[v] else NEVER
        tests[v] = np.int64(f) << 32 | missing << 16 | np.int64(last[v])
        children[2 * v], children[2 * v + 1] = right[v], left[v]
        levels[left[v]] = levels[right[v]] = levels[v] + 1  # a node comes before its children
        depth = max(depth, levels[v] + 1)
    return depth


@kernel
def _go_down(rows, first, tests, children, depth, nodes):
    """nodes[j] = leaf of row first + j; every row takes as many steps as the deepest leaf is away."""
    for j in range(nodes.size):
        nodes[j] = 0
    for _ in range(depth):
        for j in range(nodes.size):
            v = np.uint64(nodes[j])
            test = tests[v]
            code = np.int64(rows[first + np.uint64(j), np.uint64(test >> 32)])
            holds = np.uint64((code <= test & 0xFFFF) | (code == test >> 16 & 0xFFFF))
            nodes[j] = children[np.uint64(2) * v + holds]


@kernel
def _go_down_by_sets(rows, feature, last, missing_left, left, right, left_set, n_bins, is_categorical, out):
    """``walk_rows``, row by row, where a split is by categories."""
    for r in range(out.size):
        v = np.uint64(0)
        while feature[v] >= 0:
            f = np.uint64(feature[v])
            code = rows[r, f]
            if code == n_bins[f]:
                goes_left = missing_left[v]
            elif is_categorical[f]:
                goes_left = (left_set[v, np.uint64(code >> 5)] >> np.uint32(code & 31)) & np.uint32(1) != 0
            else:
                goes_left = code <= last[v]
            v = np.uint64(left[v]) if goes_left else np.uint64(right[v])
        out[r] = v


@kernel
def walk_rows(rows, feature, last, missing_left, left, right, left_set, n_bins, is_categorical, out):
    """out[r] = leaf of row r.

    rows (n, d) uint8 bins; feature to left_set: arrays of ``types.Nodes``, ``last`` being its ``bin``; n_bins,
    is_categorical (d,): of ``types.Cuts``; out (n,) int32.
    """
    tests, children = np.empty(feature.size, np.int64), np.empty(2 * feature.size, np.int32)
    of_tree = feature, last, missing_left, left, right
    depth = _write_steps(*of_tree, n_bins, is_categorical, tests, children)
    if depth < 0:
        _go_down_by_sets(rows, *of_tree, left_set, n_bins, is_categorical, out)
        return
    for first in range(0, out.size, TOGETHER):
        _go_down(rows, np.uint64(first), tests, children, depth, out[first : first + TOGETHER])


@kernel
def add_rounds(rows, nodes, values, first_node, n_bins, is_categorical, factor, scores, after):
    """Add the trees of several rounds to scores, and keep the scores after each.

    rows (n, d) uint8 bins; nodes: feature to left_set of ``walk_rows``, those of all trees one after another, and
    values of the leaves; first_node (trees + 1,): where each tree begins, round after round, output after output;
    factor: of the values; scores (k, n) float64, written to; after (k, rounds, n) float64.
    """
    feature, last, missing_left, left, right, left_set = nodes
    k, n = scores.shape
    leaves, steps = np.empty(n, np.int32), np.empty(feature.size)
    for tree in range(first_node.size - 1):
        a, b = first_node[tree], first_node[tree + 1]
        of_tree = feature[a:b], last[a:b], missing_left[a:b], left[a:b], right[a:b], left_set[a:b]
        walk_rows(rows, *of_tree, n_bins, is_categorical, leaves)
        for v in range(b - a):
            steps[v] = factor * values[a + v]
        line, out = scores[tree % k], after[tree % k, tree // k]
        for r in range(n):
            line[r] += steps[np.uint64(leaves[r])]
            out[r] = line[r]
