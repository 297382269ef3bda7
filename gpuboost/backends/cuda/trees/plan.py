"""Plan of the growth of trees on a device, made without the device: array sizes, grids, schedule of batches.

Histograms take most of the memory. Those of nodes that may be split again are kept for subtraction, in as many slots as
``HISTOGRAM_BYTES`` allow; without a slot, both children of a node are built instead of the smaller one. Sums of lines,
the children that are built, are needed only until they are evaluated, in batches if ``LINE_BYTES`` require it. The tree
is the same in all cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpuboost.backends.cuda.trees.tree import LINE, NODE, ROUTE
from gpuboost.types import Cuts, Limits

HISTOGRAM_BYTES = 2 << 30
LINE_BYTES = 1 << 30
LEAST_ROWS = 1_024  # of a block's share, so that each of its threads has one
APART_ROWS, APART_BYTES, MOST_APART = 1 << 18, 1 << 29, 16  # up to which trees of several outputs grow at once
CANDIDATE_BYTES = 64
ROOT_SUMS = 2  # g and h, in front of the sums of lines: GPUs that share the rows add up all of them at once
ROWS_OF_THREAD = 4  # rows that a thread of ``route`` reads at once
WIDE_BYTES = 192 << 10  # of shared memory, for sums and counts of 64 features of 256 bins, and the rows on their way
BLIND_PASSES = 32  # of leaf-wise growth, which a graph may have
LINE_WORK = 1_024  # as in tree.cuh: rows that take as long as to begin and to end a histogram


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters that change the speed but not the tree."""

    histogram_bytes: int = HISTOGRAM_BYTES
    line_bytes: int = LINE_BYTES
    least_rows: int = LEAST_ROWS
    shares: int = 0  # of the rows that histograms are built of, each of a block; 0: one for each multiprocessor


class Size(Protocol):
    """Size of a device: multiprocessors, and bytes of shared memory that one block may have. See ``Runtime``."""

    sm_count: int
    block_memory: int


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """Sizes for one shape of data and limits of a tree.

    n rows, d features; ``width`` features per tile, ``cells`` bins per feature, ``tiles`` of candidates.
    """

    n: int
    d: int
    width: int
    cells: int
    tiles: int
    counts: bool  # rows are counted per bin
    sets: bool  # some feature is categorical
    limits: Limits
    most_leaves: int
    slots: int  # nodes whose histogram can be kept
    batch: int  # lines whose sums can be held at once
    shares: int
    least_rows: int
    sm_count: int

    @classmethod
    def of(
        cls, n: int, cuts: Cuts, limits: Limits, device: Size, candidates: int | None = None,
        tuning: Tuning = Tuning(), all_rows: int | None = None,
    ) -> ArenaPlan:  # fmt: skip
        """Plan for n rows of features with these bins, at most ``candidates`` of them per tree (None: all)."""
        d, n_bins, sm_count = cuts.n_features, cuts.n_bins, device.sm_count
        width = tile_width(d, device.block_memory)
        cells = next(size for size in (64, 128, 256) if size >= int(n_bins.max(initial=1)) + 1)
        tiles = min(-(-d // width), d if candidates is None else candidates) or 1
        counts = limits.min_samples_leaf > 1
        tile_bytes = tiles * width * cells
        most_leaves = max(1, min(limits.max_leaves, 2 ** min(limits.max_depth, 31)))
        if not limits.symmetric:  # where every leaf has a row
            most_leaves = max(1, min(most_leaves, n if all_rows is None else all_rows))
        wanted = min(2 ** max(0, min(limits.max_depth, 31) - 2), 2 * most_leaves)
        slots = max(1, min(wanted, tuning.histogram_bytes // (tile_bytes * (20 if counts else 16))))
        if limits.symmetric:  # the shared split of a level needs the histograms of all its nodes
            slots = min(2 ** max(0, min(limits.max_depth, 31) - 1), most_leaves)
        pairs = min(2 ** max(0, min(limits.max_depth, 31) - 2), most_leaves)
        lines = pairs if slots >= pairs else 2 * pairs
        if limits.growth == "leafwise":
            lines = max(lines, 2 * splits_of_pass(most_leaves))
        batch = max(1, min(lines, tuning.line_bytes // (tile_bytes * (24 if counts else 16))))
        return cls(
            n, d, width, cells, tiles, counts, bool(cuts.is_categorical.any()), limits, most_leaves, slots, batch,
            tuning.shares or sm_count, tuning.least_rows, sm_count,
        )  # fmt: skip

    @property
    def most_nodes(self) -> int:
        return 2 * self.most_leaves - 1

    @property
    def most_levels(self) -> int:
        """Maximum number of levels with nodes that are split."""
        return max(1, min(self.limits.max_depth, self.most_leaves - 1))

    @property
    def most_lines(self) -> int:
        """Number of children built in one step: two for each split if no histogram is kept."""
        return max(1, 2 * (self.most_leaves - 1))

    @property
    def most_slots(self) -> int:
        """Maximum number of leaves during growth, including speculative splits of leaf-wise growth."""
        return 2 * self.most_leaves

    def lines_of(self, splits: int) -> int:
        """Maximum number of children built for so many splits of leaf-wise growth."""
        return splits if self.slots >= self.most_slots else 2 * splits

    def blind_passes(self, most_splits: int, *, shared_rows: bool) -> int:
        """Passes of leaf-wise growth that are launched without reading whether nodes are left to split.

        Of few leaves all passes, as each makes one split for certain, so that a round can be a graph; those after the
        last split end at once (not timed on a GPU yet). Of many leaves the passes that no tree of so many does without.
        None where a pass may be several batches, or GPUs share the rows: they add up sums of all possible nodes.

        most_splits: as ``splits_of_pass``, or fewer.
        """
        if shared_rows or self.lines_of(most_splits) > self.batch:
            return 0
        if self.most_leaves - 1 <= BLIND_PASSES:
            return self.most_leaves - 1
        splits, passes = 1, 1  # the root is split before, and the last pass finds nothing to split
        while splits < self.most_leaves - 1:
            splits += min(most_splits, splits + 1)
            passes += 1
        return passes

    @property
    def slot_type(self) -> np.dtype[np.generic]:
        """Dtype of a slot number."""
        held = min(2 ** min(self.limits.max_depth, 31), self.most_slots)
        return np.dtype(np.uint8 if held <= 1 << 8 else np.uint16 if held <= 1 << 16 else np.int32)

    @property
    def searchers(self) -> int:
        """Threads that search one feature of a node: two warps for many bins that are not sorted or drawn, else one."""
        return 64 if self.cells == 256 and not self.sets and not self.limits.extra_trees else 32

    def arenas(self, outputs: int) -> int:
        """Number of arenas in which the trees of so many outputs grow: more than one where several grow at once.

        A tree of many rows keeps a device busy by itself.
        """
        if self.n > APART_ROWS:
            return 1
        rounds = max(-(-outputs // MOST_APART), -(-outputs * self.bytes() // APART_BYTES))
        return -(-outputs // rounds)

    def blocks_of_lines(self, rows: int, lines: int) -> int:
        """Blocks that build so many histograms of so many rows in all: as many as can have a share.

        Others would end at once, but they take their turn on the multiprocessors, which trainings in lock-step share.
        """
        work = (rows + lines * LINE_WORK) * self.tiles
        return max(1, min(self.shares, -(-work // self.least_rows)))

    def sizes(self) -> dict[str, tuple[int, np.dtype[np.generic]]]:
        """Length and dtype of every array that all outputs share."""
        tile, u32, i32, i64 = self.width * self.cells, np.dtype(np.uint32), np.dtype(np.int32), np.dtype(np.int64)
        counted, rows = 1 if self.counts else 0, -(-self.n // ROWS_OF_THREAD) * ROWS_OF_THREAD
        return {
            "pairs": (2 * rows, u32),
            "slot_of_row": (rows, self.slot_type),
            "list": (self.n, i32),
            "list_pairs": (2 * self.n, u32),
            "line_sums": (ROOT_SUMS + (2 + counted) * self.batch * self.tiles * tile, i64),
            "histograms": (2 * self.slots * self.tiles * tile, i64),
            "counts": (counted * self.slots * self.tiles * tile, i32),
            "candidates": (min(self.batch, self.most_lines) * 2 * self.d * CANDIDATE_BYTES // 8, i64),
            "arrived": (2 * min(self.batch, self.most_lines), u32),
            "block_sums": (2 * self.shares, i64),
            "node_of_slot": (self.most_slots, i32),
            "cursor": (self.most_lines, u32),
            "lines": (self.most_lines, LINE),
            "routes": (self.most_slots, ROUTE),
        }

    def bytes(self, outputs: int = 1) -> int:
        """Device memory of an arena in bytes, without data and gradients."""
        shared = sum(length * dtype.itemsize for length, dtype in self.sizes().values())
        return shared + 2 * self.most_slots * NODE.itemsize + outputs * (self.most_nodes * NODE.itemsize + 4 * self.n)


def splits_of_pass(most_leaves: int) -> int:
    """Maximum number of nodes that a pass of leaf-wise growth splits: the next one, and others speculatively."""
    return max(1, min(most_leaves - 1, max(8, most_leaves // 8)))


def tile_width(d: int, block_memory: int) -> int:
    """Features per tile: the smallest of 4, 8, 16 and 32 that holds all features; of more than 32 features, 32 or 64.

    Memory is read 64 bytes at a time, and lists of rows once per tile. So tiles have 64 features where blocks have room
    for their histograms (``block_memory`` bytes: those of compute capability 9.0 and 10.0) and padding does not grow by
    more than a tenth.
    """
    for width in (4, 8, 16, 32):
        if d <= width:
            return width
    tiles = -(-d // 32)
    return 64 if block_memory >= WIDE_BYTES and (tiles % 2 == 0 or tiles > 10) else 32


def bytes_of_bins(n: int, d: int, width: int) -> int:
    """Device memory of the bins of n rows of d features, in tiles of ``width``."""
    return n * (-(-d // width) * width + d)
