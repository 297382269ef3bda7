"""Split search of a growing tree on the CPU: threads divide the features, over all new nodes.

New pairs (p, 3) int64: a node whose histogram was summed, its sibling or -1, and their parent.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.trees.histograms import Histograms
from gpuboost.backends.cpu.trees.interactions import InteractionPaths, lines_of
from gpuboost.backends.cpu.trees.layout import NO_LONGS, Layout, SortedColumns, even
from gpuboost.backends.cpu.trees.monotone import Bounds
from gpuboost.backends.cpu.trees.nodes import NodeTable
from gpuboost.backends.cpu.trees.partition import RowsByNode
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.numerics.feature_subsets import features_of
from gpuboost.backends.numerics.forced_splits import ForcedCut
from gpuboost.backends.numerics.interactions import PathRule
from gpuboost.backends.numerics.monotone import of_features
from gpuboost.backends.numerics.split_costs import charge
from gpuboost.kernels.common import nodes as table
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.kernels.common.records import Criterion, NodeRules, Splits
from gpuboost.kernels.shared_splits import level as levels
from gpuboost.kernels.shared_splits import search as shared_search
from gpuboost.kernels.splits import columns, extra_trees, random_strength, split
from gpuboost.kernels.splits.gain import NOISE, SMOOTHING
from gpuboost.kernels.splits.packed_split import MOST_RIDGE
from gpuboost.keys import Key
from gpuboost.types import Array, Candidates, Cuts, Limits, Noise

CELLS_PER_THREAD = 32_768  # below this many cells to search a thread is not worth waking
ROWS_PER_H = 4  # its place in the rule
NO_CUTS, NO_FEATURES = np.empty((0, 8), np.uint32), np.empty((0, 0), np.bool_)
NO_GAINS, NO_SPLITS, NO_SETS = np.empty((0, 0)), np.empty((0, 0, 4), np.int64), np.empty((0, 0, 8), np.uint32)
NO_WORDS_OF_CUTS, NO_VALUES = np.empty((0, 0), np.int64), np.empty(0)


def words_of(cuts: Key | None, sums: Any, features: NDArray[np.int32]) -> NDArray[np.int64]:
    """(lines, t) int64 random words, one for the cut of each feature in each node; (0, 0) if all cuts compete.

    sums: (lines, 2) of the nodes.
    """
    if cuts is None:
        return NO_WORDS_OF_CUTS
    words = np.empty((len(sums), len(features)), np.int64)
    extra_trees.draw_words(np.asarray(sums, np.int64), features, *cuts.words, words)
    return words


def words_of_noise(noise: Noise) -> NDArray[np.uint32]:
    """(1, 1, words) uint32: deviation, table and stream of the noise on gains, for ``NodeRules``."""
    numbers = np.concatenate([[noise.deviation], TABLE.ravel()])
    return np.concatenate([np.array(noise.key.words, np.uint32), numbers.view(np.uint32)]).reshape(1, 1, -1)


def _sums_of(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(lines, 2): sums of g and of h of these rows of the node table, in C order, or kernels are compiled anew."""
    return np.ascontiguousarray(nodes[:, [table.SUM_G, table.SUM_H]])


@lru_cache(maxsize=16)
def node_streams(stream: int, count: int, *, by_level: bool) -> NDArray[np.int64]:
    """(count,) int64: ``Key.stream`` of ``Candidates.node_key`` of the first nodes, or levels, of a tree."""
    one = np.zeros(1, np.int32)
    candidates = Candidates(one, by_node=(1, Key(0, stream, 0)), by_level=by_level)
    return np.array([candidates.node_key(place, place).stream for place in range(count)], np.int64)


def no_splits(layout: Layout, pairs: int) -> Splits:
    """Memory for the splits of both nodes of this many pairs: no gains yet."""
    t = len(layout.features)
    left_sets = np.empty((2 * pairs, t if layout.some_categorical else 0, 8), np.uint32)
    return Splits(np.zeros((2 * pairs, t)), np.empty((2 * pairs, t, 4), np.int64), left_sets)


class Search:
    """The rule that chooses splits. ``nodes`` and ``by_column`` find the splits of the new nodes.

    ``plain``: ``best_cut`` suffices for all nodes, so small data need not wait for compilation of the general kernel.
    ``counts_rows``: histograms have numbers of rows, too.
    """

    def __init__(
        self, layout: Layout, cuts: Cuts, limits: Limits, candidates: Candidates, output: int,
        units: NDArray[np.float64], all_packed: bool, pool: ThreadPool,
    ) -> None:  # fmt: skip
        """units (2,): value of one unit of g and of h, which the caller may write before ``begin``.

        all_packed: every node's histogram is packed.
        """
        self.root = NO_CUTS if candidates.root is None else candidates.root
        self._candidates = candidates
        self.gain_noise, self._cuts = candidates.gain_noise(output), candidates.random_cuts(output)
        self.units, self._layout, self._limits, self._pool = units, layout, limits, pool
        split_limits = limits.reg_lambda, limits.min_child_weight, limits.min_split_gain, limits.min_samples_leaf
        held = limits.reg_alpha, limits.largest_value, 0.0
        rule = np.array([*split_limits, 1.0, float(limits.signed), *limits.categories, *held], np.float64)
        self.criterion, self._cuts_of_all = Criterion(units, rule, self.root), cuts
        self._quick = all_packed and not limits.signed and len(self.root) == 0
        self.counts_rows = limits.min_samples_leaf > 1
        self._of_gains = candidates.weights is None and candidates.costs is None
        self._path_rule = None if limits.interactions is None else PathRule.of_features(limits.interactions, cuts)
        self._of_features = self._rules_of_features()
        self.begin(1.0, 0.0)

    def begin(self, rows_per_h: float, smoothing: float) -> None:
        """Begin a tree, with units of its own.

        rows_per_h: rows per unit of h in the whole tree; smoothing: ``Limits.smoothing`` of the whole tree.
        """
        limits, rule, features = self._limits, self.criterion.rule, self._layout.features
        rule[ROWS_PER_H], rule[SMOOTHING], self._rows_per_h = rows_per_h, smoothing, rows_per_h
        self._packed = self._quick and limits.reg_lambda < MOST_RIDGE * self.units[1]
        self.plain = self._packed and not limits.bounded and not self.counts_rows and self._cuts is None
        self.bounds = self._paths = None
        if limits.bounded:
            self.bounds = Bounds(self._cuts_of_all, features, limits, self.units, smoothing)
        if self._path_rule is not None:
            self._paths = InteractionPaths(self._path_rule, features)

    def draw_by(self, candidates: Candidates, output: int) -> None:
        """Draw from the streams of such candidates, which are otherwise the same."""
        self._candidates, self._cuts = candidates, candidates.random_cuts(output)
        self.gain_noise = candidates.gain_noise(output)

    def searchers(self, pairs: int) -> int:
        """Number of threads to search this many new pairs."""
        parts = self._pool.n_parts(self._layout.n_cells * 2 * pairs, CELLS_PER_THREAD)
        return min(parts, len(self._layout.features))

    @property
    def by_number(self) -> bool:
        """True if a node's features are drawn by its number, so that nodes must be numbered as they are split."""
        return self._candidates.by_node is not None and not self._candidates.by_level

    @property
    def independent(self) -> bool:
        """True if one kernel call can grow the tree, since no split depends on more than gains.

        For oblivious trees, not if a rule of ``is_general`` changes the gains.
        """
        return self._packed and self._of_gains and not (self._limits.symmetric and self.is_general)

    @property
    def is_general(self) -> bool:
        """True if nodes draw, have bounds or restricted paths, or count rows, as ``small_general_trees`` does."""
        draws = self._cuts is not None or self._candidates.by_node is not None or self.gain_noise is not None
        return draws or self.counts_rows or self.bounds is not None or self._path_rule is not None

    def rules(self, most_nodes: int) -> NodeRules:
        """Streams from which the nodes of a tree of up to so many draw, and rules of their values and features."""
        cuts = NO_LONGS if self._cuts is None else np.array(self._cuts.words, np.int64)
        candidates, features = self._candidates, NO_LONGS
        if candidates.by_node is not None:
            count, key = candidates.by_node
            levels = self._limits.max_depth + 1 if candidates.by_level else most_nodes
            streams = node_streams(key.stream, min(levels, most_nodes), by_level=candidates.by_level)
            *seed, iteration, _ = key.words
            features = np.concatenate([[count, candidates.by_level, *seed, iteration], streams])
        bounds = NO_GAINS if self.bounds is None else self.bounds.with_room(most_nodes)
        noise = NO_SETS if self.gain_noise is None else words_of_noise(self.gain_noise)
        return NodeRules(cuts, features, bounds, self._of_features, noise)

    def _rules_of_features(self) -> NDArray[np.int64]:
        """``NodeRules.of_features``."""
        limits, rule = self._limits, self._path_rule
        if rule is None and not limits.bounded:
            return NO_SPLITS
        directions = of_features(limits.directions, self._cuts_of_all)
        return np.vstack([directions, *([] if rule is None else lines_of(rule))])[None]

    @property
    def some_features(self) -> bool:
        """True if not all features compete for each node."""
        return self._candidates.by_node is not None or self._paths is not None

    @property
    def follows_paths(self) -> bool:
        """True if the search of a node depends on the splits above it, or on its number."""
        return self.some_features or self.bounds is not None

    def nodes(self, tree: NodeTable, histograms: Histograms, new_pairs: NDArray[np.int64]) -> None:
        """Find the split of each new node, or the one split of a symmetric tree's level."""
        (self.shared if self._limits.symmetric else self.each)(tree, histograms, new_pairs)

    def each(self, tree: NodeTable, histograms: Histograms, new_pairs: NDArray[np.int64]) -> None:
        """Find the split of each new node by itself."""
        layout, t, parts = self._layout, len(self._layout.features), self.searchers(len(new_pairs))
        by_node = self.competing(tree, new_pairs, new_pairs[:, :2].ravel())
        kinds, general = layout.kinds_if_any, None if self.plain else True
        results = no_splits(layout, len(new_pairs))
        bounds = [0, t] if parts == 1 else even(layout.starts, parts)
        arrays = layout.arrays, histograms.arrays, self.criterion, results
        of_layout, of_nodes, criterion, best_splits = map(tuple, arrays)
        sums = _sums_of(tree.node[new_pairs[:, :2].ravel()])
        words = words_of(self._cuts, sums, layout.features)
        search_features = split.search if self.bounds is None else self.bounds.search_below(new_pairs, tree.node)

        def search(part: int) -> None:
            search_features(
                of_layout, kinds, new_pairs, histograms.shared, tree.node, of_nodes, criterion, bounds[part],
                bounds[part + 1], general, by_node, words, best_splits,
            )  # fmt: skip

        self._pool.run_parts(parts, search)
        self._charge(results.gains, sums[:, 1])
        self._disturb_gains(results.gains, sums)
        split.pick(new_pairs, tuple(tree.arrays), of_layout, best_splits, histograms.slots)

    def shared(self, tree: NodeTable, histograms: Histograms, new_pairs: NDArray[np.int64]) -> None:
        """Find the one split that all new nodes share."""
        layout, t = self._layout, len(self._layout.features)
        level = np.empty(2 * len(new_pairs), np.int64)
        level = level[: levels.level_of(new_pairs, tree.node, histograms.slots, level)]
        may = self.competing(tree, new_pairs, level[:1]).ravel()  # all nodes of the level have one path
        sums = np.array([[tree.node[v, table.DEPTH], 0] for v in level[:1]], np.int64).reshape(-1, 2)
        words = words_of(self._cuts, sums, layout.features).ravel()
        gains, cuts = np.zeros(t), np.empty((t, 3), np.int64)
        values = NO_VALUES if self.bounds is None else self.bounds.values_of(new_pairs, tree.node)
        kinds = layout.kinds_if_any
        left_sets = np.empty((0 if kinds is None else t, 8), np.uint32)
        parts = self.searchers(len(new_pairs))
        bounds = [0, t] if parts == 1 else even(layout.starts, parts)
        of_layout, of_nodes, criterion = map(tuple, (layout.arrays, histograms.arrays, self.criterion))

        def search(part: int) -> None:
            shared_search.search(
                of_layout, kinds, new_pairs, histograms.shared, level, tree.node, of_nodes, criterion, bounds[part],
                bounds[part + 1], may, words, gains, cuts, left_sets, values,
            )  # fmt: skip

        self._pool.run_parts(parts, search)
        if len(level):
            self._charge(gains[None], tree.node[level, table.SUM_H].sum(keepdims=True))
            self._disturb_gains(gains[None], sums)
        levels.share_best(
            level, kinds, tuple(tree.arrays), of_layout, of_nodes, criterion, gains, cuts, left_sets, values
        )

    def competing(self, tree: NodeTable, new_pairs: NDArray[np.int64], lines: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(lines, t): the features by which each of these nodes may be split; (0, 0) for all."""
        drawn = self._drawn_for(lines, tree.node)
        if self._paths is None:
            return drawn
        self._paths.lengthen(new_pairs, tree.node)
        allowed = self._paths.allowed(lines, tree.node)
        return drawn & allowed if len(drawn) else allowed

    def force(self, tree: NodeTable, histograms: Histograms, v: int, cut: ForcedCut) -> bool:
        """Give an open node this split, if it gains; False if it keeps its own."""
        layout, node = self._layout, tree.node[v : v + 1].copy()
        position = int(np.searchsorted(layout.features, cut.feature))
        if node[0, table.STATE] != table.OPEN or layout.features[position : position + 1].tolist() != [cut.feature]:
            return False
        node[0, table.STATE], results = table.NEW, no_splits(layout, 1)
        bits = np.zeros((len(layout.features), 8), np.uint32)
        bits[position, cut.bin >> 5] = 1 << (cut.bin & 31)
        summed = layout.arrays._replace(defaults=np.full(len(layout.features), -1, np.int64))  # and complete
        arrays = histograms.arrays, Criterion(self.units, self.criterion.rule, bits)
        search = split.search if self.bounds is None else self.bounds.search_of(v)
        search(
            tuple(summed), layout.kinds_if_any, np.array([[0, -1, 0]]), np.empty((1, 0), np.int64), node,
            *map(tuple, arrays), position, position + 1, True, NO_FEATURES, NO_WORDS_OF_CUTS, tuple(results),
        )  # fmt: skip
        if not results.gains[0, position] > 0.0:
            return False
        tree.gain[v], tree.node[v, table.FEATURE] = results.gains[0, position], cut.feature
        tree.node[v, [table.BIN, table.MISSING_LEFT, table.LEFT_G, table.LEFT_H]] = results.splits[0, position]
        return True

    def by_column(
        self,
        tree: NodeTable,
        stored: SortedColumns,
        rows: RowsByNode,
        packed: NDArray[np.int64],
        new_pairs: NDArray[np.int64],
    ) -> None:
        """``each`` without histograms: every column is read once for all new nodes."""
        node, layout, size = tree.node, self._layout, self._pool.size
        lines = np.sort(new_pairs[:, :2].ravel())
        lines = lines[lines >= 0]
        lines = lines[node[lines, table.STATE] == table.NEW]
        line_of_row = np.empty(rows.bins.shape[0], np.int32)
        columns.lines_of_rows(node, lines, rows.rows, line_of_row)
        of_lines = node[lines]
        totals = np.column_stack([_sums_of(of_lines), of_lines[:, table.END] - of_lines[:, table.BEGIN]])
        parents = (totals[:, 0] * self.units[0]) ** 2 / (totals[:, 1] * self.units[1] + self._limits.reg_lambda)
        entries = stored.start[layout.features + 1] - stored.start[layout.features]
        bounds = even(np.concatenate([[0], np.cumsum(entries)]), size)
        gains = np.tile(np.maximum(self._limits.min_split_gain, NOISE * parents), (size, 1))
        splits, by_node = np.full((size, len(lines), 4), -1, np.int64), self.competing(tree, new_pairs, lines)

        def search(part: int) -> None:
            columns.search(
                stored.start, stored.row, stored.bin, stored.default, layout.features, bounds[part], bounds[part + 1],
                packed, line_of_row, totals, self.units, self.criterion.rule, by_node, gains[part], splits[part],
            )  # fmt: skip

        self._pool.run(search)
        columns.pick(lines, node, tree.gain, layout.features, gains, splits)

    def _drawn_for(self, lines: NDArray[np.int64], node: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(c, t): the features drawn for each node of ``lines`` (c,), in which -1 stands for none; (0, 0) for all."""
        candidates, t = self._candidates, len(self._layout.features)
        if candidates.by_node is None:
            return NO_FEATURES
        may = np.zeros((len(lines), t), np.bool_)
        for line, v in enumerate(lines.tolist()):
            if v >= 0:
                may[line, features_of(candidates, v, int(node[v, table.DEPTH]))] = True
        return may

    def _charge(self, gains: Array, h: Array) -> None:
        """Take the costs of splits from the gains; do nothing without costs."""
        charge(gains, h, self._layout.features, self._candidates.costs, self._rows_per_h, self._limits.min_split_gain)

    def _disturb_gains(self, gains: Array, sums: Array) -> None:
        """Keep in each line of gains only that of the feature that wins with noise; do nothing without noise."""
        if self.gain_noise is not None:
            words = self.gain_noise.key.words
            random_strength.keep_winners(gains, sums, self._layout.features, self.gain_noise.deviation, TABLE, *words)
