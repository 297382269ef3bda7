"""A tree of one split on the CPU: only the root is searched.

It needs no list of rows, no table of nodes and no further histograms, which would be most of the cost of a round with
few candidates. Dense columns are read from end to end; of sparse columns, the stored entries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.trees import histograms as cpu_histograms
from gpuboost.backends.cpu.trees import split_search as cpu_search
from gpuboost.backends.cpu.trees.layout import NO_BYTES, IndicatorBitmaps, SparseForms, even
from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics.feature_subsets import features_of
from gpuboost.backends.numerics.split_costs import charge
from gpuboost.kernels.common import fixed_point
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.kernels.common.records import HistogramLayout, Splits
from gpuboost.kernels.growth import stump
from gpuboost.kernels.histograms import column_sums
from gpuboost.kernels.splits import random_strength
from gpuboost.kernels.splits.packed_split import MOST_RIDGE
from gpuboost.types import Bins, Candidates, DenseBins, Limits, Nodes, SparseBins, Structure, Target, TrainingSet

CELLS_SUMMED_PER_THREAD = 262_144  # below this many values to add a thread is not worth waking,
ROUTED_PER_THREAD = 131_072  # nor below this many rows to turn to integers, or to route
ALL_FEATURES, NO_WORDS = np.empty((0, 0), np.bool_), np.empty(0, np.uint32)


def suits(limits: Limits) -> bool:
    """True if trees of these limits are stumps that this module grows."""
    alone = limits.max_depth == 1 and limits.max_leaves > 1
    return alone and limits.min_samples_leaf == 1 and not limits.symmetric


def by_columns(bins: Bins, bitmaps: IndicatorBitmaps | None, candidates: Candidates) -> bool:
    """True if histograms are summed by columns, not by rows: dense bins, few candidates, or columns with bitmaps."""
    if isinstance(bins, DenseBins) or bitmaps is None:
        return True
    if len(candidates.features) == bins.shape[1]:
        return bitmaps.use_bitmaps
    return bool(2 * stump.stored(bitmaps.cost, candidates.features) < len(bins.row))


class StumpGrower:
    """A stump fitted to all rows."""

    def __init__(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        sparse: SparseForms, scales: tuple[float, float], pool: ThreadPool, workspace: Workspace,
    ) -> None:  # fmt: skip
        gradients = target.gradients
        self._target, self._output, self._workspace = target, output, workspace
        self._data, self._sparse = data, sparse
        self._limits, self._candidates, self._pool = limits, candidates, pool
        self._units = 1.0 / scales[0], 1.0 / scales[1]
        m = cpu_sums.multiplicity_of(gradients)
        self._weight = int(m.sum()) if len(m) else data.n_rows
        self._rows = gradients.g[output], gradients.h[output], m, *scales
        self._is_packed = data.n_rows <= cpu_histograms.PACKED_ROWS
        self._found: tuple[int, int, list[int], float, NDArray[np.uint32]] | None = None
        self._lefts = 0

    def grow(self) -> Structure:
        """The finished tree."""
        self._sum_up()
        self._search()
        leaf_of_row = self._routed()
        sums = (self._sums(0), self._sums(1)) if self._target.gives_leaf_sums else None
        return Structure(self._nodes(), self._output, self._target.version, leaf_of_row, sums)

    def _sum_up(self) -> None:
        """Convert gradients to integers and sum the candidates' histograms."""
        cuts, features, t = self._data.cuts, self._candidates.features, len(self._candidates.features)
        bins, self._starts, self._n_bins = self._data.bins, np.empty(t + 1, np.uint64), np.empty(t, np.int32)
        self._kinds, self._defaults = np.empty(t, np.uint8), np.empty(t, np.int64)
        default = NO_BYTES if isinstance(bins, DenseBins) else bins.default
        self._some_sets = stump.lay_out(
            features, cuts.n_bins, cuts.is_categorical, default, self._starts, self._n_bins, self._kinds, self._defaults
        )
        n_cells = int(self._starts[-1])
        if isinstance(bins, DenseBins):
            where: tuple[Any, ...] = bins.columns, features, self._starts
            self._sum_rows(n_cells, self._data.n_rows * t, partial(column_sums.build, *self._rows, *where))
        elif self._sparse.by_row is not None:
            where, size = (self._sparse.by_row.row_start, self._sparse.by_row.cells), len(self._sparse.by_row.cells)
            self._sum_rows(n_cells, size, partial(column_sums.build_by_row, *self._rows, *where))
        elif self._sparse.bitmaps is not None:
            self._sum_columns(n_cells, bins, self._sparse.bitmaps)

    def _sum_rows(self, n_cells: int, size: int, build: Callable[..., None]) -> None:
        """Sum by stretches of the rows, each into its own histogram at first."""
        n, parts = self._data.n_rows, self._pool.n_parts(size, CELLS_SUMMED_PER_THREAD)
        packed = self._workspace.array("packed", (parts, min(n, column_sums.TILE)), np.int64)
        sums = self._workspace.array("histogram", (parts, 2 * n_cells), np.int64)
        totals = np.zeros((parts, cpu_sums.LINE), np.int64)

        def add(part: int) -> None:
            build(*share(n, part, parts), self._is_packed, packed[part], sums[part], totals[part])

        self._pool.run_parts(parts, add)
        if parts > 1:
            np.add.reduce(sums, axis=0, out=sums[0])
        self._histogram = sums[:1]
        self._add_up(totals)

    def _sum_columns(self, n_cells: int, bins: SparseBins, bitmaps: IndicatorBitmaps) -> None:
        """Convert all rows to integers first, since entries may refer to any row; then sum by ranges of features."""
        n, features, t = self._data.n_rows, self._candidates.features, len(self._candidates.features)
        packed = self._workspace.array("packed", (64 * bitmaps.words.shape[1],), np.int64)
        parts = self._pool.n_parts(n, ROUTED_PER_THREAD)
        totals = np.zeros((parts, cpu_sums.LINE), np.int64)

        def pack(part: int) -> None:
            fixed_point.pack(*self._rows, *share(n, part, parts), packed, totals[part])

        self._pool.run_parts(parts, pack)
        self._add_up(totals)
        self._histogram = self._workspace.array("histogram", (1, 2 * n_cells), np.int64)
        pieces, bounds = self._pool.n_parts(stump.stored(bitmaps.cost, features), CELLS_SUMMED_PER_THREAD), [0, t]
        if pieces > 1:
            ends = np.zeros(t + 1, np.int64)
            np.cumsum(bitmaps.cost[features], out=ends[1:])
            bounds = even(ends, pieces).tolist()

        def add(part: int) -> None:
            column_sums.build_by_entry(
                bins.column_start, bins.row, bins.column_bin, bitmaps.words, bitmaps.of, features, self._starts,
                packed, bounds[part], bounds[part + 1], self._is_packed, self._histogram[0],
            )  # fmt: skip

        self._pool.run_parts(pieces, add)

    def _add_up(self, totals: NDArray[np.int64]) -> None:
        """The sums of g and of h over all rows, from those of each thread."""
        parts = totals.tolist()
        self._totals = sum(part[0] for part in parts), sum(part[1] for part in parts)

    def _search(self) -> None:
        """Find the best split."""
        candidates, limits, t = self._candidates, self._limits, len(self._candidates.features)
        heavy = self._totals[1] > 0 and self._totals[1] * self._units[1] >= 2.0 * limits.min_child_weight
        if not heavy or self._data.n_rows < 2:
            return
        left_sets = np.empty((1, t if self._some_sets else 0, 8), np.uint32)
        results = Splits(np.zeros((1, t)), np.empty((1, t, 4), np.int64), left_sets)
        layout = HistogramLayout(candidates.features, self._starts, self._n_bins, self._kinds, self._defaults)
        data = (
            self._histogram, self._data.n_rows, (*self._totals, self._weight), tuple(layout),
            self._kinds if self._some_sets else None, self._units,
            limits.of_stump, limits.signed,
            cpu_histograms.PACKED_ROWS,
        )  # fmt: skip
        root = cpu_search.NO_CUTS if candidates.root is None else candidates.root
        general, by_node = None if self._is_plain() else True, self._drawn()
        words = cpu_search.words_of(candidates.random_cuts(self._output), [self._totals], candidates.features)
        parts = min(self._pool.n_parts(self._histogram.shape[1], cpu_search.CELLS_PER_THREAD), t)
        bounds = [0, t] if parts == 1 else even(self._starts, parts).tolist()
        best = [-1] * parts

        def search(part: int) -> None:
            features = bounds[part], bounds[part + 1]
            best[part] = stump.search_root(*data, *features, general, root, by_node, words, tuple(results))

        self._pool.run_parts(parts, search)
        of_rows = self._weight / max(self._totals[1], 1), limits.min_split_gain
        charge(results.gains, np.array(self._totals[1:]), candidates.features, candidates.costs, *of_rows)
        winner, gain_noise = best[0], candidates.gain_noise(self._output)
        if gain_noise is not None:
            sums = np.array([self._totals])
            random_strength.keep_winners(
                results.gains, sums, candidates.features, gain_noise.deviation, TABLE, *gain_noise.key.words
            )
        if candidates.chooses_by_more or parts > 1:
            winner = stump.best_of(results.gains[0], 0, t)
        if winner >= 0:
            left_set = left_sets[0, winner] if self._kinds[winner] else NO_WORDS
            feature = int(candidates.features[winner])
            gain, split = float(results.gains[0, winner]), results.splits[0, winner].tolist()
            self._found = winner, feature, split, gain, left_set

    def _is_plain(self) -> bool:
        """True if ``best_cut`` suffices in ``split.search``."""
        limits = self._limits
        every = self._candidates.root is None and self._candidates.cuts is None
        plain = self._is_packed and every and not limits.signed
        return plain and limits.reg_lambda < MOST_RIDGE * self._units[1]

    def _drawn(self) -> NDArray[np.bool_]:
        """(2, t): the features drawn for the root; (0, 0) for all."""
        if self._candidates.by_node is None:
            return ALL_FEATURES
        t = len(self._candidates.features)
        may = np.zeros((2, t), np.bool_)
        may[0, features_of(self._candidates, 0, 0)] = True
        return may

    def _routed(self) -> NDArray[np.int32]:
        """(n,) the leaf of every row. Sets the number of rows in each leaf."""
        n = self._data.n_rows
        if self._found is None:
            return np.zeros(n, np.int32)
        _, feature, (cut, missing_left, _, _), _, left_set = self._found
        bins, missing, out = self._data.bins, int(self._data.cuts.n_bins[feature]), np.empty(n, np.int32)
        if isinstance(bins, DenseBins):
            codes = bins.columns[feature]
        elif self._sparse.columns is not None:
            codes = self._sparse.columns[feature]
        else:
            entries = slice(bins.column_start[feature], bins.column_start[feature + 1])
            row, stored, default = bins.row[entries], bins.column_bin[entries], bins.default[feature]
            if not len(left_set):
                self._lefts = stump.route_entries(row, stored, default, cut, missing, missing_left == 1, out)
                return out
            codes = np.full(n, default, np.uint8)
            codes[row] = stored
        parts = self._pool.n_parts(n, ROUTED_PER_THREAD)
        lefts, how = [0] * parts, (cut, missing, missing_left == 1, left_set, len(left_set) > 0)

        def route(part: int) -> None:
            lefts[part] = stump.route(codes, *how, *share(n, part, parts), out)

        self._pool.run_parts(parts, route)
        self._lefts = sum(lefts)
        return out

    def _nodes(self) -> Nodes:
        """The finished tree, once its rows are settled."""
        n, cover = self._data.n_rows, self._sums(1)
        if self._found is None:
            none, nowhere = np.zeros(1, np.int32), np.full(1, -1, np.int32)
            rest = none, np.zeros(1, np.bool_), none, none, np.zeros(1), cover, np.array([n])
            return Nodes(nowhere, *rest, np.zeros((1, 8), np.uint32))
        position, feature, (cut, missing_left, _, _), gain, left_set = self._found
        sets = np.zeros((3, 8), np.uint32)
        if len(left_set):
            sets[0] = left_set
            missing = int(self._n_bins[position])  # growing needs the bit of missing values, later missing_left tells
            sets[0, missing >> 5] &= ~np.uint32(1 << (missing & 31))
        return Nodes(
            np.array([feature, -1, -1], np.int32),
            np.array([cut, 0, 0], np.int32),
            np.array([missing_left == 1, False, False]),
            np.array([stump.LEFT, 0, 0], np.int32),
            np.array([stump.RIGHT, 0, 0], np.int32),
            np.array([gain, 0.0, 0.0]),
            cover,
            np.array([n, self._lefts, n - self._lefts]),
            sets,
        )

    def _sums(self, which: int) -> NDArray[np.float64]:
        """Sums of g (``which`` 0) or of h (1) of every node."""
        total, unit = self._totals[which], self._units[which]
        if self._found is None:
            return np.array([total * unit])
        left = self._found[2][2 + which]
        return np.array([total * unit, left * unit, (total - left) * unit])
