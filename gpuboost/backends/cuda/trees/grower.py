"""Growth of a tree on a device: whole levels per launch, without waiting for the host.

    root_histogram                       gradients to integers, sums of all rows
    for every level:
        evaluate                         sums -> best split of every node -> which are split, their children
        route                            rows to children, those of the smaller child listed
        list_histogram                   sums of the listed rows, but for the last level

Symmetric trees have complete_histograms and evaluate_level in place of evaluate. Leaf-wise growth repeats a level with
the nodes of the largest gains, until best-first growth over these nodes is complete, and then launches finish_tree.

The numbers of nodes, lines and rows that a launch passes to the next are in device memory, and grids are fixed, so
one recorded graph serves every tree. Deep trees are the exception: beyond STATIC_LEVELS the host reads whether anything
is left to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.inputs import RoundKey
from gpuboost.backends.cuda.trees.arena import Arena
from gpuboost.backends.cuda.trees.cluster_tree import ClusterGrowth
from gpuboost.backends.cuda.trees.subsets import Chosen
from gpuboost.backends.cuda.trees.tree import STATE, as_records
from gpuboost.types import Array, Limits

STATIC_LEVELS = 12  # up to here a level is launched without asking whether it has nodes
LEVEL, BEST_FIRST = 1, 2  # how ``evaluate`` chooses
EVALUATE_BLOCKS, ROUTE_BLOCKS = 3, 3  # for each multiprocessor
ROUTE_CHUNK = 2_048  # rows that a block of ``route`` takes at a time


class Tiles(Protocol):
    """The bins of n rows on the device in two layouts: tiles of rows, and columns. See ``bins``."""

    @property
    def rows(self) -> Array: ...  # uint8 [tile][n][width]
    @property
    def columns(self) -> Array: ...  # uint8 [feature][n]
    @property
    def n(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RowsToGrow:
    """A target on the device: the first ``state.m`` rows of everything. All but ``state`` may have room for more."""

    bins: Tiles
    g: Array  # (n,) float32
    h: Array  # (n,) float32
    multiplicity: Array | None  # (n,) int32
    state: Array  # (1,) STATE, as bytes: its target fields are written
    sampled: bool  # if so, leaf_of_row is not needed


class TreeOnDevice:
    """A tree to be grown. Methods queue launches and do not wait, unless their docstring says so."""

    def __init__(
        self,
        arena: Arena,
        target: RowsToGrow,
        output: int,
        gain_noise: dict[str, Any] | None = None,
        chosen: Chosen | None = None,
        cuts: RoundKey | None = None,
    ) -> None:
        """The candidates of the tree are in the arena (``Arena.compete``).

        gain_noise: fields of the kernels' ``GainNoise``, if gains are compared with noise. chosen: the features that
        compete in each node or level, if not all. cuts: the stream of their random cuts, if not all compete.
        """
        self.nodes, self.leaf_of_row = arena.nodes[output], arena.leaf_of_row[output]
        self.state = target.state
        self._arena, self._target, self._level = arena, target, 0
        self.waits = False  # the last level is still to be routed
        self._gain_noise = arena.no_gain_noise if gain_noise is None else gain_noise
        self._chosen = arena.all_compete if chosen is None else {"chosen": chosen.bits, "words": chosen.words}
        drawing = {} if cuts is None else cuts.arguments
        self._cuts = {f"cut_{name}": value for name, value in drawing.items()}
        self._grid = arena.plan.sm_count
        self._bins = target.bins.rows.reshape(-1).view(np.uint32)

    def grow(self, wait: bool = False) -> None:
        """Grow the whole tree: after the queued work, ``nodes``, ``leaf_of_row`` and ``state`` hold the finished tree.

        It waits to read whether anything is left to split: beyond STATIC_LEVELS, and in leaf-wise growth.
        wait: if only the last level is left to be routed, leave that to ``route_last`` or ``route_and_add``.
        """
        limits = self._arena.plan.limits
        if self._arena.cluster is not None:
            self._grow_in_cluster(self._arena.cluster)
        else:
            self._grow_by_kernels()
        if self.waits and not wait:
            self.route_last()
        all_levels = limits.growth != "leafwise" and limits.max_depth > 0 and self._level == limits.max_depth
        if not all_levels and not self._target.sampled:  # the last level's rows are settled as they are routed
            self._settle()

    def _grow_by_kernels(self) -> None:
        """Grow by launches for each level."""
        limits = self._arena.plan.limits
        self._begin()
        self._sum_root()
        if limits.growth != "leafwise":
            self._grow_levels()
        elif limits.max_leaves > 1:
            self._grow_best_first()
        self._arena.growing = self._level == 0  # without a search of splits, the sums of the root are not taken yet

    def _begin(self) -> None:
        """Clear the sums of lines, if the last tree ended before they were taken."""
        if self._arena.growing:
            self._arena.runtime.fill(self._arena.array["line_sums"], 0)
        self._arena.growing = True

    def _grow_levels(self) -> None:
        """Grow level by level, to ``max_depth``; the first levels without reading whether they have nodes."""
        max_depth = self._arena.plan.limits.max_depth
        while self._level < max_depth:
            if self._level > 0:
                self._build(0, self._most_lines())
            self._evaluate_all(self._most_lines(), LEVEL)
            self._level += 1
            last = self._level == max_depth
            self._end_level()
            if self._level >= STATIC_LEVELS and not last and not int(self._look()["n_lines"]):
                break

    def _grow_in_cluster(self, cluster: ClusterGrowth) -> None:
        """Grow all levels in one launch."""
        arena, a, multiplicity = self._arena, self._arena.array, self._target.multiplicity
        cluster.grow(
            self._target, multiplicity=arena.no_rows if multiplicity is None else multiplicity,
            selection=arena.selection, features=arena.features, kinds=arena.kinds, nodes=self.nodes, lines=a["lines"],
            routes=a["routes"], cursor=a["cursor"], node_of_slot=a["node_of_slot"], slot_of_row=a["slot_of_row"],
            rule=arena.rule, **self._chosen,
        )  # fmt: skip
        self._level = self.limits.max_depth
        self._end_level()

    def _end_level(self) -> None:
        """Route the rows of a level, but leave those of the last one to the verbs after the tree: ``leaf_update``."""
        last = self._level == self.limits.max_depth
        if last and not self._target.sampled:
            self.waits = True
        else:
            self._route(first=self._level == 1, last=last)

    def _grow_best_first(self) -> None:
        """Grow the tree of one split at a time, by passes over all nodes that may be part of it.

        After ``Arena.blind_passes`` this waits in every pass, to read whether anything is left to split.
        """
        arena, a = self._arena, self._arena.array
        self._evaluate_all(1, LEVEL)
        final, self.nodes, self._level = self.nodes, arena.tried, 1
        arena.runtime.copy(self.nodes[: len(final)], final)
        self._route(first=True, last=False)
        for before in range(arena.blind_passes):
            self._pass(arena.plan.lines_of(min(1 << before, arena.most_splits)))
        if arena.blind_passes < arena.plan.most_leaves - 1:
            while lines := int(self._look()["n_lines"]):  # 0 if no node is left to split
                self._pass(lines)
        arena.finish_tree(
            (self._grid,), (512,), state=self.state, tried=self.nodes, nodes=final, node_of_slot=a["node_of_slot"]
        )
        self.nodes = final

    def _pass(self, lines: int) -> None:
        """Search the splits of the last pass's children, of at most so many lines, and split the best."""
        self._build(0, lines)
        self._evaluate_all(lines, BEST_FIRST)
        self._route(first=False, last=False)

    def _settle(self) -> None:
        """Find the leaf of every row, once no node is left to split."""
        a = self._arena.array
        self._arena.settle_rows(
            self._blocks_of_rows, (512,),
            state=self.state, slot_of_row=a["slot_of_row"], node_of_slot=a["node_of_slot"],
            leaf_of_row=self.leaf_of_row,
        )  # fmt: skip

    def route_last(self) -> None:
        """Route the last level."""
        self.waits = False
        self._route(first=self._level == 1, last=True)

    def route_and_add(self, factor: Array, scores: Array, values: Array, **record: Any) -> None:
        """Route the last level, compute the leaf values, record the tree, and update the scores.

        For trees of at most NEAR_NODES nodes with leaf values from their own sums. record: arguments for its record.
        """
        self.waits = False
        self._arena.route_and_add(
            self._blocks_of_rows, (512,),
            **self._routing(first=self._level == 1), factor=factor, scores=scores, values=values, **record,
        )  # fmt: skip

    @property
    def limits(self) -> Limits:
        return self._arena.plan.limits

    @property
    def _blocks_of_rows(self) -> tuple[int]:
        """Grid of ``route`` and its like: two blocks for each chunk, of which two thirds may have rows."""
        chunks = -(-self._arena.plan.n // ROUTE_CHUNK)
        return (max(1, min(ROUTE_BLOCKS * self._grid, 2 * chunks)),)

    def _most_lines(self) -> int:
        """Maximum number of lines after the last step."""
        plan = self._arena.plan
        if self._level == 0:
            return 1
        if self._level >= STATIC_LEVELS:
            return int(self._look()["n_lines"])
        splits = min(1 << (self._level - 1), plan.most_leaves - 1)
        return max(1, splits if splits <= plan.slots else 2 * splits)

    def _look(self) -> NDArray[np.void]:
        """The state on the host. Waits for the work queued so far."""
        state: NDArray[np.void] = as_records(self._arena.runtime.download(self.state), STATE)[0]
        return state

    def _sum_root(self) -> None:
        arena, target, plan, a = self._arena, self._target, self._arena.plan, self._arena.array
        weighted = target.multiplicity is not None
        arena.root_histogram(
            (plan.blocks_of_lines(plan.n, 0),), (arena.histogram_threads,),
            bins=self._bins, n=target.bins.n, g=target.g, h=target.h,
            multiplicity=target.multiplicity if weighted else arena.no_rows, weighted=weighted,
            **self._tiles(), pairs=a["pairs"], block_sums=a["block_sums"], line_sums=arena.line_sums, state=self.state,
            nodes=self.nodes, lines=a["lines"], node_of_slot=a["node_of_slot"], rule=arena.rule,
            least=plan.least_rows, shared_mem=arena.shared,
        )  # fmt: skip
        if arena.tree_all_reduce is not None:
            arena.tree_all_reduce.init_root(arena, self.state, self.nodes)

    def _build(self, first: int, lines: int) -> None:
        """Build the histograms of one batch of lines, from ``first`` on."""
        arena, plan, a = self._arena, self._arena.plan, self._arena.array
        arena.list_histogram(
            (plan.blocks_of_lines(plan.n, min(lines - first, plan.batch)),), (arena.histogram_threads,),
            bins=self._bins, n=self._target.bins.n, list=a["list"], list_pairs=a["list_pairs"], **self._tiles(),
            lines=a["lines"], line_sums=arena.line_sums, state=self.state, first_line=first,
            last_line=first + plan.batch, least=plan.least_rows, shared_mem=arena.shared,
        )  # fmt: skip
        if arena.tree_all_reduce is not None:
            arena.tree_all_reduce.add_up(arena, min(lines - first, plan.batch))

    def _tiles(self) -> dict[str, Any]:
        """Kernels' arguments: the features that compete, by tiles."""
        arena = self._arena
        return {
            "selection": arena.selection, "tiles": arena.tiles, "tile_cells": arena.tile_cells,
            "tile_columns": arena.tile_columns,
        }  # fmt: skip

    def _evaluate_all(self, lines: int, choose: int) -> None:
        """Evaluate this many lines, the first batch of which is built, and choose the nodes to split."""
        batch = self._arena.plan.batch
        for first in range(0, lines, batch):
            if first:
                self._build(first, lines)
            self._evaluate(first, min(batch, lines - first), choose if first + batch >= lines else 0)
        if self._arena.plan.limits.symmetric:
            self._share()

    def _evaluate(self, first: int, lines: int, choose: int) -> None:
        arena, plan, a = self._arena, self._arena.plan, self._arena.array
        blocks = min(EVALUATE_BLOCKS * self._grid, lines * arena.n_candidates)  # at most one per group of warps
        grid = (max(1, blocks),)
        some = {"first_line": first, "last_line": first + plan.batch}
        if plan.limits.symmetric:
            tree = {"state": self.state, "nodes": self.nodes, "lines": a["lines"]}
            arena.complete_histograms(grid, (256,), line_sums=arena.line_sums, **self._histograms(), **tree, **some)
            return
        arena.evaluate(
            grid, (256,),
            line_sums=arena.line_sums, **self._histograms(), **self._choice(), arrived=a["arrived"], **some,
            choose=choose, **self._chosen, **arena.within, **arena.paths, **self._cuts,
        )  # fmt: skip

    def _share(self) -> None:
        """Find one split for the last level, whose histograms are complete."""
        arena = self._arena
        grid = (min(arena.plan.d, EVALUATE_BLOCKS * self._grid),)
        arena.evaluate_level(
            grid, (256,),
            **self._histograms(), **self._choice(), **self._chosen, **arena.within, **arena.paths, **self._cuts,
        )  # fmt: skip

    def _histograms(self) -> dict[str, Any]:
        """Kernels' arguments: histograms, and the features that compete."""
        arena, a = self._arena, self._arena.array
        return {
            "sums": a["histograms"], "counts": a["counts"], "selection": arena.selection, "features": arena.features,
            "places": arena.places, "kinds": arena.kinds,
        }  # fmt: skip

    def _choice(self) -> dict[str, Any]:
        """Kernels' arguments: how splits are chosen, and what choosing them writes to."""
        arena, a = self._arena, self._arena.array
        return {
            "candidates": a["candidates"], "state": self.state, "nodes": self.nodes, "lines": a["lines"],
            "routes": a["routes"], "cursor": a["cursor"], "node_of_slot": a["node_of_slot"], "rule": arena.rule,
            "slots": arena.plan.slots, **self._gain_noise, **arena.here,
        }  # fmt: skip

    def _route(self, *, first: bool, last: bool) -> None:
        arena, a = self._arena, self._arena.array
        arena.route(
            self._blocks_of_rows, (512,),
            **self._routing(first), pairs=a["pairs"], list=a["list"], list_pairs=a["list_pairs"], last=last,
            leaves=not self._target.sampled,
        )  # fmt: skip
        if arena.tree_all_reduce is not None:
            arena.tree_all_reduce.finish_lists(arena, self.state, self.nodes)

    def _routing(self, first: bool) -> dict[str, Any]:
        """Kernels' arguments: rows, the nodes that they are in, and the lists of the next step."""
        arena, a = self._arena, self._arena.array
        return {
            "columns": self._target.bins.columns, "n": self._target.bins.n, "slot_of_row": a["slot_of_row"],
            "leaf_of_row": self.leaf_of_row, "routes": a["routes"], "node_of_slot": a["node_of_slot"],
            "cursor": a["cursor"], "state": self.state, "nodes": self.nodes, "lines": a["lines"], "rule": arena.rule,
            "first": first,
        }  # fmt: skip
