"""A tree while it grows on the CPU: the table of its nodes, its rows in node order, and the histograms in use.

Every step is one kernel over a list of nodes. Work is parted by rows (histograms, partition) or by features (split
search), never by what a thread happens to get: sums are integers and searches are reduced in feature order, so the
number of threads leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu_ahead import Ahead
from gpuboost.backends.cpu_monotone import Bounds
from gpuboost.backends.cpu_nodes import nodes_of
from gpuboost.backends.layout import NO_BYTES, NO_INTS, NO_LONGS, NO_ROWS, Columns, Layout, even
from gpuboost.backends.subsets import subset
from gpuboost.backends.team import Team, share
from gpuboost.backends.workspace import Workspace
from gpuboost.kernels import columns, contest, histogram, levels, partition, shared_split, split
from gpuboost.kernels import nodes as table
from gpuboost.kernels.normal_table import TABLE
from gpuboost.types import Array, Bins, Candidates, Cuts, DenseBins, Limits, Nodes

ROWS_PER_THREAD = 32_768  # below this many (row, entry / 8) pairs a thread is not worth waking,
SORTED_PER_THREAD = 32_768  # nor below so many rows to sort,
CELLS_PER_THREAD = 8_192  # nor below so many cells to search
FIRST_SLOTS = 32  # histograms there is room for at first: a tree of depth 6 needs no more
EVERY_ROW = 1 << 40
NO_WORDS = np.empty(0, np.uint32)
NO_CUTS, NO_FEATURES = np.empty((0, 8), np.uint32), np.empty((0, 0), np.bool_)
NARROW_ROWS = histogram.TILE  # nodes of up to so many rows have narrow histograms


def free_slots(first: int, end: int) -> NDArray[np.int64]:
    """A stack of slots first .. end - 1, the lowest on top: its height, and then the slots from the bottom."""
    return np.concatenate([[end - first], np.arange(end - 1, first - 1, -1), np.zeros(first + 1)]).astype(np.int64)


class CpuFrontier:
    """See the protocol's Frontier. ``rows`` (m,) int32 are the target's rows as the bins number them.

    Of dense bins the columns may number them otherwise: if ``drawn`` is not empty, row k is drawn[k] there.
    """

    def __init__(
        self,
        bins: Bins,
        cuts: Cuts,
        layout: Layout,
        by_column: Columns | None,
        laid_out: Array | None,
        rows: NDArray[np.int32],
        drawn: NDArray[np.int32],
        packed: NDArray[np.int64],
        weight: int,
        totals: tuple[int, int],
        units: tuple[float, float],
        limits: Limits,
        output: int,
        team: Team,
        workspace: Workspace,
        candidates: Candidates,
    ) -> None:
        self._root = NO_CUTS if candidates.root is None else candidates.root
        self._by_node, self._node_key = candidates.by_node, candidates.node_key
        self._lots = candidates.lots(output)
        self.output, self.n_leaves, self.workspace = output, 1, workspace
        self._bins, self._layout, self._limits, self._team = bins, layout, limits, team
        self._by_column, self._laid_out, self._drawn = by_column, laid_out, drawn
        self._kinds, self._n_bins = layout.kinds_of_all, layout.n_bins_of_all
        self._rows, self._scratch_rows = rows, workspace.array("scratch rows", rows.shape, rows.dtype)
        self._packed, self._units = packed, np.array(units)
        self._bounds = None  # there are none without constraints
        if limits.directions is not None:
            self._bounds = Bounds(limits.directions, cuts, layout.features, limits, self._units)
        rows_per_h = weight / max(totals[1], 1)
        own = limits.reg_lambda, limits.min_child_weight, limits.min_split_gain, limits.min_samples_leaf
        self._rule = np.array([*own, rows_per_h, float(limits.signed)], np.float64)
        # Rows that a node needs to be split. Where several share a split, one heavy row is as good as two light ones.
        self._least_rows = 0 if limits.symmetric and limits.min_samples_leaf == 1 else 2 * limits.min_samples_leaf
        most_nodes = 2 * min(limits.max_leaves, 2 ** min(limits.max_depth, 62), max(len(rows), 1)) - 1
        self._node = np.zeros((most_nodes, table.COLUMNS), np.int64)
        self._gain = np.zeros(most_nodes)
        self._left_set = np.zeros((most_nodes, 8), np.uint32)
        self._chosen = np.empty(most_nodes, np.int64)
        self._n_nodes = 1
        self._ahead: Ahead | None = None
        self._sow_root(totals)
        self._shared = np.full((1, team.size), -1, np.int64)
        self._lines_of_eight = (layout.entries_per_row + 7) // 8
        if by_column is not None:
            self._slots = free_slots(0, most_nodes)
        else:
            wanted = max(FIRST_SLOTS, workspace.room("histograms") // max(2 * layout.n_cells, 1))
            self._make_room(min(wanted, most_nodes))  # a leaf each, and as many again for splits ahead of their turn
        self._waiting = False  # whether the fresh pairs' histograms and search are left to ``split``
        self._levels_ahead = 0  # split already, but not asked for yet
        self._goes_on = self._is_simple()  # then both may be put off

    def _make_room(self, n_slots: int) -> None:
        """Histograms for so many nodes at once, and what threads need beside them. Pages are taken when first used."""
        limits, cells, threads = self._limits, self._layout.n_cells, self._team.size
        self._narrow_rows = NARROW_ROWS
        self._histograms = self.workspace.array("histograms", (n_slots, 2 * cells), np.int64)
        self._counts = np.empty((n_slots, cells) if limits.min_samples_leaf > 1 else (1, 0), np.int32)
        self._scratch = np.zeros((threads, cells), np.int64)
        self._spare = np.empty((threads, 2 * cells if threads > 1 else 0), np.int64)
        self._slots = free_slots(1, n_slots)  # the root has slot 0

    def _make_more_room(self, wanted: int) -> None:
        """See to it that so many slots are free."""
        free = int(self._slots[0])
        if self._by_column is not None or free >= wanted:
            return
        old = len(self._histograms)
        new = max(2 * old, old + wanted - free)
        self._histograms = np.concatenate(
            [self._histograms, np.empty((new - old, self._histograms.shape[1]), np.int64)]
        )
        self.workspace.keep("histograms", self._histograms)
        if self._counts.shape[1]:
            self._counts = np.concatenate([self._counts, np.empty((new - old, self._counts.shape[1]), np.int32)])
        more = free_slots(old, new)
        self._slots = np.concatenate([[free + new - old], self._slots[1 : free + 1], more[1:]])

    def _lengthen_table(self, wanted: int) -> None:
        """More nodes than limits and rows say are there only where leaves can be empty, or splits before their turn."""
        more = max(wanted - len(self._node), 0)
        if more:
            more = max(more, len(self._node))
            self._node = np.concatenate([self._node, np.zeros((more, table.COLUMNS), np.int64)])
            self._gain = np.concatenate([self._gain, np.zeros(more)])
            self._left_set = np.concatenate([self._left_set, np.zeros((more, 8), np.uint32)])
            self._chosen = np.empty(len(self._node), np.int64)

    def _sow_root(self, totals: tuple[int, int]) -> None:
        root, limits = self._node[0], self._limits
        root[table.END] = len(self._rows)
        root[table.FEATURE] = -1
        root[table.SUM_G], root[table.SUM_H] = totals
        heavy = totals[1] > 0 and totals[1] * self._units[1] >= 2.0 * limits.min_child_weight
        can = limits.max_depth > 0 and len(self._rows) >= self._least_rows and heavy
        root[table.STATE] = table.FRESH if can else table.CLOSED
        self._fresh = np.array([[0, -1, 0]] if can else [], np.int64).reshape(-1, 3)

    def build_histograms(self) -> None:
        """Sum the smaller node of every fresh pair. The siblings follow in ``seek_splits``."""
        if not len(self._fresh) or self._by_column is not None or self._levels_ahead:
            return
        if self._goes_on:
            self._waiting = True
        else:
            self._sum_rows()

    def _sum_rows(self) -> None:
        fresh, layout, node = self._fresh, self._layout, self._node
        total, parts = self._summers()
        self._shared = shared = np.empty((len(fresh), parts if parts > 1 else 0), np.int64)
        shared[:] = -1

        def sum_rows(part: int) -> None:
            if part >= parts:
                return
            first, last = share(total, part, parts)
            at = histogram.build(
                layout.rows, layout.features, layout.starts, layout.row_start, layout.cells, self._packed, self._rows,
                node, fresh, self._narrow_rows, first, last, self._scratch[part], self._histograms, self._spare[part],
            )  # fmt: skip
            if at >= 0:
                shared[at, part] = part

        self._run(parts, sum_rows)
        if self._limits.min_samples_leaf > 1:
            self._count_rows()

    def seek_splits(self) -> None:
        """Complete the histograms of every fresh pair and find the best split of each of its nodes."""
        if not len(self._fresh) or self._levels_ahead:
            return
        if self._by_column is not None:
            self._seek_by_column(self._by_column)
        elif self._limits.symmetric:
            self._seek_shared()
        elif not self._waiting:
            self._seek_each()

    def _summers(self) -> tuple[int, int]:
        """Rows to sum for the fresh pairs, and how many threads are to do it."""
        total = self._rows_in(self._fresh[:, 0])
        return total, self._parts(total * self._lines_of_eight, ROWS_PER_THREAD)

    def _searchers(self) -> int:
        """How many threads are to search the fresh pairs."""
        parts = self._parts(self._layout.n_cells * 2 * len(self._fresh), CELLS_PER_THREAD)
        return min(parts, len(self._layout.features))

    def _seek_each(self) -> None:
        """A split for each fresh node by itself."""
        fresh, layout, parts = self._fresh, self._layout, self._searchers()
        t = len(layout.features)
        root, by_node = self._root, NO_FEATURES if self._by_node is None else self._drawn_for(fresh[:, :2].ravel())
        gains, found = np.zeros((2 * len(fresh), t)), np.empty((2 * len(fresh), t, 4), np.int64)
        kinds, general = layout.kinds if layout.some_categorical else None, None if self._is_plain() else True
        left_sets = np.empty((2 * len(fresh), 0 if kinds is None else t, 8), np.uint32)
        bounds = [0, t] if parts == 1 else even(layout.starts, parts)
        search_features = split.search if self._bounds is None else self._bounds.search_below(fresh, self._node)

        def search(part: int) -> None:
            if part < parts:
                search_features(
                    self._histograms, self._counts, self._spare, self._shared, fresh, self._node, layout.starts,
                    layout.n_bins, kinds, layout.defaults, self._units, self._rule, self._narrow_rows,
                    bounds[part], bounds[part + 1], general, root, by_node, gains, found, left_sets,
                )  # fmt: skip

        self._run(parts, search)
        if self._lots is not None:
            self._draw_lots(gains, self._node[fresh[:, :2].ravel()][:, [table.SUM_G, table.SUM_H]])
        split.pick(
            fresh, self._node, self._gain, self._left_set, layout.features, layout.kinds, gains, found, left_sets,
            self._slots,
        )  # fmt: skip
        self._fresh = fresh[:0]

    def _is_simple(self) -> bool:
        """Whether ``levels.grow`` will do: small data, and no node that is to wait for others or for random numbers."""
        apart = self._by_column is None and self._by_node is None and self._lots is None
        return apart and not self._limits.symmetric and self._is_plain()

    def _is_plain(self) -> bool:
        """Whether ``best_cut`` will do for all nodes: small data need not wait for the kernel of the other cases."""
        limits, quick = self._limits, split.MOST_RIDGE * self._units[1]
        narrow = len(self._rows) <= self._narrow_rows and limits.reg_lambda < quick and self._bounds is None
        return narrow and limits.min_samples_leaf == 1 and not limits.signed and len(self._root) == 0

    def _drawn_for(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(nodes, t): the features that each of them may be split by; (0, 0) for all."""
        if self._by_node is None:
            return NO_FEATURES
        count, t = self._by_node[0], len(self._layout.features)
        may = np.zeros((len(nodes), t), np.bool_)
        for line, v in enumerate(nodes.tolist()):
            may[line, subset(count, t, self._node_key(v))] = True
        return may

    def _draw_lots(self, gains: Array, sums: Array) -> None:
        """Of each line of gains, leave only the feature's that wins with noise; nothing without."""
        if self._lots is not None:
            words = self._lots.key.words
            contest.keep_winners(gains, sums, self._layout.features, self._lots.deviation, TABLE, *words)

    def _seek_shared(self) -> None:
        """The same for one split that all fresh nodes share."""
        fresh, layout, t = self._fresh, self._layout, len(self._layout.features)
        level = np.empty(2 * len(fresh), np.int64)
        level = level[: shared_split.level_of(fresh, self._node, self._slots, level)]
        gains, found = np.zeros(t), np.empty((t, 3), np.int64)
        kinds = layout.kinds if layout.some_categorical else None
        left_sets = np.empty((0 if kinds is None else t, 8), np.uint32)
        parts = self._searchers()
        bounds = [0, t] if parts == 1 else even(layout.starts, parts)

        def search(part: int) -> None:
            if part < parts:
                shared_split.search(
                    self._histograms, self._counts, self._spare, self._shared, fresh, level, self._node, layout.starts,
                    layout.n_bins, kinds, layout.defaults, self._units, self._rule, self._narrow_rows,
                    bounds[part], bounds[part + 1], gains, found, left_sets,
                )  # fmt: skip

        self._run(parts, search)
        if len(level):
            self._draw_lots(gains[None], np.array([[self._node[level[0], table.DEPTH], 0]]))
        best = int(np.argmax(gains))  # the first of the largest
        if gains[best] > 0.0:
            shared_split.share(
                level, self._node, self._gain, self._left_set, self._histograms, self._counts, self._narrow_rows,
                int(layout.starts[best]), layout.n_bins[best], layout.features[best], found[best], self._units,
                self._rule, left_sets[best] if layout.kinds[best] else NO_WORDS,
            )  # fmt: skip
        else:
            shared_split.close(level, self._node)
        self._fresh = fresh[:0]

    def _seek_by_column(self, stored: Columns) -> None:
        """The same without histograms: every column is read once for all fresh nodes."""
        node, layout = self._node, self._layout
        fresh = np.sort(self._fresh[:, :2].ravel())
        fresh = fresh[fresh >= 0]
        fresh = fresh[node[fresh, table.STATE] == table.FRESH]
        line_of_row = np.empty(self._bins.shape[0], np.int32)
        columns.lines_of_rows(node, fresh, self._rows, line_of_row)
        totals = node[fresh][:, [table.SUM_G, table.SUM_H]]
        parents = (totals[:, 0] * self._units[0]) ** 2 / (totals[:, 1] * self._units[1] + self._limits.reg_lambda)
        entries = stored.start[layout.features + 1] - stored.start[layout.features]
        bounds = even(np.concatenate([[0], np.cumsum(entries)]), self._team.size)
        gains = np.tile(np.maximum(self._limits.min_split_gain, split.NOISE * parents), (self._team.size, 1))
        found, by_node = np.full((self._team.size, len(fresh), 4), -1, np.int64), self._drawn_for(fresh)

        def search(part: int) -> None:
            columns.search(
                stored.start, stored.row, stored.bin, stored.default, layout.features, bounds[part], bounds[part + 1],
                self._packed, line_of_row, totals, self._units, self._rule, by_node, gains[part], found[part],
            )  # fmt: skip

        self._team.run(search)
        columns.pick(fresh, node, self._gain, layout.features, gains, found)
        self._fresh = self._fresh[:0]

    def split(self, most: int | None) -> bool:
        """Split the best open nodes and send their rows on."""
        if self._levels_ahead:
            self._levels_ahead -= 1
            self._count_leaves()
            return True
        if self._waiting and most is None:
            if self._grow():
                return True
        elif self._waiting:
            self._waiting = False
            self._sum_rows()
            self._seek_each()
        room = self._limits.max_leaves - self.n_leaves
        # Nodes that draw their own features do so by number, which no node has before its turn.
        if most == 1 and self._by_node is None and not self._limits.symmetric:
            return room > 0 and self._split_next()
        most = room if most is None else min(most, room)
        symmetric, node = self._limits.symmetric, self._node
        count = partition.choose(node, self._n_nodes, self._gain, self._n_nodes if symmetric else most, self._chosen)
        if count == 0 or (symmetric and count > room):  # a level is split as a whole
            return False
        self._split_nodes(self._chosen[:count])
        self.n_leaves += count
        return True

    def _grow(self) -> bool:
        """Split this level and those after it, as far as no step is large; False if there was nothing to do."""
        layout, limits, fresh, team = self._layout, self._limits, self._fresh, self._team
        self._waiting, self._ends = False, np.empty(len(self._node), np.int64)
        left = np.empty((len(self._node), 3), np.int64)
        least_rows = -(-2 * ROWS_PER_THREAD // self._lines_of_eight) if team.size > 1 else EVERY_ROW
        least_nodes = -(-2 * CELLS_PER_THREAD // layout.n_cells) if team.size > 1 else EVERY_ROW
        total, summers = self._summers()
        searchers, step, none = self._searchers(), levels.BUILD, np.empty((0, 0))
        results = none, np.empty((0, 0, 4), np.int64), np.empty((0, 0, 8), np.uint32)
        shared = np.empty((len(fresh), summers if summers > 1 else 0), np.int64)
        given = (
            self._n_nodes, fresh, shared, self._node, self._gain, self._left_set, layout.rows, layout.features,
            layout.starts, layout.row_start, layout.cells, self._packed, self._rows, self._narrow_rows, self._scratch,
            self._histograms, self._spare, self._counts, layout.n_bins, layout.kinds,
            layout.kinds if layout.some_categorical else None, layout.defaults, self._units, self._rule, self._root,
            NO_FEATURES, self._slots, *self._columns(), self._n_bins, self._kinds, self._scratch_rows, self._chosen,
            limits.max_leaves, limits.max_depth, self._least_rows, least_rows, least_nodes, self._ends, left,
        )  # fmt: skip
        if summers > 1 or searchers > 1:
            step, shared[:] = levels.SEARCH, -1

            def sum_rows(part: int) -> None:
                if part < summers:
                    own = share(total, part, summers) if summers > 1 else (0, len(self._rows))
                    at, _, _ = levels.grow(levels.BUILD, levels.SEARCH, part, *own, *results, *given)
                    if at >= 0:
                        shared[at, part] = part

            self._run(summers, sum_rows)
        if searchers > 1:
            t, step = len(layout.features), levels.SPLIT
            results = (
                np.zeros((2 * len(fresh), t)), np.empty((2 * len(fresh), t, 4), np.int64),
                np.empty((2 * len(fresh), t if layout.some_categorical else 0, 8), np.uint32),
            )  # fmt: skip
            bounds = even(layout.starts, searchers).tolist()

            def search(part: int) -> None:
                if part < searchers:
                    levels.grow(levels.SEARCH, levels.SPLIT, part, *bounds[part : part + 2], *results, *given)

            self._run(searchers, search)
        self._n_nodes, pairs, made = levels.grow(step, levels.ON, 0, 0, len(self._rows), *results, *given)
        self._fresh = left[:pairs]
        self._levels_ahead, self._ends = max(made - 1, 0), self._ends[:made]
        self._count_leaves()
        return bool(made)

    def _count_leaves(self) -> None:
        """As many as there are after the levels that were asked for."""
        nodes = self._ends[-self._levels_ahead] if self._levels_ahead else self._n_nodes
        self.n_leaves = (int(nodes) + 1) // 2

    def _split_next(self) -> bool:
        """The open node that gains most; with it, some whose turn is still to come."""
        ahead = self._ahead = self._ahead or Ahead(self._limits.max_leaves - 1)
        made = self.n_leaves - 1
        if not ahead.knows(made):
            wanted = ahead.wanted(self._node, self._n_nodes, self._gain)
            if len(wanted):
                self._split_nodes(wanted)
            elif not ahead.knows(made):
                return False
        self.n_leaves += 1
        return True

    def _split_nodes(self, chosen: NDArray[np.int64]) -> None:
        """Sort the rows of these nodes and make their children."""
        count, limits = len(chosen), self._limits
        fresh = np.empty((count, 3), np.int64)
        n_deeper = partition.count_above(self._node, chosen, limits.max_depth - 1)
        self._make_more_room(n_deeper)
        self._lengthen_table(self._n_nodes + 2 * count)
        parts = self._parts(self._rows_in(chosen), SORTED_PER_THREAD)
        rule = limits.max_depth, self._least_rows, limits.min_child_weight, self._units[1]
        if parts == 1 or n_deeper == 0:
            self._n_nodes, pairs = partition.split_alone(
                *self._columns(), chosen, self._node, self._left_set, self._n_bins, self._kinds, self._rows,
                self._scratch_rows, self._n_nodes, self._slots, *rule, np.empty((1, count), np.int64), fresh,
            )  # fmt: skip
        else:
            counts = self._sort_rows(chosen, parts)
            self._n_nodes, pairs = partition.bear(chosen, self._node, self._n_nodes, self._slots, counts, *rule, fresh)
        self._fresh = fresh[:pairs]

    def _sort_rows(self, chosen: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
        """Rows of the chosen nodes in the order of their children; (threads, c) how many of each went left."""
        total = self._rows_in(chosen)
        counts = np.zeros((self._team.size, len(chosen)), np.int64)
        bounds = np.array([total * part // parts for part in range(parts + 1)], np.int64)

        def sort(part: int) -> None:
            if part < parts:
                partition.sort_stretches(
                    *self._columns(), chosen, self._node, self._left_set, self._n_bins, self._kinds, self._rows,
                    self._scratch_rows, bounds[part], bounds[part + 1], counts[part],
                )  # fmt: skip

        def copy(part: int) -> None:
            if part < parts:
                partition.copy_stretches(chosen, self._node, self._rows, self._scratch_rows, bounds, part, counts)

        self._run(parts, sort)
        self._run(parts, copy)
        return counts

    def settle(self, *, wanted: bool = True) -> NDArray[np.int32]:
        """(m,) the leaf of every row, (0,) if it is not wanted. Ends the growth.

        The last level's children learn here how many rows they have.
        """
        self._put_in_order()
        node = self._node[: self._n_nodes]
        settled = self._chosen[: partition.to_settle(node, self._n_nodes, self._limits.max_depth, self._chosen)]
        size = len(self._rows) if isinstance(self._bins, DenseBins) else self._bins.shape[0]
        out = np.empty(size if wanted else 0, np.int32)
        total = len(self._rows)
        parts = self._parts(total, SORTED_PER_THREAD)
        counts = np.zeros((parts, len(settled)), np.int64)

        def settle(part: int) -> None:
            if part < parts:
                partition.settle_rows(
                    *self._columns(), settled, node, self._left_set, self._n_bins, self._kinds, self._rows,
                    *share(total, part, parts), out, counts[part],
                )  # fmt: skip

        self._run(parts, settle)
        partition.bound_last_level(node, settled, counts)
        return out

    def _put_in_order(self) -> None:
        """Forget what was split ahead of a turn that never came."""
        if self._levels_ahead:
            self._n_nodes = 2 * self.n_leaves - 1
            levels.cut_back(self._node, self._n_nodes)
            self._levels_ahead = 0
        if self._ahead is not None:
            splits = self.n_leaves - 1
            self._node, self._gain, self._left_set = self._ahead.in_order(
                self._node, self._n_nodes, self._gain, self._left_set, splits
            )
            self._n_nodes = 2 * splits + 1

    def nodes(self) -> Nodes:
        """The finished tree, once its rows are settled."""
        v = self._n_nodes
        return nodes_of(self._node[:v], self._gain[:v], self._left_set[:v], self._units, self._layout)

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(v,) G and H of every node."""
        node = self._node[: self._n_nodes]
        return node[:, table.SUM_G] * self._units[0], node[:, table.SUM_H] * self._units[1]

    def _columns(self) -> tuple[Array, ...]:
        """What ``sort_stretches`` reads the split features' bins from."""
        bins = self._bins
        if isinstance(bins, DenseBins):
            return bins.columns, NO_BYTES, NO_LONGS, NO_INTS, NO_BYTES, NO_BYTES, self._drawn
        if self._laid_out is not None:
            return self._laid_out, NO_BYTES, NO_LONGS, NO_INTS, NO_BYTES, NO_BYTES, NO_INTS
        buffer = np.empty(bins.shape[0], np.uint8)
        return NO_ROWS, bins.default, bins.column_start, bins.row, bins.column_bin, buffer, NO_INTS

    def _count_rows(self) -> None:
        fresh, layout = self._fresh, self._layout
        if layout.rows.shape[1] == 0:
            histogram.count_sparse(
                layout.row_start, layout.cells, layout.starts, layout.defaults, self._rows, self._node, fresh,
                self._counts,
            )  # fmt: skip
            return
        t = len(layout.features)
        parts = min(self._parts(len(self._rows), ROWS_PER_THREAD), t)

        def count(part: int) -> None:
            if part < parts:
                histogram.count(
                    layout.rows, layout.features, layout.starts, self._rows, self._node, fresh,
                    *share(t, part, parts), self._counts,
                )  # fmt: skip

        self._run(parts, count)

    def _rows_in(self, some: NDArray[np.int64]) -> int:
        """How many rows these nodes hold. Who shares them with nobody need not know, and gets a number above it."""
        return EVERY_ROW if self._team.size == 1 else partition.rows_in(self._node, np.ascontiguousarray(some))

    def _parts(self, size: int, per_thread: int) -> int:
        return 1 if self._team.size == 1 else max(1, min(self._team.size, size // per_thread))

    def _run(self, parts: int, work: Callable[[int], None]) -> None:
        if parts == 1:
            work(0)
        else:
            self._team.run(work)
