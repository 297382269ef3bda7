"""Stumps of small data, grown by one thread in one call: the stump of ``StumpGrower`` with less overhead."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.trees import histograms as cpu_histograms
from gpuboost.backends.cpu.trees import split_search as cpu_search
from gpuboost.backends.cpu.trees import stump as cpu_stump
from gpuboost.backends.cpu.trees.layout import IndicatorBitmaps
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics.fixed_point import NOT_FINITE
from gpuboost.errors import InputError
from gpuboost.kernels.growth import small_stump as kernel
from gpuboost.kernels.growth import stump
from gpuboost.types import Array, Candidates, Cuts, DenseBins, Limits, Nodes, Structure, Target, TrainingSet

NO_COLUMNS = np.empty((0, 0), np.uint8)


class SmallStumps:
    """The test for data whose stumps are grown here. The facts about the cuts that it needs are computed once."""

    def __init__(self) -> None:
        self._last: tuple[Cuts, bool, int] | None = None

    def suit(
        self, data: TrainingSet, candidates: Candidates, bitmaps: IndicatorBitmaps | None, pool: ThreadPool
    ) -> bool:
        """True for numeric data whose rows fit a packed histogram, with too little work for a second thread."""
        n, t, last = data.n_rows, len(candidates.features), self._last
        if last is None or last[0] is not data.cuts:
            cells = int(data.cuts.n_bins.max(initial=0)) + 1
            last = self._last = data.cuts, bool(data.cuts.is_categorical.any()), cells
        plain = candidates.by_node is None and not candidates.chooses_by_more and candidates.cuts is None
        plain = plain and not last[1]
        if not plain or n > cpu_histograms.PACKED_ROWS or pool.size == 1:
            return plain and n <= cpu_histograms.PACKED_ROWS
        if n >= 2 * cpu_stump.ROUTED_PER_THREAD or 2 * t * last[2] >= 2 * cpu_search.CELLS_PER_THREAD:
            return False
        summed = n * t if bitmaps is None else stump.stored(bitmaps.cost, candidates.features)
        return bool(summed < 2 * cpu_stump.CELLS_SUMMED_PER_THREAD)


def grow_small_stump(
    data: TrainingSet,
    target: Target,
    output: int,
    candidates: Candidates,
    limits: Limits,
    bitmaps: IndicatorBitmaps | None,
    laid_out: Array | None,
    scales: cpu_sums.Scales,
    workspace: Workspace,
) -> Structure:
    """The finished tree, fitted to all rows.

    ``scales``: memo of the scales of h of earlier outputs and rounds; see ``StumpGrower`` for the other arguments.
    """
    n, gradients, (columns, sparse, packed) = data.n_rows, target.gradients, _bins(data, bitmaps, laid_out, workspace)
    m, weight, known = scales.remembered(gradients)
    leaf_of_row, missing_left = np.empty(n, np.int32), np.zeros(3, np.bool_)
    words, numbers, counts = np.zeros((4, 3), np.int32), np.zeros((4, 3)), np.zeros(3, np.int64)
    words[kernel.FEATURE] = -1
    root = cpu_search.NO_CUTS if candidates.root is None else candidates.root
    rows = gradients.g[output], gradients.h[output], m, weight, known.get(output, 0.0)
    rule, signed = limits.of_stump, limits.signed
    inputs = *rows, candidates.features, data.cuts.n_bins, columns, sparse, packed, rule, signed
    out = root, (leaf_of_row, words, missing_left, numbers, counts)
    size, _, scale_h = kernel.grow(*inputs, None if candidates.root is None and not signed else True, *out)
    if size == kernel.NOT_PLAIN:
        size, _, scale_h = kernel.grow(*inputs, True, *out)
    if size == kernel.NO_NUMBER:
        raise InputError(NOT_FINITE)
    known[output] = scale_h
    feature, cut, left, right = words[:, :size]
    gain, cover = numbers[:2, :size]
    rest = missing_left[:size], left, right, gain, cover, counts[:size], np.zeros((size, 8), np.uint32)
    sums = (numbers[kernel.SUM_G, :size], numbers[kernel.SUM_H, :size]) if target.gives_leaf_sums else None
    return Structure(Nodes(feature, cut, *rest), output, target.version, leaf_of_row, sums)


def _bins(
    data: TrainingSet, bitmaps: IndicatorBitmaps | None, laid_out: Array | None, workspace: Workspace
) -> tuple[Any, ...]:
    """Dense columns or sparse ones, the other being None, and scratch memory for packed gradients."""
    bins, n = data.bins, data.n_rows
    if isinstance(bins, DenseBins):
        return bins.columns, None, workspace.array("packed", (n,), np.int64)
    assert bitmaps is not None, "sparse bins have bitmaps"
    packed = workspace.array("packed", (64 * bitmaps.words.shape[1],), np.int64)
    columns = NO_COLUMNS if laid_out is None else laid_out
    entries = bins.default, bins.column_start, bins.row, bins.column_bin
    return None, kernel.SparseColumns(columns, *entries, bitmaps.words, bitmaps.of), packed
