"""The leaves of few rows, without the preparations of a tree that many rows are worth."""

from __future__ import annotations

import numpy as np

from gpuboost.kernels.leaves.walk_rows import walk_rows
from gpuboost.types import Array, Bins, Cuts, DenseBins, Nodes

MOST = 4_096  # rows, with which random trees of 64 and 255 leaves took at most a third of ``FlatForest``'s time


def walked(nodes: Nodes, bins: Bins, cuts: Cuts, out: Array) -> bool:
    """out (n,) int32 = leaf of each row, if they are few and their bins dense; else False."""
    if not isinstance(bins, DenseBins) or len(out) > MOST:
        return False
    of_tree = (nodes.feature, nodes.bin, nodes.missing_left, nodes.left, nodes.right, nodes.left_set)
    walk_rows(*map(_to_read, (bins.rows, *of_tree, cuts.n_bins, cuts.is_categorical)), out)
    return True


def _to_read(array: Array) -> Array:
    """A view that cannot be written to: numba compiles a kernel anew where an array can, and models of files cannot."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
