"""The table of a grown tree, as the arrays that the rest of the library knows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.layout import Layout
from gpuboost.kernels import nodes as table
from gpuboost.types import Nodes


def nodes_of(
    node: NDArray[np.int64],
    gain: NDArray[np.float64],
    left_sets: NDArray[np.uint32],
    units: NDArray[np.float64],
    layout: Layout,
) -> Nodes:
    """The finished tree, once its rows are settled. A split that was found but never made is not part of it.

    node (v, table.COLUMNS), gain (v,) and left_sets (v, 8) of the nodes there are; units (2,): value of one unit
    of g and of h.
    """
    made = node[:, table.STATE] == table.SPLIT
    left_set = np.zeros((len(node), 8), np.uint32)
    categorical = made & (layout.kinds_of_all[node[:, table.FEATURE]] == 1) if layout.some_categorical else made[:0]
    for v in np.flatnonzero(categorical):
        missing = int(layout.n_bins_of_all[node[v, table.FEATURE]])
        left_set[v] = left_sets[v]
        left_set[v, missing // 32] &= ~np.uint32(1 << missing % 32)  # growing needs it, later missing_left tells
    return Nodes(
        feature=np.where(made, node[:, table.FEATURE], -1).astype(np.int32),
        bin=np.where(made, node[:, table.BIN], 0).astype(np.int32),
        missing_left=made & (node[:, table.MISSING_LEFT] == 1),
        left=node[:, table.LEFT].astype(np.int32),
        right=node[:, table.RIGHT].astype(np.int32),
        gain=np.where(made, gain, 0.0),
        cover=node[:, table.SUM_H] * units[1],
        count=node[:, table.END] - node[:, table.BEGIN],
        left_set=left_set,
    )
