"""A tree of one split on the CPU: ``CpuFrontier``'s verbs where the root is all there is to search.

No list of rows, no table of nodes, no room for other histograms: of what a round with few candidates costs, that would
be most. Dense columns are passed from end to end, of sparse ones the stored entries are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends import cpu_frontier
from gpuboost.backends.layout import NO_BYTES, NO_INTS, NO_LONGS, NO_ROWS, Layout, even
from gpuboost.backends.subsets import subset
from gpuboost.backends.team import Team, share
from gpuboost.backends.workspace import Workspace
from gpuboost.kernels import column_sums, contest, stump
from gpuboost.kernels.narrow_split import MOST_RIDGE
from gpuboost.kernels.normal_table import TABLE
from gpuboost.types import Array, Bins, Candidates, DenseBins, Limits, Nodes, TrainingSet

CELLS_SUMMED_PER_THREAD = 262_144  # below so many values to add a thread is not worth waking,
ROUTED_PER_THREAD = 131_072  # nor below so many rows to route
ALL_FEATURES = np.empty((0, 0), np.bool_)


def suits(limits: Limits) -> bool:
    """Whether trees of these limits are stumps as they are grown here."""
    alone = limits.max_depth == 1 and limits.max_leaves > 1
    return alone and limits.min_samples_leaf == 1 and not limits.symmetric


def by_columns(bins: Bins, candidates: Candidates) -> bool:
    """Whether columns are passed and not rows: of dense bins, or if few of the entries compete."""
    if isinstance(bins, DenseBins):
        return True
    if len(candidates.features) == bins.shape[1]:
        return False
    f = candidates.features
    return bool(2 * int((bins.column_start[f + 1] - bins.column_start[f]).sum()) < len(bins.row))


class CpuStump:
    """See the protocol's Frontier. ``by_row``: the layout to sum sparse rows by, if not their columns."""

    def __init__(
        self,
        data: TrainingSet,
        laid_out: Array | None,
        by_row: Layout | None,
        packed: NDArray[np.int64],
        totals: tuple[int, int],
        units: tuple[float, float],
        weight: int,
        limits: Limits,
        output: int,
        team: Team,
        workspace: Workspace,
        candidates: Candidates,
    ) -> None:
        self.output, self.workspace = output, workspace
        self._data, self._laid_out, self._by_row = data, laid_out, by_row
        self._packed, self._totals, self._units, self._limits = packed, totals, units, limits
        self._candidates, self._team = candidates, team
        self._rows_per_h = weight / max(totals[1], 1)
        heavy = totals[1] > 0 and totals[1] * units[1] >= 2.0 * limits.min_child_weight
        self._open = heavy and data.n_rows >= 2
        self._made: tuple[int, int, NDArray[np.int64], float, NDArray[np.uint32]] | None = None
        self._lefts, self._split = 0, False

    def build_histograms(self) -> None:
        """Sum what competes."""
        if not self._open:
            return
        data, cuts, features, t = self._data, self._data.cuts, self._candidates.features, len(self._candidates.features)
        self._starts, self._n_bins = np.empty(t + 1, np.uint64), np.empty(t, np.int32)
        self._kinds, self._defaults = np.empty(t, np.uint8), np.empty(t, np.int64)
        default = NO_BYTES if isinstance(data.bins, DenseBins) else data.bins.default
        self._some_sets = stump.lay_out(
            features, cuts.n_bins, cuts.is_categorical, default, self._starts, self._n_bins, self._kinds, self._defaults
        )
        n_cells = int(self._starts[-1])
        self._histogram = self.workspace.array("histogram", (1, 2 * n_cells), np.int64)
        self._narrow = data.n_rows <= cpu_frontier.NARROW_ROWS
        if self._by_row is None:
            self._sum_columns(n_cells)
        else:
            self._sum_rows(n_cells, self._by_row)

    def _sum_columns(self, n_cells: int) -> None:
        bins, features, t = self._data.bins, self._candidates.features, len(self._candidates.features)
        bounds = np.array([0, t])
        if isinstance(bins, DenseBins):
            stored, work = (bins.columns, NO_LONGS, NO_INTS, NO_BYTES), self._data.n_rows * t
            if (parts := self._parts(work, CELLS_SUMMED_PER_THREAD)) > 1:
                bounds = np.arange(parts + 1) * t // parts
        else:
            stored = NO_ROWS, bins.column_start, bins.row, bins.column_bin
            ends = np.zeros(t + 1, np.int64)
            np.cumsum(bins.column_start[features + 1] - bins.column_start[features], out=ends[1:])
            if (parts := self._parts(4 * int(ends[-1]), CELLS_SUMMED_PER_THREAD)) > 1:
                bounds = even(ends, parts)
        scratch = self._scratch(1, n_cells)[0]

        def add(part: int) -> None:
            if part < len(bounds) - 1:
                column_sums.build(
                    *stored, features, self._starts, self._packed, bounds[part], bounds[part + 1], self._narrow,
                    scratch, self._histogram[0],
                )  # fmt: skip

        self._run(len(bounds) - 1, add)

    def _sum_rows(self, n_cells: int, layout: Layout) -> None:
        n = self._data.n_rows
        parts = self._parts(4 * len(layout.cells), CELLS_SUMMED_PER_THREAD)
        scratch, sums = self._scratch(parts, n_cells), self._histogram
        if parts > 1:
            sums = self.workspace.array("spare", (parts, 2 * n_cells), np.int64)

        def add(part: int) -> None:
            if part < parts:
                column_sums.build_by_row(
                    layout.row_start, layout.cells, self._packed, *share(n, part, parts), self._narrow, scratch[part],
                    sums[part],
                )  # fmt: skip

        self._run(parts, add)
        if parts > 1:
            np.sum(sums, axis=0, out=self._histogram[0])

    def _scratch(self, parts: int, n_cells: int) -> NDArray[np.int64]:
        """Zeros, which wide sums are gathered in; narrow ones need none but their shape."""
        scratch = self.workspace.array("scratch", (parts, n_cells), np.int64)
        if not self._narrow:
            scratch[:] = 0
        return scratch

    def seek_splits(self) -> None:
        """Find the best split."""
        if not self._open:
            return
        self._open = False
        candidates, limits, units, t = self._candidates, self._limits, self._units, len(self._candidates.features)
        own = limits.reg_lambda, limits.min_child_weight, limits.min_split_gain, 1.0
        rule = np.array([*own, self._rows_per_h, float(limits.signed)])
        gains, found = np.zeros((2, t)), np.empty((2, t, 4), np.int64)
        left_sets = np.empty((2, t if self._some_sets else 0, 8), np.uint32)
        root = cpu_frontier.NO_CUTS if candidates.root is None else candidates.root
        asked = (
            self._starts, self._n_bins, self._kinds if self._some_sets else None, self._defaults, np.array(units), rule,
            cpu_frontier.NARROW_ROWS,
        )  # fmt: skip
        to = None if self._is_plain() else True, root, self._drawn(), gains, found, left_sets
        parts = min(self._parts(self._histogram.shape[1], cpu_frontier.CELLS_PER_THREAD), t)
        bounds = [0, t] if parts == 1 else even(self._starts, parts)

        def search(part: int) -> None:
            if part < parts:
                span = bounds[part], bounds[part + 1]
                stump.search_root(self._histogram, self._data.n_rows, *self._totals, *asked, *span, *to)

        self._run(parts, search)
        lots = candidates.lots(self.output)
        if lots is not None:
            sums = np.array([self._totals, self._totals])
            contest.keep_winners(gains, sums, candidates.features, lots.deviation, TABLE, *lots.key.words)
        best = int(stump.best_of(gains[0]))
        if best >= 0:
            left_set = left_sets[0, best] if self._kinds[best] else cpu_frontier.NO_WORDS
            self._made = best, int(candidates.features[best]), found[0, best], float(gains[0, best]), left_set

    def _is_plain(self) -> bool:
        """Whether ``split.search`` may take its short way."""
        limits = self._limits
        plain = self._narrow and self._candidates.root is None and not limits.signed
        return plain and limits.reg_lambda < MOST_RIDGE * self._units[1]

    def _drawn(self) -> NDArray[np.bool_]:
        """(2, t): the features that the root may be split by; (0, 0) for all."""
        if self._candidates.by_node is None:
            return ALL_FEATURES
        t = len(self._candidates.features)
        may = np.zeros((2, t), np.bool_)
        may[0, subset(self._candidates.by_node[0], t, self._candidates.node_key(0))] = True
        return may

    def split(self, most: int | None) -> bool:
        """Once, if there is something to gain."""
        now, self._split = self._made is not None and not self._split, True
        return now

    def settle(self) -> NDArray[np.int32]:
        """(n,) the leaf of every row. Ends the growth: how many are in each is learned here."""
        n = self._data.n_rows
        if self._made is None:
            return np.zeros(n, np.int32)
        _, feature, (cut, missing_left, _, _), _, left_set = self._made
        bins, missing, out = self._data.bins, int(self._data.cuts.n_bins[feature]), np.empty(n, np.int32)
        if isinstance(bins, DenseBins):
            codes = bins.columns[feature]
        elif self._laid_out is not None:
            codes = self._laid_out[feature]
        else:
            entries = slice(bins.column_start[feature], bins.column_start[feature + 1])
            row, stored, default = bins.row[entries], bins.column_bin[entries], bins.default[feature]
            if not len(left_set):
                self._lefts = stump.route_entries(row, stored, default, cut, missing, missing_left == 1, out)
                return out
            codes = np.full(n, default, np.uint8)
            codes[row] = stored
        parts = self._parts(n, ROUTED_PER_THREAD)
        lefts, how = [0] * parts, (cut, missing, missing_left == 1, left_set, len(left_set) > 0)

        def route(part: int) -> None:
            if part < parts:
                lefts[part] = stump.route(codes, *how, *share(n, part, parts), out)

        self._run(parts, route)
        self._lefts = sum(lefts)
        return out

    def nodes(self) -> Nodes:
        """The finished tree, once its rows are settled."""
        v, n, unit = 1 if self._made is None else 3, self._data.n_rows, self._units[1]
        nodes = Nodes(
            feature=np.full(v, -1, np.int32),
            bin=np.zeros(v, np.int32),
            missing_left=np.zeros(v, np.bool_),
            left=np.zeros(v, np.int32),
            right=np.zeros(v, np.int32),
            gain=np.zeros(v),
            cover=np.array(self._sums(1)) * unit,
            count=np.array([n] if self._made is None else [n, self._lefts, n - self._lefts]),
            left_set=np.zeros((v, 8), np.uint32),
        )
        if self._made is not None:
            at, feature, (cut, missing_left, _, _), gain, left_set = self._made
            nodes.feature[0], nodes.bin[0], nodes.missing_left[0], nodes.gain[0] = feature, cut, missing_left == 1, gain
            nodes.left[0], nodes.right[0] = stump.LEFT, stump.RIGHT
            if len(left_set):
                nodes.left_set[0] = left_set
                missing = int(self._n_bins[at])  # growing needs the bit of missing values, later missing_left tells
                nodes.left_set[0, missing >> 5] &= ~np.uint32(1 << (missing & 31))
        return nodes

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(v,) G and H of every node."""
        return np.array(self._sums(0)) * self._units[0], np.array(self._sums(1)) * self._units[1]

    def _sums(self, which: int) -> list[int]:
        """Of g or of h, of every node, in units."""
        total = self._totals[which]
        if self._made is None:
            return [total]
        left = int(self._made[2][2 + which])
        return [total, left, total - left]

    def _parts(self, size: int, per_thread: int) -> int:
        return 1 if self._team.size == 1 else max(1, min(self._team.size, size // per_thread))

    def _run(self, parts: int, work: Callable[[int], None]) -> None:
        if parts == 1:
            work(0)
        else:
            self._team.run(work)
