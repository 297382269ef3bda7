"""A tree of few rows in one launch: by a cluster of blocks that share out its features (``growth/cluster_tree.cu``).

It needs thread block clusters (compute capability 9.0), trees by level without categories or limits beyond the usual
ones, and room for the histograms of a block's features in its shared memory. The tree is that of the other kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuboost.backends.cuda.device.kernels import Launcher
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.device.sources import source
from gpuboost.backends.cuda.trees.plan import CANDIDATE_BYTES, ArenaPlan
from gpuboost.backends.cuda.trees.tree import LINE, NODE, ROUTE
from gpuboost.records import dataclass
from gpuboost.types import Limits

if TYPE_CHECKING:
    from gpuboost.backends.cuda.trees.grower import RowsToGrow

MOST_BLOCKS = 8  # of a cluster, on every device that has clusters
MOST_FEATURES = 4  # of a block: more would not have room at depth 6
MOST_DEPTH = 8  # 128 histograms of each feature at the last level
MOST_ROWS = 65_535  # whose sums have 32 bits, as in tree.cuh
THREADS = 512
STATIC_BYTES = 2_048  # upper bound on the kernel's static shared memory
SLOT_BYTES = LINE.itemsize + ROUTE.itemsize + 8 + 4 + 4 + 1  # of a leaf: line, route, way, cursor, node, listed or not


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Sizes of a cluster that grows trees of a plan."""

    blocks: int
    features: int  # of a block, at most
    histograms: int  # of a feature, at most
    most_nodes: int
    shared: int  # bytes of a block
    candidates: int  # of a level: one for each new node and feature

    @classmethod
    def of(cls, plan: ArenaPlan, runtime: Runtime) -> ClusterPlan | None:
        """The plan for a device; None if trees of this plan are grown by the kernels of levels."""
        depth = plan.limits.max_depth
        if not (runtime.clusters and plan.n <= MOST_ROWS and 0 < depth <= MOST_DEPTH):
            return None
        if plan.sets or plan.counts or plan.most_leaves < 2 or not _is_plain(plan.limits):
            return None
        blocks = next(size for size in (1, 2, 4, MOST_BLOCKS) if size >= min(plan.d, MOST_BLOCKS))
        features, histograms = -(-plan.d // blocks), min(1 << (depth - 1), plan.most_leaves)
        shared = histograms * features * plan.cells * 8 + plan.most_nodes * NODE.itemsize
        shared += plan.most_leaves * SLOT_BYTES + 4 + -(-plan.n // 4) * 4
        if features > MOST_FEATURES or shared + STATIC_BYTES > runtime.block_memory:
            return None
        return cls(blocks, features, histograms, plan.most_nodes, shared, histograms * plan.d)


def _is_plain(limits: Limits) -> bool:
    """True if splits are searched as in a tree without limits of values, of paths, or draws of cuts."""
    if limits.growth != "depthwise" or limits.bounded or limits.extra_trees:
        return False
    special = (limits.interactions, limits.forced, limits.costs)
    return limits.random_strength == 0.0 and all(each is None for each in special)


class ClusterGrowth:
    """The kernel, and its memory."""

    def __init__(self, runtime: Runtime, sizes: ClusterPlan, plan: ArenaPlan, headers: tuple[str, ...]) -> None:
        self._sizes = sizes
        self._candidates = runtime.zeros(2 * sizes.candidates * CANDIDATE_BYTES // 8, np.int64)
        macros = {
            "CELLS": plan.cells, "COUNTS": 0, "SETS": 0, "GROUP": 32, "CLUSTER": sizes.blocks,
            "FEATURES": sizes.features,
        }  # fmt: skip
        files = (
            *headers, "histograms/small_cells.cuh", "growth/best_feature.cuh", "growth/root.cuh", "growth/ways.cuh",
            "growth/lists.cuh", "growth/cluster_tree.cu",
        )  # fmt: skip
        text = source(*files, before="".join(f"#define {name} {value}\n" for name, value in macros.items()))
        self._kernel = Launcher(runtime, text, "grow_in_cluster", shared_limit=sizes.shared)

    def grow(self, target: RowsToGrow, **tree: Any) -> None:
        """Queue the growth of all levels, but for the routes of the last one's rows. tree: the other arguments."""
        weighted = target.multiplicity is not None
        self._kernel(
            (self._sizes.blocks,), (THREADS,),
            columns=target.bins.columns, n=target.bins.n, g=target.g, h=target.h, weighted=weighted,
            candidates=self._candidates, room=self._sizes.candidates, state=target.state,
            slots=self._sizes.histograms, most_nodes=self._sizes.most_nodes, shared_mem=self._sizes.shared, **tree,
        )  # fmt: skip
