"""The table of a grown tree, as the arrays that the rest of the library knows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.layout import Layout
from gpuboost.kernels.finished import take_apart
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
    v = len(node)
    nodes = Nodes(
        feature=np.zeros(v, np.int32),
        bin=np.zeros(v, np.int32),
        missing_left=np.zeros(v, np.bool_),
        left=np.zeros(v, np.int32),
        right=np.zeros(v, np.int32),
        gain=np.zeros(v),
        cover=np.zeros(v),
        count=np.zeros(v, np.int64),
        left_set=np.zeros((v, 8), np.uint32),
    )
    take_apart(
        node, gain, left_sets, layout.n_bins_of_all, layout.kinds_of_all, units[1], nodes.feature, nodes.bin,
        nodes.missing_left, nodes.left, nodes.right, nodes.gain, nodes.cover, nodes.count, nodes.left_set,
    )  # fmt: skip
    return nodes
