"""The split search of a growing tree on the CPU: by features, a thread's each, over all fresh nodes.

Fresh pairs (p, 3) int64: a node whose histogram was summed, its sibling or -1, and their parent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.histograms import Histograms
from gpuboost.backends.cpu.layout import Columns, Layout, even
from gpuboost.backends.cpu.monotone import Bounds
from gpuboost.backends.cpu.nodes import NodeTable
from gpuboost.backends.cpu.partition import RowsByNode
from gpuboost.backends.host.threads import Team
from gpuboost.backends.numerics.feature_subsets import subset
from gpuboost.kernels.common import nodes as table
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.kernels.splits import columns, shared_split, split
from gpuboost.kernels.splits import random_strength as contest
from gpuboost.kernels.splits.gain import NOISE
from gpuboost.kernels.splits.narrow_split import MOST_RIDGE
from gpuboost.types import Array, Candidates, Cuts, Limits

CELLS_PER_THREAD = 32_768  # below so many cells to search a thread is not worth waking
NO_WORDS = np.empty(0, np.uint32)
NO_CUTS, NO_FEATURES = np.empty((0, 8), np.uint32), np.empty((0, 0), np.bool_)


class Search:
    """What decides about splits. ``nodes`` and ``by_column`` find those of the fresh nodes.

    ``plain``: whether ``best_cut`` will do for all nodes: small data need not wait for the kernel of the other cases.
    """

    def __init__(
        self, layout: Layout, cuts: Cuts, limits: Limits, candidates: Candidates, output: int,
        units: NDArray[np.float64], rows_per_h: float, all_narrow: bool, team: Team,
    ) -> None:  # fmt: skip
        """units (2,): value of one unit of g and of h; rows_per_h: rows for each unit of h in the whole tree.

        all_narrow: whether every node's histogram is.
        """
        self.root = NO_CUTS if candidates.root is None else candidates.root
        self.by_node, self._node_key = candidates.by_node, candidates.node_key
        self.lots = candidates.lots(output)
        self.units, self._layout, self._limits, self._team = units, layout, limits, team
        self._bounds = None  # there are none without constraints
        if limits.directions is not None:
            self._bounds = Bounds(limits.directions, cuts, layout.features, limits, units)
        own = limits.reg_lambda, limits.min_child_weight, limits.min_split_gain, limits.min_samples_leaf
        self.rule = np.array([*own, rows_per_h, float(limits.signed)], np.float64)
        quick = all_narrow and limits.reg_lambda < MOST_RIDGE * units[1] and self._bounds is None
        self.plain = quick and limits.min_samples_leaf == 1 and not limits.signed and len(self.root) == 0

    def searchers(self, pairs: int) -> int:
        """How many threads are to search so many fresh pairs."""
        parts = self._team.worth(self._layout.n_cells * 2 * pairs, CELLS_PER_THREAD)
        return min(parts, len(self._layout.features))

    @property
    def independent(self) -> bool:
        """Whether ``small_trees.grow`` will do: no node waits for others, or for random numbers."""
        return self.plain and self.by_node is None and self.lots is None and not self._limits.symmetric

    def nodes(self, tree: NodeTable, histograms: Histograms, fresh: NDArray[np.int64]) -> None:
        """A split for each fresh node: its own, or of a symmetric tree the one that all share."""
        (self.shared if self._limits.symmetric else self.each)(tree, histograms, fresh)

    def each(self, tree: NodeTable, histograms: Histograms, fresh: NDArray[np.int64]) -> None:
        """A split for each fresh node by itself."""
        layout, t, parts = self._layout, len(self._layout.features), self.searchers(len(fresh))
        by_node = NO_FEATURES if self.by_node is None else self._drawn_for(fresh[:, :2].ravel())
        gains, found = np.zeros((2 * len(fresh), t)), np.empty((2 * len(fresh), t, 4), np.int64)
        kinds, general = layout.kinds if layout.some_categorical else None, None if self.plain else True
        left_sets = np.empty((2 * len(fresh), 0 if kinds is None else t, 8), np.uint32)
        bounds = [0, t] if parts == 1 else even(layout.starts, parts)
        search_features = split.search if self._bounds is None else self._bounds.search_below(fresh, tree.node)

        def search(part: int) -> None:
            search_features(
                histograms.of, histograms.counts, histograms.spare, histograms.shared, fresh, tree.node, layout.starts,
                layout.n_bins, kinds, layout.defaults, self.units, self.rule, histograms.narrow_rows, bounds[part],
                bounds[part + 1], general, self.root, by_node, gains, found, left_sets,
            )  # fmt: skip

        self._team.run_parts(parts, search)
        if self.lots is not None:
            self._draw_lots(gains, tree.node[fresh[:, :2].ravel()][:, [table.SUM_G, table.SUM_H]])
        split.pick(
            fresh, tree.node, tree.gain, tree.left_set, layout.features, layout.kinds, gains, found, left_sets,
            histograms.slots,
        )  # fmt: skip

    def shared(self, tree: NodeTable, histograms: Histograms, fresh: NDArray[np.int64]) -> None:
        """The same for one split that all fresh nodes share."""
        layout, t = self._layout, len(self._layout.features)
        level = np.empty(2 * len(fresh), np.int64)
        level = level[: shared_split.level_of(fresh, tree.node, histograms.slots, level)]
        gains, found = np.zeros(t), np.empty((t, 3), np.int64)
        kinds = layout.kinds if layout.some_categorical else None
        left_sets = np.empty((0 if kinds is None else t, 8), np.uint32)
        parts = self.searchers(len(fresh))
        bounds = [0, t] if parts == 1 else even(layout.starts, parts)

        def search(part: int) -> None:
            shared_split.search(
                histograms.of, histograms.counts, histograms.spare, histograms.shared, fresh, level, tree.node,
                layout.starts, layout.n_bins, kinds, layout.defaults, self.units, self.rule, histograms.narrow_rows,
                bounds[part], bounds[part + 1], gains, found, left_sets,
            )  # fmt: skip

        self._team.run_parts(parts, search)
        if len(level):
            self._draw_lots(gains[None], np.array([[tree.node[level[0], table.DEPTH], 0]]))
        best = int(np.argmax(gains))  # the first of the largest
        if gains[best] > 0.0:
            shared_split.share(
                level, tree.node, tree.gain, tree.left_set, histograms.of, histograms.counts, histograms.narrow_rows,
                int(layout.starts[best]), layout.n_bins[best], layout.features[best], found[best], self.units,
                self.rule, left_sets[best] if layout.kinds[best] else NO_WORDS,
            )  # fmt: skip
        else:
            shared_split.close(level, tree.node)

    def by_column(
        self, tree: NodeTable, stored: Columns, rows: RowsByNode, packed: NDArray[np.int64], fresh: NDArray[np.int64]
    ) -> None:
        """As ``each``, without histograms: every column is read once for all fresh nodes."""
        node, layout, size = tree.node, self._layout, self._team.size
        lines = np.sort(fresh[:, :2].ravel())
        lines = lines[lines >= 0]
        lines = lines[node[lines, table.STATE] == table.FRESH]
        line_of_row = np.empty(rows.bins.shape[0], np.int32)
        columns.lines_of_rows(node, lines, rows.rows, line_of_row)
        totals = node[lines][:, [table.SUM_G, table.SUM_H]]
        parents = (totals[:, 0] * self.units[0]) ** 2 / (totals[:, 1] * self.units[1] + self._limits.reg_lambda)
        entries = stored.start[layout.features + 1] - stored.start[layout.features]
        bounds = even(np.concatenate([[0], np.cumsum(entries)]), size)
        gains = np.tile(np.maximum(self._limits.min_split_gain, NOISE * parents), (size, 1))
        found, by_node = np.full((size, len(lines), 4), -1, np.int64), self._drawn_for(lines)

        def search(part: int) -> None:
            columns.search(
                stored.start, stored.row, stored.bin, stored.default, layout.features, bounds[part], bounds[part + 1],
                packed, line_of_row, totals, self.units, self.rule, by_node, gains[part], found[part],
            )  # fmt: skip

        self._team.run(search)
        columns.pick(lines, node, tree.gain, layout.features, gains, found)

    def _drawn_for(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(nodes, t): the features that each of them may be split by; (0, 0) for all."""
        if self.by_node is None:
            return NO_FEATURES
        count, t = self.by_node[0], len(self._layout.features)
        may = np.zeros((len(nodes), t), np.bool_)
        for line, v in enumerate(nodes.tolist()):
            may[line, subset(count, t, self._node_key(v))] = True
        return may

    def _draw_lots(self, gains: Array, sums: Array) -> None:
        """Of each line of gains, leave only the feature's that wins with noise; nothing without."""
        if self.lots is not None:
            words = self.lots.key.words
            contest.keep_winners(gains, sums, self._layout.features, self.lots.deviation, TABLE, *words)
