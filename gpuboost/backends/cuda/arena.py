"""Device memory and kernels for trees of one shape, allocated once and used again for every tree."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.plan import Plan
from gpuboost.backends.cuda.runtime import Runtime, source
from gpuboost.backends.cuda.tree import NODE, RULE
from gpuboost.types import Array, Cuts

UPLOADS = 16  # sets of candidates that may be on their way
WARPS = 16  # of a block that builds histograms
STAGE_BYTES = 384  # of each of its warps


class Arena:
    """What a frontier works with.

    ``nodes[output]`` (most_nodes,) NODE and ``leaf_of_row[output]`` (n,) int32 hold the last tree of each output;
    ``array`` is scratch that all outputs share: see ``Plan.sizes``.
    """

    def __init__(self, runtime: Runtime, plan: Plan, cuts: Cuts, outputs: int = 1) -> None:
        self.runtime, self.plan = runtime, plan
        self.array: dict[str, Array] = {
            name: runtime.zeros(max(1, length), dtype) for name, (length, dtype) in plan.sizes().items()
        }
        self.nodes = [runtime.zeros(plan.most_nodes, NODE) for _ in range(outputs)]
        self.leaf_of_row = [runtime.zeros(max(1, plan.n), np.int32) for _ in range(outputs)]
        self.no_rows = runtime.zeros(1, np.int32)
        self.rule = runtime.upload(_rule(plan))
        self.kinds = runtime.upload((cuts.n_bins | cuts.is_categorical.astype(np.int32) << 16).astype(np.int32))
        self._n_bins, self._features = cuts.n_bins, np.empty(0, np.int32)
        length = 3 + 2 * plan.d + 2 * plan.tiles
        self._contest_on_host = [runtime.pinned(length, np.int32) for _ in range(UPLOADS)]
        self._contest, self._uploads = runtime.zeros(length, np.int32), 0
        d, tiles = plan.d, plan.tiles
        bounds = np.cumsum([0, 3, d, d, tiles, tiles]).tolist()
        pieces = [self._contest[bounds[i] : bounds[i + 1]] for i in range(5)]
        self.contest, self.features, self.places, self.tiles, self.tile_cells = pieces
        self._compile()

    def _compile(self) -> None:
        plan, kernel = self.plan, self.runtime.kernel
        shape = f"#define CELLS {plan.cells}\n#define COUNTS {int(plan.counts)}\n"
        tree = ("common.cuh", "tree.cuh", "blocks.cuh")
        search = ("choose.cuh", "search.cuh", "categories.cuh", "cells.cuh")
        histogram = source(*tree, "histogram.cu", before=f"#define WIDTH {plan.width}\n{shape}")
        sets = f"#define SETS {int(plan.sets)}\n"
        if plan.limits.symmetric:
            symmetric = source(*tree, *search, "level.cuh", "symmetric.cu", before=shape + sets)
            self.complete_histograms = kernel(symmetric, "complete_histograms")
            self.evaluate_level = kernel(symmetric, "evaluate_level")
        else:
            self.evaluate = kernel(source(*tree, *search, "split.cu", before=shape + sets), "evaluate")
        slot = {1: "u8", 2: "u16", 4: "i32"}[plan.slot_type.itemsize]
        partition = source(*tree, "partition.cu", before=f"#define SLOT {slot}\n")
        planes = 5 if plan.counts else 4  # in halves: counts have 16 bits
        self.shared = planes * plan.cells * 64 + WARPS * STAGE_BYTES
        self.root_histogram = kernel(histogram, "root_histogram", shared_limit=self.shared)
        self.list_histogram = kernel(histogram, "list_histogram", shared_limit=self.shared)
        self.route = kernel(partition, "route")
        self.settle_rows = kernel(partition, "settle_rows")
        self.finish_tree = kernel(partition, "finish_tree")

    @cached_property
    def tried(self) -> Array:
        """(2 * most_slots,) NODE: the nodes of leaf-wise growth, of which not all become part of the tree."""
        return self.runtime.zeros(2 * self.plan.most_slots, NODE)

    def compete(self, features: NDArray[np.int32]) -> None:
        """Queue the upload of the candidate features, increasing, if they are not those on the device already.

        Not for use in a capture: where features change from round to round, call it before the graph is launched.
        """
        if np.array_equal(features, self._features):
            return
        self._features = features.copy()
        if self._uploads and self._uploads % UPLOADS == 0:
            self.runtime.wait()  # the buffer about to be written may still be read
        host = self._contest_on_host[self._uploads % UPLOADS]
        self._uploads += 1
        host[:] = contest(features, self._n_bins, self.plan)
        self.runtime.write(self._contest, host)


def contest(features: NDArray[np.int32], n_bins: NDArray[np.int32], plan: Plan) -> NDArray[np.int32]:
    """(3 + 2d + 2 tiles,) int32: how many features and tiles, and the width of a tile; the features; where the cells of
    each begin in a histogram, in units of ``cells``; the tiles that hold them; the cells that each of those uses."""
    d, width = plan.d, plan.width
    tiles, tile_of = np.unique(features // width, return_inverse=True)
    out = np.zeros(3 + 2 * d + 2 * plan.tiles, np.int32)
    out[:3] = len(features), len(tiles), width
    out[3 : 3 + len(features)] = features
    out[3 + d : 3 + d + len(features)] = tile_of * width + features % width
    at = 3 + 2 * d
    out[at : at + len(tiles)] = tiles
    for i, tile in enumerate(tiles):
        used = int(n_bins[tile * width : (tile + 1) * width].max()) + 1
        out[at + plan.tiles + i] = -(-used // 4) * 4
    return out


def _rule(plan: Plan) -> NDArray[np.void]:
    limits, rule = plan.limits, np.zeros(1, RULE)
    for name in ("reg_lambda", "min_child_weight", "min_split_gain"):
        rule[name] = getattr(limits, name)
    rule["max_leaves"], rule["symmetric"] = plan.most_leaves, limits.symmetric
    rule["max_depth"] = min(limits.max_depth, 2**30)
    rule["min_samples_leaf"] = min(limits.min_samples_leaf, 2**30)
    return rule
