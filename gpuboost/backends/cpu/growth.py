"""Growth of a tree on the CPU by the fastest method for it: as a stump, by sorted columns or by histograms."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.compilation.background import BACKGROUND
from gpuboost.backends.cpu.compilation.warm_up import HELPER
from gpuboost.backends.cpu.compilation.warm_up_tree import is_usual
from gpuboost.backends.cpu.grower import TreeGrower
from gpuboost.backends.cpu.repeated_draws import can_repeat
from gpuboost.backends.cpu.trees import large_trees
from gpuboost.backends.cpu.trees import stump as cpu_stump
from gpuboost.backends.cpu.trees.histograms import PACKED_ROWS
from gpuboost.backends.cpu.trees.layout import (
    IndicatorBitmaps,
    Layout,
    SortedColumns,
    SparseForms,
    columns_of,
    drawn_columns,
    indicator_bitmaps,
    laid_out,
    layout_of,
)
from gpuboost.backends.cpu.trees.partition import (
    RowsByNode,
    lend_gradients,
    rows_of_target,
    take_back_gradients,
)
from gpuboost.backends.cpu.trees.small_stump import SmallStumps, grow_small_stump
from gpuboost.backends.cpu.trees.stump import StumpGrower
from gpuboost.backends.host.threads import RowShares, ThreadPool
from gpuboost.backends.host.workspace import Workspace, Workspaces, count_up
from gpuboost.backends.prediction.memo import Memo
from gpuboost.records import dataclass
from gpuboost.types import Array, Bins, Candidates, Cuts, DenseBins, Gradients, Limits, Structure, Target, TrainingSet

ROUNDING = 4  # times as many rows before gradients are rounded by several threads, as a row takes little time


@dataclass(frozen=True, slots=True, eq=False)
class KeptGrower:
    """A grower that has finished a tree, kept for the next one of the same rows, candidates and limits."""

    grower: TreeGrower
    bins: Bins
    cuts: Cuts
    multiplicity: Array | None
    candidates: Candidates
    limits: Limits

    @classmethod
    def of(
        cls, grower: TreeGrower, data: TrainingSet, target: Target, candidates: Candidates, limits: Limits
    ) -> KeptGrower | None:
        """The kept grower; None for many rows, or if rows or features are drawn for each tree."""
        drawn = candidates.by_tree is not None or target.rows is not None
        if drawn or data.n_rows > PACKED_ROWS:
            return None
        return cls(grower, data.bins, data.cuts, target.gradients.multiplicity, candidates, limits)

    def serves(self, data: TrainingSet, target: Target, candidates: Candidates, limits: Limits) -> bool:
        """True for a tree that differs from the one before by its gradients and the streams of its nodes alone."""
        of_data = data.bins is self.bins and data.cuts is self.cuts and target.rows is None
        of_tree = limits is self.limits and (
            candidates is self.candidates or _differ_by_streams(candidates, self.candidates)
        )
        return of_data and of_tree and target.gradients.multiplicity is self.multiplicity


def _differ_by_streams(one: Candidates, other: Candidates) -> bool:
    """True if candidates differ by nothing but the streams of nodes' features, of cuts and of noise on gains."""
    more = [(of.root, of.weights, of.costs, of.by_tree) for of in (one, other)]
    plain = all(part is None for parts in more for part in parts)
    draws = [
        (of.by_node and of.by_node[0], of.by_level, of.cuts is None, of.noise and of.noise.deviation)
        for of in (one, other)
    ]
    return plain and draws[0] == draws[1] and np.array_equal(one.features, other.features)


def _restricts_cuts(candidates: Candidates, limits: Limits) -> bool:
    """True if not every cut may split a node, or if more than the gain chooses, so that columns are not searched."""
    by_limits = limits.symmetric or limits.bounded or limits.forced is not None
    return by_limits or candidates.root is not None or candidates.chooses_by_more or candidates.cuts is not None


class CpuGrowth:
    """Grows trees, and keeps what does not change from tree to tree: layouts, sorted columns, bitmaps, scales."""

    def __init__(self, pool: ThreadPool, workspaces: Workspaces) -> None:
        self._pool, self._workspaces, self._shares = pool, workspaces, RowShares(pool)
        self._last_layout: tuple[Bins, Cuts, bool, Layout] | None = None
        self._columns = Memo(partial(columns_of, pool=pool))
        self._full_columns, self._bitmaps = Memo(laid_out), Memo(indicator_bitmaps)
        self._scales, self._small_stumps = cpu_sums.Scales(), SmallStumps()
        self.keeps_stumps = False  # see ``keep_stumps``

    def grow(self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits) -> Structure:
        """See the verb."""
        workspace = self._workspaces.take()
        kept = workspace.kept
        if isinstance(kept, KeptGrower) and kept.serves(data, target, candidates, limits):
            count_up(kept.grower.rows)
            kept.grower.draw_by(candidates, output)
            structure = kept.grower.grow(target, output, *self._pack(target.gradients, output, kept.grower.packed))
        else:
            workspace.kept = None
            structure = self._grown(data, target, output, candidates, limits, workspace)
        self._workspaces.give_back(workspace)
        return structure

    def for_rounds(
        self, data: TrainingSet, target: Target, candidates: Candidates, limits: Limits
    ) -> TreeGrower | None:
        """A grower for trees that differ from the last one in their gradients, and in drawn rows and features.

        None if no kernel makes these draws, or if no grower was kept.
        """
        workspace = self._workspaces.take()
        self._workspaces.give_back(workspace)
        kept = workspace.kept
        if target.rows is None and candidates.by_tree is None:
            if not (isinstance(kept, KeptGrower) and kept.serves(data, target, candidates, limits)):
                return None
            kept.grower.draw_by(candidates, 0)
            return kept.grower
        if not can_repeat(data, target) or data.n_rows > PACKED_ROWS:
            return None
        return self._for_draws(data, candidates, limits, workspace, of_rows=target.rows is not None)

    def could_keep(self, data: TrainingSet, target: Target, candidates: Candidates, limits: Limits) -> bool:
        """True for stumps of small dense data, whose grower ``keep_stumps`` can keep for the next ones."""
        every = target.rows is None and candidates.by_tree is None and candidates.root is None
        small = isinstance(data.bins, DenseBins) and self._small_stumps.suit(data, candidates, None, self._pool)
        return every and small and cpu_stump.suits(limits)

    def keep_stumps(self, *, wanted: bool) -> None:
        """Let stumps that ``could_keep`` names grow as other trees do, so that ``for_rounds`` has a grower, or not."""
        self.keeps_stumps = wanted
        if not wanted:
            workspace = self._workspaces.take()
            workspace.kept = None
            self._workspaces.give_back(workspace)

    def _for_draws(
        self, data: TrainingSet, candidates: Candidates, limits: Limits, workspace: Workspace, *, of_rows: bool
    ) -> TreeGrower:
        """A grower with room for any rows and features that may be drawn."""
        bins, cuts, n = data.bins, data.cuts, data.n_rows
        assert isinstance(bins, DenseBins)
        most_bins = np.argsort(-cuts.n_bins, kind="stable")[: len(candidates.features)]
        widest = replace(candidates, features=np.sort(most_bins).astype(np.int32), by_tree=None)
        some = DenseBins(np.empty_like(bins.rows), bins.columns) if of_rows else bins
        layout = layout_of(some, cuts, widest, by_column=False)
        layout = replace(layout, some_categorical=bool(cuts.is_categorical.any()))
        rows, drawn = np.empty(n, np.int32), np.empty(n if of_rows else 0, np.int32)
        by_node = RowsByNode(some, layout, None, rows, drawn, self._pool, workspace)
        return TreeGrower(by_node, np.empty(n, np.int64), n, None, cuts, limits, widest, 0, workspace)

    def _grown(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        workspace: Workspace,
    ) -> Structure:  # fmt: skip
        """A tree for which there is no kept grower: a stump if it can be one, else by sorted columns or histograms."""
        restricted = _restricts_cuts(candidates, limits)
        free = not limits.bounded and limits.interactions is None and limits.forced is None
        is_kept = self.keeps_stumps and self.could_keep(data, target, candidates, limits)
        if target.rows is None and free and cpu_stump.suits(limits) and not is_kept:
            stump = self._stump(data, target, output, candidates, limits, workspace, restricted=restricted)
            if stump is not None:
                return stump
        by_column = None if restricted else self._columns_of(data)
        return self._tree(data, target, output, candidates, limits, by_column, workspace)

    def _stump(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        workspace: Workspace, *, restricted: bool,
    ) -> Structure | None:  # fmt: skip
        """A tree of one split; None if sorted columns are searched instead, for which all cuts must compete."""
        bitmaps = self._bitmaps_of(data.bins)
        few = cpu_stump.by_columns(data.bins, bitmaps, candidates)
        if few and self._small_stumps.suit(data, candidates, bitmaps, self._pool):
            known = bitmaps, self._laid_out(data.bins), self._scales, workspace
            return grow_small_stump(data, target, output, candidates, limits, *known)
        if not (few or restricted or self._columns_of(data) is None):
            return None
        some = len(candidates.features) < data.bins.shape[1]  # rows would have to be laid out for these alone
        by_row = None if few or some else self._layout_of(data.bins, data.cuts, candidates, by_column=False)
        sparse = SparseForms(by_row, bitmaps, self._laid_out(data.bins))
        scales = self._scales.of(target.gradients, output, self._pool)
        return StumpGrower(data, target, output, candidates, limits, sparse, scales, self._pool, workspace).grow()

    def _tree(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        by_column: SortedColumns | None, workspace: Workspace,
    ) -> Structure:  # fmt: skip
        """by_column: the columns to search without histograms, or None."""
        HELPER.join(usual=is_usual(limits, candidates, by_column, data.n_rows))
        if self._pool.size > 1 and by_column is None and large_trees.suits(data, target, candidates, limits):
            kinds = data.cuts.is_categorical[candidates.features]
            if BACKGROUND.request(large_trees.kernel_kind(bool(kinds.any()), limits)):
                return self._large(data, target, output, candidates, limits, workspace)
        packed = workspace.array("packed", target.gradients.g[output].shape, np.int64)
        totals, units = self._pack(target.gradients, output, packed)
        m = target.gradients.multiplicity
        weight = len(packed) if m is None else int(m.sum())
        lend_gradients(target, output, workspace)
        bins, rows, drawn = rows_of_target(data, target, workspace, self._shares.by_rows)
        if len(packed) < data.n_rows and not isinstance(bins, DenseBins):
            packed_by_row = np.zeros(data.n_rows, np.int64)
            packed_by_row[rows] = packed
            packed = packed_by_row
        if by_column is not None and target.rows is not None:
            by_column = drawn_columns(by_column, target.rows, data.n_rows, self._pool, workspace)
        layout = self._layout_of(bins, data.cuts, candidates, by_column=by_column is not None)
        by_node = RowsByNode(bins, layout, self._laid_out(bins), rows, drawn, self._pool, workspace)
        of_tree = data.cuts, limits, candidates, output, workspace
        grower = TreeGrower(by_node, packed, weight, by_column, *of_tree)
        structure = grower.grow(target, output, totals, units)
        take_back_gradients(target, workspace)
        workspace.kept = KeptGrower.of(grower, data, target, candidates, limits)
        return structure

    def _pack(self, gradients: Gradients, output: int, packed: Array) -> tuple[tuple[int, int], tuple[float, float]]:
        """See ``sums.pack``."""
        in_parts = partial(self._shares.in_parts, times=ROUNDING)
        return cpu_sums.pack(gradients, output, self._pool, in_parts, packed)

    def _large(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        workspace: Workspace,
    ) -> Structure:  # fmt: skip
        """A tree of many rows, in one call of each thread."""
        lend_gradients(target, output, workspace)
        bins, rows, drawn = rows_of_target(data, target, workspace, self._shares.by_rows, numbered=False)
        layout = self._layout_of(bins, data.cuts, candidates, by_column=False)
        by_node = RowsByNode(bins, layout, None, rows, drawn, self._pool, workspace)
        tree = large_trees.LargeTree(by_node, target.gradients, output, data.cuts, limits, candidates, workspace)
        structure = tree.grow(target)
        take_back_gradients(target, workspace)
        return structure

    def _layout_of(self, bins: Bins, cuts: Cuts, candidates: Candidates, by_column: bool) -> Layout:
        """The histogram layout: that of the last tree if all but the gradients and rows is the same."""
        last = self._last_layout
        if last is not None and last[1] is cuts and last[2] == by_column:
            before, now = last[3].features, candidates.features
            if before is now or np.array_equal(before, now):
                if last[0] is bins:
                    return last[3]
                if isinstance(bins, DenseBins) and isinstance(last[0], DenseBins):
                    return last[3].of_rows(bins.rows)
        made = layout_of(bins, cuts, candidates, by_column=by_column)
        self._last_layout = bins, cuts, by_column, made
        return made

    def _columns_of(self, data: TrainingSet) -> SortedColumns | None:
        """Columns sorted by bin, if these bins are searched without histograms; sorted once."""
        return self._columns.of(data.bins, data.cuts)

    def _laid_out(self, bins: Bins) -> Array | None:
        """Columns of sparse bins laid out in full, unless they take too much memory; laid out once."""
        return None if isinstance(bins, DenseBins) else self._full_columns.of(bins)

    def _bitmaps_of(self, bins: Bins) -> IndicatorBitmaps | None:
        """Bitmaps of the columns of sparse bins that are summed by them; made once."""
        return None if isinstance(bins, DenseBins) else self._bitmaps.of(bins)
