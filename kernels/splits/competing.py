"""Features that compete for the nodes of a small tree: of those that a node draws, those that its path allows."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import DEPTH, LEFT, NEW, RIGHT, STATE
from gpuboost.kernels.common.records import NodeRules
from gpuboost.kernels.sampling import feature_subsets
from gpuboost.kernels.splits.interactions import mark_allowed

DIRECTIONS, MOST, COLUMNS, SETS = range(4)  # lines of ``NodeRules.of_features``; the sets may have several


@kernel
def parents_of(node, n_nodes, rules):
    """(v,) int64: the parent of each node of a growing tree, -1 of the root; (0,) if no rule is of paths."""
    follows = NodeRules(*rules).of_features.shape[1] > MOST
    parent = np.empty(node.shape[0] if follows else 0, np.int64)
    if follows:
        parent[0] = -1
        for v in range(n_nodes):
            if node[v, LEFT] > 0:
                parent[node[v, LEFT]] = parent[node[v, RIGHT]] = v
    return parent


@kernel
def _mark_drawn(draw, v, depth, drawn, allowed, may):
    """Mark those of the allowed features that a node draws. allowed (t,) bool, (0,) for all; may (t,) bool: output.

    draw: see ``NodeRules.features``; drawn (number,) int32: scratch memory.
    """
    stream = draw[5 + (depth if draw[1] == 1 else v)]
    feature_subsets.draw(may.shape[0], draw[2], draw[3], draw[4], stream, drawn)
    may[:] = False
    for place in drawn:
        may[place] = allowed.shape[0] == 0 or allowed[place]


@kernel
def _allowed(new_pairs, parent, node, features, of_features):
    """(2p, t) bool: the features that the path to each node of the pairs allows; (0, t) for all.

    parent: without those of these pairs, which are added.
    """
    n_lines = 2 * new_pairs.shape[0] if parent.shape[0] > 0 else 0
    may, lines = np.empty((n_lines, features.shape[0]), np.bool_), np.empty(n_lines, np.int64)
    for line in range(n_lines):
        v = lines[line] = new_pairs[line >> 1, line & 1]
        if v > 0:
            parent[v] = new_pairs[line >> 1, 2]
    if n_lines > 0:
        of = of_features[0]
        mark_allowed(lines, parent, node, features, of[COLUMNS], of[SETS:].T, of[MOST, 0], may)
    return may


@kernel
def competing(new_pairs, parent, node, features, rules):
    """(2p, t) bool: the features by which both nodes of every new pair may be split; (0, t) for all.

    parent: see ``parents_of``; those of the new nodes are added. features (t,) int32: those of the tree.
    """
    rules, t = NodeRules(*rules), features.shape[0]
    allowed = _allowed(new_pairs, parent, node, features, rules.of_features)
    if rules.features.shape[0] == 0:
        return allowed
    may, drawn = np.empty((2 * new_pairs.shape[0], t), np.bool_), np.empty(min(rules.features[0], t), np.int32)
    for line in range(may.shape[0]):
        v = new_pairs[line >> 1, line & 1]
        if v >= 0 and node[v, STATE] == NEW:
            of_path = allowed[line] if allowed.shape[0] > 0 else may[line, :0]
            _mark_drawn(rules.features, v, node[v, DEPTH], drawn, of_path, may[line])
    return may
