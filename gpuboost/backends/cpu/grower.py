"""Growth of a tree on the CPU: its nodes, its rows in their order, the histograms in use, and the search.

Every step is one kernel over a list of nodes. Threads divide the rows (histograms, partition) or the features (split
search). Sums are integers and searches are reduced in feature order, so the tree does not depend on the number of
threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.compilation.background import BACKGROUND, levels_kind
from gpuboost.backends.cpu.compilation.warm_up import HELPER
from gpuboost.backends.cpu.trees import best_first
from gpuboost.backends.cpu.trees import histograms as cpu_histograms
from gpuboost.backends.cpu.trees.forced_splits import force
from gpuboost.backends.cpu.trees.histograms import Histograms, free_slots
from gpuboost.backends.cpu.trees.layout import SortedColumns
from gpuboost.backends.cpu.trees.nodes import NodeTable, least_rows
from gpuboost.backends.cpu.trees.partition import RowsByNode
from gpuboost.backends.cpu.trees.small_trees import PLAIN, Levels
from gpuboost.backends.cpu.trees.split_search import Search
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics.forced_splits import cut_of
from gpuboost.kernels.common.records import ChildLimits, NodeRules
from gpuboost.kernels.growth import partition
from gpuboost.kernels.splits.competing import DIRECTIONS
from gpuboost.records import dataclass
from gpuboost.types import Array, Candidates, Cuts, Limits, Nodes, Structure, Target

ITERATIONS = 2, 4, 2  # places of the iteration in ``cuts``, ``features`` and ``noise`` of ``NodeRules``


@dataclass(frozen=True, slots=True, eq=False)
class OneCall:
    """A kernel's arguments for trees that one call grows from root to leaves, one after another."""

    kernel: Any  # ``Levels.kernel``
    arguments: tuple[Any, ...]  # once the table has a root
    free_slots: NDArray[np.int64]  # the stack of slots that a tree begins with
    least_rows: int  # rows that a root needs to be split
    work: int  # bins to sum and cells to search in a tree, at most
    tree: NodeTable
    streams: tuple[tuple[NDArray[np.int64], int, int], ...]  # of nodes: where their iteration stands, and its value

    @property
    def most(self) -> int:
        """Number of nodes that a tree may have."""
        return len(self.tree.node)

    @property
    def is_categorical(self) -> bool:
        """True if a feature that competes is categorical."""
        return self.arguments[5] is not None

    @property
    def directions(self) -> NDArray[np.int64]:
        """(d,) the direction of each feature, if leaf values have bounds."""
        directions: NDArray[np.int64] = NodeRules(*self.arguments[-1]).of_features[0, DIRECTIONS]
        return directions

    def of_finish(self, leaf_of_row: Array, fields: tuple[Array, ...], sums: tuple[Array, ...]) -> tuple[Any, ...]:
        """Arguments of ``finished.finish`` for a tree of one node."""
        limits, nodes, _, columns, rows, _, criterion, _ = self.arguments[8:]
        return columns, rows[4], nodes, 1, limits[1], criterion[0], leaf_of_row, fields, sums

    def differs(self, outputs: int) -> bool:
        """True if there are several outputs, and the streams of cuts or noise differ between their trees."""
        rules = NodeRules(*self.arguments[-1])
        return outputs > 1 and (len(rules.cuts) > 0 or len(rules.noise) > 0)

    def begin(self, rounds: int) -> None:
        """Prepare streams for the next call of the kernel, and let the next ``TreeGrower.grow`` clear the whole table.

        rounds: from the one whose streams the arguments were made for to the first of the call.
        """
        self.tree.size = len(self.tree.node)
        for stream, place, iteration in self.streams:
            stream[place] = (iteration + rounds) & 0x7FFF_FFFF


class TreeGrower:
    """A growing tree, and the memory of its growth, in which one tree after another may grow.

    packed: g and h of the rows as integers, by the bins' row numbers; weight: sum of the rows' multiplicities.
    by_column: the columns to search without histograms, or None.
    """

    def __init__(
        self,
        rows: RowsByNode,
        packed: NDArray[np.int64],
        weight: int,
        by_column: SortedColumns | None,
        cuts: Cuts,
        limits: Limits,
        candidates: Candidates,
        output: int,
        workspace: Workspace,
    ) -> None:
        self._limits, self._units, self._by_column, self.packed = limits, np.ones(2), by_column, packed
        self._rows, self._tree, self._workspace = rows, NodeTable(limits, len(rows)), workspace
        self._weight, self._forced = weight, cut_of(limits.forced, cuts)
        of_rows = len(rows) <= cpu_histograms.PACKED_ROWS, rows.pool
        self._search = Search(rows.layout, cuts, limits, candidates, output, self._units, *of_rows)
        self._most = len(self._tree.node)
        self._levels: Levels | None = None
        if by_column is None:
            self._histograms = Histograms(rows, packed, limits, self._most, cpu_histograms.PACKED_ROWS, workspace)

    def grow(self, target: Target, output: int, totals: tuple[int, int], units: tuple[float, float]) -> Structure:
        """The finished tree. The leaves of rows are not computed if the tree was grown from a sample.

        totals, units: sums of g and h, as integers, and the value of one unit of each.
        """
        self._begin(totals, units)
        search, leaf_wise = self._search, self._limits.growth == "leafwise"
        if self._forced is not None:
            self._find_splits()
            force(self._forced, self._tree, self._histograms, search, self._limits.max_leaves, self._split_and_search)
        levels = self._small_levels()
        if levels is not None:
            self._grow_small_levels(levels)
        elif leaf_wise and not search.by_number and self._forced is None:
            self._grow_best_first()
        else:
            self._find_splits()
            while self._split_best(1 if leaf_wise else self._limits.max_leaves):
                self._find_splits()
        every = target.rows is None  # the leaves of a sample's rows are found later, with those of all rows
        nodes, leaf_of_row, sums = self._finished(wanted=every)
        leaf_sums = sums if target.gives_leaf_sums else None
        leaf_of_all = leaf_of_row if every else None
        return Structure(nodes, output, target.version, leaf_of_all, leaf_sums, weight=self._weight)

    def draw_by(self, candidates: Candidates, output: int) -> None:
        """Take the streams of a tree's cuts, noise and nodes' features from such candidates, which are the same."""
        self._search.draw_by(candidates, output)

    def in_one_call(self) -> OneCall | None:
        """The arguments of the kernel that grows such trees; None if a tree takes several calls or several threads."""
        limits, levels = self._limits, self._small_levels()
        if levels is None or len(self._tree.node) != self._most:
            return None
        arguments, slots = levels.of_root(), self._histograms.all_slots
        if arguments is None or slots is None or self._rows.settlers() > 1:
            return None
        layout = self._rows.layout
        times = min(limits.max_depth, limits.max_leaves.bit_length())  # the smaller node of a pair alone is summed
        work = len(self._rows) * layout.entries_per_row * times + layout.n_cells * self._most
        rules = NodeRules(*arguments[-1])  # or a Team, of which these arrays are empty
        of_nodes = zip((rules.cuts, rules.features, rules.noise.ravel()), ITERATIONS, strict=True)
        streams = tuple((stream, place, int(stream[place])) for stream, place in of_nodes if len(stream))
        return OneCall(levels.kernel, arguments, slots, least_rows(limits), work, self._tree, streams)

    @property
    def rows(self) -> NDArray[np.int32]:
        """(m,) the rows in the order of the nodes; in the order of the bins, before a tree grows."""
        return self._rows.rows

    def _begin(self, totals: tuple[int, int], units: tuple[float, float]) -> None:
        """Make the tree its root."""
        limits, rows, h, self._units[:] = self._limits, len(self._rows), totals[1], units
        self._tree.clear()
        can = can_split_root(limits, rows, h, units[1])
        self._new_pairs = self._tree.init_root(rows, totals, can_split=can)
        self._search.begin(self._weight / max(h, 1), limits.smoothing(h * units[1], self._weight))
        if self._by_column is None:
            self._histograms.clear()
        else:
            self._slots = free_slots(0, self._most)

    def _finished(self, *, wanted: bool) -> tuple[Nodes, Array, tuple[Array, Array]]:
        """The nodes, the leaf of every row if they are wanted, and G and H of every node."""
        tree, rows, depth = self._tree, self._rows, self._limits.max_depth
        if rows.settlers() > 1:
            leaf_of_row = rows.settle(tree, depth, wanted=wanted)
            return tree.finished(self._units, rows.layout), leaf_of_row, tree.sums(self._units)
        leaf_of_row = rows.room_for_leaves(wanted=wanted)
        nodes, sums = tree.finish(rows.columns(), rows.rows, self._units, depth, leaf_of_row)
        return nodes, leaf_of_row, sums

    def _small_levels(self) -> Levels | None:
        """Levels of this tree that are grown in one call; None if it is grown in other ways."""
        if self._by_column is not None or self._forced is not None or not self._search.independent:
            return None
        if self._levels is None:
            of_tree = self._tree, self._rows, self._histograms, self._search, self._limits
            self._levels = Levels(*of_tree, least_rows(self._limits), self._workspace)
        levels = self._levels
        if self._limits.growth != "leafwise" and levels.variant == PLAIN:
            return levels
        categorical = self._rows.layout.some_categorical
        kind = levels_kind(levels.variant, categorical=categorical)
        return levels if levels.suit and BACKGROUND.request(kind, levels.is_compiled) else None

    def _grow_small_levels(self, levels: Levels) -> None:
        """Grow several levels in one call, as long as no step is large and there is room for their histograms."""
        HELPER.wait()
        finished = not len(self._new_pairs)
        while not finished and (len(self._new_pairs) or self._split_best(levels.at_once)):
            if len(self._new_pairs):
                self._new_pairs, finished = levels.grow(self._new_pairs)

    def _grow_best_first(self) -> None:
        """Split the leaf of the largest gain, and speculatively those that are likely to be next."""
        tree, max_splits, splits = self._tree, self._limits.max_leaves - 1, 0
        while splits < max_splits:
            self._find_splits()
            slots = self._histograms.slots if self._by_column is None else None
            chosen, splits = best_first.next_splits(tree, max_splits, slots)
            if not len(chosen):
                break
            self._split_nodes(chosen)
        best_first.keep_first(tree, splits)

    def _find_splits(self) -> None:
        """Sum the smaller node of every new pair, subtract for the other one, and find the best split of each."""
        new_pairs, self._new_pairs = self._new_pairs, self._new_pairs[:0]
        if not len(new_pairs):
            return
        if self._by_column is not None:
            self._search.by_column(self._tree, self._by_column, self._rows, self.packed, new_pairs)
            return
        self._histograms.build(self._tree, new_pairs)
        self._search.nodes(self._tree, self._histograms, new_pairs)

    def _split_best(self, n_nodes: int) -> bool:
        """Split the ``n_nodes`` open nodes of the largest gains, as far as there is room. False if there is none."""
        chosen = chosen_splits(self._tree, self._limits, n_nodes)
        if len(chosen):
            self._split_nodes(chosen)
        return len(chosen) > 0

    def _split_nodes(self, chosen: NDArray[np.int64]) -> None:
        """Sort the rows of these nodes and make their children."""
        tree, limits = self._tree, self._limits
        n_deeper = partition.count_above(tree.node, chosen, limits.max_depth - 1)
        slots = self._slots_for(n_deeper)
        tree.lengthen(tree.size + 2 * len(chosen))
        self._new_pairs = self._rows.split(tree, chosen, n_deeper, slots, child_limits(limits, self._units[1]))

    def _split_and_search(self, chosen: NDArray[np.int64]) -> None:
        self._split_nodes(chosen)
        self._find_splits()

    def _slots_for(self, pairs: int) -> NDArray[np.int64]:
        """The stack of free slots, with at least ``pairs`` of them."""
        if self._by_column is not None:
            return self._slots
        self._histograms.make_more_room(pairs)
        return self._histograms.slots


def can_split_root(limits: Limits, n_rows: int, h: int, unit_h: float) -> bool:
    """True if a split of ``n_rows`` rows with curvature ``h`` can satisfy the limits."""
    heavy = h > 0 and h * unit_h >= 2.0 * limits.min_child_weight
    return limits.max_depth > 0 and n_rows >= least_rows(limits) and heavy


def child_limits(limits: Limits, unit_h: float) -> ChildLimits:
    """Conditions for a child to be split: see ``partition.add_children``."""
    return ChildLimits(limits.max_depth, least_rows(limits), limits.min_child_weight, unit_h)


def chosen_splits(tree: NodeTable, limits: Limits, most: int) -> NDArray[np.int64]:
    """The ``most`` open nodes of the largest gains, to be split next; the whole level of a symmetric tree, or none."""
    room = limits.max_leaves - (tree.size + 1) // 2
    count = partition.choose(
        tree.node, tree.size, tree.gain, tree.size if limits.symmetric else min(most, room), tree.chosen
    )
    return tree.chosen[: 0 if count > room else count]  # a level that several nodes share is split as a whole
