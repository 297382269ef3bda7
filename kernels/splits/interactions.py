"""Interaction constraints: the features that may split a node. Definition: ``numerics.interactions.PathRule``."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import FEATURE

_ALL = np.uint32(0xFFFF_FFFF)


@kernel
def mark_allowed(lines, parent, node, features, columns, sets, most, out):
    """out[i, j] = whether features[j] may split node lines[i], given the features of the splits above it.

    lines (c,) int64, -1 for no node; parent (v,) int64: -1 for the root; node (v, nodes.COLUMNS) int64; features (t,)
    int32. columns (d,) int32, sets (d, words) uint32, most: see ``PathRule``. out (c, t) bool, of which lines without a
    node stay.
    """
    common, seen = np.empty(sets.shape[1], np.uint32), np.empty(max(most, 1), np.int32)
    for i in range(lines.shape[0]):
        if lines[i] < 0:
            continue
        common[:] = _ALL
        count, p = 0, parent[lines[i]]
        while p >= 0:
            f, known = node[p, FEATURE], most == 0
            for w in range(common.shape[0]):
                common[w] &= sets[f, w]
            for k in range(count):
                known = known or seen[k] == columns[f]
            if not known:  # paths above have at most ``most`` columns, so there is room
                seen[count] = columns[f]
                count += 1
            p = parent[p]
        for j in range(features.shape[0]):
            f, together, few = features[j], False, most == 0 or count < most
            for w in range(common.shape[0]):
                together = together or common[w] & sets[f, w] != 0
            for k in range(count):
                few = few or seen[k] == columns[f]
            out[i, j] = together and few
