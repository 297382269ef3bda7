"""Device memory and kernels for trees of one shape, allocated once and used again for every tree."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.codegen.row_functions import called_by
from gpuboost.backends.cuda.device.kernels import Launcher
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.device.sources import source
from gpuboost.backends.cuda.trees.all_reduce import SHARDED, RowsOfGpu, TreeAllReduce
from gpuboost.backends.cuda.trees.cluster_tree import ClusterGrowth, ClusterPlan
from gpuboost.backends.cuda.trees.plan import ROOT_SUMS, ArenaPlan, splits_of_pass
from gpuboost.backends.cuda.trees.tree import NODE, RULE, as_bytes, empty_records
from gpuboost.backends.numerics.interactions import PathRule
from gpuboost.backends.numerics.monotone import of_features
from gpuboost.types import Array, Cuts, Limits

HEAD = 4  # numbers in front of ``selection``
OF_TREE, OF_NODES, OF_LEVELS = 0, 1, 2  # ``Draws`` in ``tree.cuh``
NO_CUTS = np.empty((0, 8), np.uint32)
UPLOADS = 16  # sets of candidates that may be on their way
STAGE_BYTES = 2 * 384  # of each warp of a block that builds histograms; half of it where tiles have 64 features
STATIC_BYTES = 640  # upper bound on these kernels' static shared memory


_TREE = ("common/common.cuh", "common/tree.cuh", "common/blocks.cuh")
HISTOGRAMS = (*_TREE, "growth/root.cuh", "histograms/histogram.cu")
SPLITS = ("growth/best_feature.cuh", "splits/split.cu")  # behind ``searching``
ROUTES = (*_TREE, "growth/record.cuh", "growth/ways.cuh", "growth/lists.cuh", "growth/partition.cu")
_SEARCH = (
    "growth/choose.cuh", "splits/bounds.cuh", "splits/interactions.cuh", "splits/extra_trees.cuh", "splits/search.cuh",
    "splits/categories.cuh", "histograms/cells.cuh", "splits/warp_pairs.cuh",
)  # fmt: skip


def searching(limits: Limits) -> tuple[str, ...]:
    """Headers of the split search."""
    disturbed = limits.random_strength > 0.0
    random_numbers = ("common/philox.cuh",) * (disturbed or limits.extra_trees) + ("common/normal.cuh",) * disturbed
    return (*_TREE, *random_numbers, *_SEARCH, "splits/random_strength.cuh")


class Arena:
    """Device memory for growing trees.

    ``nodes[output]`` (most_nodes,) NODE, as bytes, and ``leaf_of_row[output]`` (n,) int32 hold the last tree of each
    output; ``array`` is scratch memory that all outputs share: see ``ArenaPlan.sizes``.
    """

    def __init__(
        self, runtime: Runtime, plan: ArenaPlan, cuts: Cuts, outputs: int = 1, *, restricted: bool = False,
        draws: int = OF_TREE, shard: RowsOfGpu | None = None,
    ) -> None:  # fmt: skip
        """draws: what draws features, of ``Draws`` in ``tree.cuh``."""
        self.runtime, self.plan = runtime, plan
        self.array: dict[str, Array] = {
            name: empty_records(runtime, length, dtype) if dtype.names else runtime.zeros(max(1, length), dtype)
            for name, (length, dtype) in plan.sizes().items()
        }
        self.nodes = [empty_records(runtime, plan.most_nodes, NODE) for _ in range(outputs)]
        self.leaf_of_row = [runtime.zeros(max(1, plan.n), np.int32) for _ in range(outputs)]
        self.no_rows = runtime.zeros(1, np.int32)
        self.all_compete = {"chosen": runtime.zeros(1, np.uint32), "words": 0}
        self.no_gain_noise = {
            "deviation": 0.0, "seed_low": 0, "seed_high": 0, "iteration": runtime.zeros(1, np.uint32), "name": 0,
            "table": runtime.zeros(1, np.float64),
        }  # fmt: skip
        self.most_splits = 1 if draws == OF_NODES else splits_of_pass(plan.most_leaves)
        self.blind_passes = plan.blind_passes(self.most_splits, shared_rows=shard is not None)
        self.rule = runtime.upload(as_bytes(_rule(plan, draws, self.most_splits)))
        self.kinds = runtime.upload((cuts.n_bins | cuts.is_categorical.astype(np.int32) << 16).astype(np.int32))
        self._cells_of_tiles = runtime.upload(cells_of_tiles(cuts.n_bins, plan))
        self._n_bins, self._features, self._root = cuts.n_bins, np.empty(0, np.int32), NO_CUTS
        length = HEAD + 2 * plan.d + 4 * plan.tiles + (8 * plan.d if restricted else 0)
        self._selection_on_host = [runtime.pinned(length, np.int32) for _ in range(UPLOADS)]
        self._selection, self._uploads = runtime.zeros(length, np.int32), 0
        d, tiles = plan.d, plan.tiles
        begins = np.cumsum([0, HEAD, d, d, tiles, tiles, 2 * tiles]).tolist()
        pieces = [self._selection[begins[i] : begins[i + 1]] for i in range(6)]
        self.selection, self.features, self.places, self.tiles, self.tile_cells, tile_columns = pieces
        self.tile_columns = tile_columns.view(np.uint32)
        self.n_candidates = 0  # features of the next tree
        self.line_sums = self.array["line_sums"][ROOT_SUMS:]
        self.growing = False  # True from the first sums of a tree to the last, after which line_sums are 0
        self.tree_all_reduce = None if shard is None else TreeAllReduce(runtime, plan, shard)
        self.within: dict[
            str, Array
        ] = {}  # arguments of kernels that search splits: bounds of leaf values, values of nodes
        smoothed = plan.limits.path_smooth > 0.0
        if smoothed or (plan.limits.bounded and not plan.limits.symmetric):
            directions = of_features(plan.limits.directions, cuts).astype(np.int32)
            bounds = runtime.zeros((6 if smoothed else 4) * plan.most_slots, np.float64)
            self.within = {"bounds": bounds, "directions": runtime.upload(directions)}
        self.paths: dict[str, Any] = {}  # the same: interaction constraints
        if plan.limits.interactions is not None:
            rule = PathRule.of_features(plan.limits.interactions, cuts)
            self.paths = {
                "column_of": runtime.upload(rule.columns), "sets": runtime.upload(rule.sets.reshape(-1)),
                "set_words": rule.sets.shape[1], "most_columns": rule.most,
            }  # fmt: skip
        self._compile()

    def _compile(self) -> None:
        plan, kernel = self.plan, partial(Launcher, self.runtime)
        shared = "" if self.tree_all_reduce is None else SHARDED
        shape = f"{shared}#define CELLS {plan.cells}\n#define COUNTS {int(plan.counts)}\n"
        search, functions = searching(plan.limits), called_by(*searching(plan.limits))
        halves = 5 if plan.counts else 4  # of a plane: counts have 16 bits
        planes = halves * plan.cells * 2 * max(plan.width, 32)
        stages = STAGE_BYTES // (2 if plan.width > 32 else 1)
        room = self.runtime.block_memory - STATIC_BYTES  # 64 KB at compute capability 7.5
        passes = 1 if planes + 16 * stages <= room else 2
        self.histogram_threads = 1_024 if planes // passes + 32 * stages <= room else 512
        self.shared = planes // passes + self.histogram_threads // 32 * stages
        macros = (
            f"#define WIDTH {plan.width}\n#define PASSES {passes}\n#define THREADS {self.histogram_threads}\n{shape}"
        )
        histogram = source(*HISTOGRAMS, before=macros)
        sets = f"#define SETS {int(plan.sets)}\n" + "#define DISTURBED 1\n" * (plan.limits.random_strength > 0.0)
        sets += "#define EXTRA_TREES 1\n" * plan.limits.extra_trees
        sets += "#define INTERACTIONS 1\n" * (plan.limits.interactions is not None)
        sets += "#define BOUNDED 1\n" * plan.limits.bounded
        sets += "#define SOFT_THRESHOLD 1\n" * (plan.limits.reg_alpha > 0.0)
        sets += "#define SMOOTHED 1\n" * (plan.limits.path_smooth > 0.0)
        if plan.limits.symmetric:
            symmetric = source(*search, "splits/level.cuh", "splits/symmetric.cu", before=shape + sets)
            self.complete_histograms = kernel(symmetric, "complete_histograms", functions)
            self.evaluate_level = kernel(symmetric, "evaluate_level", functions)
        else:
            sets += "#define ONE_VALUE 1\n" * plan.limits.signed
            sets += f"#define GROUP {plan.searchers}\n"
            split = source(*search, *SPLITS, before=shape + sets)
            self.evaluate = kernel(split, "evaluate", functions)
        slot = {1: "u8", 2: "u16", 4: "i32"}[plan.slot_type.itemsize]
        partition = source(*ROUTES, before=f"{shared}#define SLOT {slot}\n#define SETS {int(plan.sets)}\n")
        self.root_histogram = kernel(histogram, "root_histogram", shared_limit=self.shared)
        self.list_histogram = kernel(histogram, "list_histogram", shared_limit=self.shared)
        self.route = kernel(partition, "route")
        self.route_and_add = kernel(partition, "route_and_add")
        self.settle_rows = kernel(partition, "settle_rows")
        self.finish_tree = kernel(partition, "finish_tree")
        sizes = None if self.tree_all_reduce is not None else ClusterPlan.of(plan, self.runtime)
        self.cluster = None if sizes is None else ClusterGrowth(self.runtime, sizes, plan, search)
        if self.tree_all_reduce is not None:
            self.finish_shared_lists = kernel(partition, "finish_shared_lists")

    @property
    def laid_out(self) -> dict[str, Array]:
        """Arguments of the kernel that draws the candidate features: see ``selection_of``."""
        return {
            "cells_of_tiles": self._cells_of_tiles, "selection": self.selection, "features": self.features,
            "places": self.places, "tiles": self.tiles, "tile_cells": self.tile_cells,
            "tile_columns": self.tile_columns,
        }  # fmt: skip

    @property
    def here(self) -> dict[str, Array]:
        """Further arguments of the kernels that choose splits, if the rows are sharded."""
        return {} if self.tree_all_reduce is None else {"here": self.tree_all_reduce.here}

    @cached_property
    def tried(self) -> Array:
        """(2 * most_slots,) NODE, as bytes: the nodes of leaf-wise growth, including speculative ones."""
        return empty_records(self.runtime, 2 * self.plan.most_slots, NODE)

    def compete(self, features: NDArray[np.int32], root: NDArray[np.uint32] | None = None) -> None:
        """Queue the upload of the candidate features, increasing, if they are not those on the device already.

        ``root`` (t, 8): the cuts by which the root may be split; the arena must be made for them. Not for use in a
        capture: if features change from round to round, call it before the graph is launched.
        """
        cuts = NO_CUTS if root is None else root
        if np.array_equal(features, self._features) and np.array_equal(cuts, self._root):
            return
        self._features, self._root, self.n_candidates = features.copy(), cuts.copy(), len(features)
        if self._uploads and self._uploads % UPLOADS == 0:
            self.runtime.wait()  # the buffer about to be written may still be read
        host = self._selection_on_host[self._uploads % UPLOADS]
        self._uploads += 1
        selection = selection_of(features, self._n_bins, self.plan)
        host[: len(selection)] = selection
        if root is not None:
            host[3] = len(selection)
            host[len(selection) : len(selection) + root.size] = root.view(np.int32).ravel()
        self.runtime.write(self._selection, host)


def selection_of(features: NDArray[np.int32], n_bins: NDArray[np.int32], plan: ArenaPlan) -> NDArray[np.int32]:
    """(4 + 2d + 4 tiles,) int32.

    Numbers of features and of tiles, the width of a tile, and 0; the features; the first cell of each in a histogram,
    in units of ``cells``; their tiles; the number of used cells of each tile; and its features, bit by bit, in two
    words.
    """
    d, width = plan.d, plan.width
    n, offset = len(features), HEAD + 2 * d
    tile_of, place = np.divmod(features, width)
    begins = np.ones(n, np.bool_)  # a feature is the first of its tile
    np.not_equal(tile_of[1:], tile_of[:-1], out=begins[1:])
    (starts,) = begins.nonzero()
    tiles = tile_of[starts]
    out = np.zeros(offset + 4 * plan.tiles, np.int32)
    out[:3] = n, len(tiles), width
    out[HEAD : HEAD + n] = features
    out[HEAD + d : HEAD + d + n] = (begins.cumsum() - 1) * width + place
    out[offset : offset + len(tiles)] = tiles
    out[offset + plan.tiles : offset + plan.tiles + len(tiles)] = cells_of_tiles(n_bins, plan)[tiles]
    columns = np.bitwise_or.reduceat(np.uint64(1) << place.astype(np.uint64), starts)
    out[offset + 2 * plan.tiles : offset + 2 * (plan.tiles + len(tiles))] = columns.astype("<u8").view(np.int32)
    return out


def cells_of_tiles(n_bins: NDArray[np.int32], plan: ArenaPlan) -> NDArray[np.int32]:
    """(tiles,) int32 number of used cells of each tile of all features, in whole vectors of four."""
    used = np.maximum.reduceat(n_bins, np.arange(0, plan.d, plan.width)) + 1 if plan.d else np.zeros(1)
    return (used.astype(np.int32) + 3) & -4


def _rule(plan: ArenaPlan, draws: int, most_splits: int) -> NDArray[np.void]:
    limits, rule = plan.limits, np.zeros(1, RULE)
    for name in ("reg_lambda", "min_child_weight", "min_split_gain"):
        rule[name] = getattr(limits, name)
    rule["categories"] = limits.categories
    rule["reg_alpha"], rule["max_delta_step"] = limits.reg_alpha, limits.largest_value
    rule["path_smooth"] = limits.path_smooth
    rule["max_leaves"], rule["symmetric"] = plan.most_leaves, limits.symmetric
    rule["one_value"], rule["draws"], rule["most_splits"] = limits.signed, draws, most_splits
    rule["max_depth"] = min(limits.max_depth, 2**30)
    rule["min_samples_leaf"] = min(limits.min_samples_leaf, 2**30)
    return rule
