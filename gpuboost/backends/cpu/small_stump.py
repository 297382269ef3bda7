"""A stump of so few values that one thread grows it, in one call: what ``CpuStump`` does, without what lies between."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu import histograms as cpu_histograms
from gpuboost.backends.cpu import split_search as cpu_search
from gpuboost.backends.cpu import stump as cpu_stump
from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.layout import IndicatorBitmaps
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics.fixed_point import NOT_FINITE
from gpuboost.errors import InputError
from gpuboost.kernels.growth import small_stump as lone_stump
from gpuboost.kernels.growth import stump
from gpuboost.types import Array, Candidates, Cuts, DenseBins, Gradients, Limits, Nodes, TrainingSet

NO_COLUMNS = np.empty((0, 0), np.uint8)
DENSE = (None,) * 7


class LoneStumps:
    """Whether stumps of some data are grown here. What that takes to know of the cuts is found once."""

    def __init__(self) -> None:
        self._last: tuple[Cuts, bool, int] | None = None

    def suit(self, data: TrainingSet, candidates: Candidates, marks: IndicatorBitmaps | None, team: ThreadPool) -> bool:
        """No more rows than narrow histograms hold, no categories, and too little to do to wake a second thread."""
        n, t, last = data.n_rows, len(candidates.features), self._last
        if last is None or last[0] is not data.cuts:
            cells = int(data.cuts.n_bins.max(initial=0)) + 1
            last = self._last = data.cuts, bool(data.cuts.is_categorical.any()), cells
        plain = candidates.by_node is None and candidates.noise is None and not last[1]
        if not plain or n > cpu_histograms.NARROW_ROWS or team.size == 1:
            return plain and n <= cpu_histograms.NARROW_ROWS
        if n >= 2 * cpu_stump.ROUTED_PER_THREAD or 2 * t * last[2] >= 2 * cpu_search.CELLS_PER_THREAD:
            return False
        summed = n * t if marks is None else stump.stored(marks.cost, candidates.features)
        return bool(summed < 2 * cpu_stump.CELLS_SUMMED_PER_THREAD)


class CpuLoneStump:
    """See the protocol's Frontier. All is done as the first histograms are asked for.

    ``scales``: of other outputs and rounds, which that of h is remembered by; see ``CpuStump`` for the rest.
    """

    def __init__(
        self,
        data: TrainingSet,
        gradients: Gradients,
        output: int,
        candidates: Candidates,
        limits: Limits,
        marks: IndicatorBitmaps | None,
        laid_out: Array | None,
        scales: cpu_sums.Scales,
        workspace: Workspace,
    ) -> None:
        self.output, self.workspace = output, workspace
        self._of = data, gradients, candidates, limits
        self._where, self._scales = (marks, laid_out), scales
        self._size = 0  # nodes; 0 before anything is done
        self._split = False

    def build_histograms(self) -> None:
        """Do it all."""
        if self._size > 0:
            return
        data, gradients, candidates, limits = self._of
        n, output, (columns, *sparse, room) = data.n_rows, self.output, self._bins()
        m, weight, known = self._scales.remembered(gradients)
        self._leaf_of_row, self._missing_left = np.empty(n, np.int32), np.zeros(3, np.bool_)
        self._words, self._numbers, self._counts = np.zeros((4, 3), np.int32), np.zeros((4, 3)), np.zeros(3, np.int64)
        self._words[lone_stump.FEATURE] = -1
        root = cpu_search.NO_CUTS if candidates.root is None else candidates.root
        rows = gradients.g[output], gradients.h[output], m, weight, known.get(output, 0.0)
        what = float(limits.reg_lambda), float(limits.min_child_weight), float(limits.min_split_gain)
        asked = *rows, candidates.features, data.cuts.n_bins, columns, *sparse, room, what, limits.signed
        out = root, self._leaf_of_row, self._words, self._missing_left, self._numbers, self._counts
        size, _, scale_h = lone_stump.grow(
            *asked, None if candidates.root is None and not limits.signed else True, *out
        )
        if size == lone_stump.NOT_PLAIN:
            size, _, scale_h = lone_stump.grow(*asked, True, *out)
        if size == lone_stump.NO_NUMBER:
            raise InputError(NOT_FINITE)
        self._size, known[output] = size, scale_h

    def _bins(self) -> tuple[Any, ...]:
        """Dense columns, what there is of sparse ones (seven arrays), and room for packed gradients."""
        data, (marks, laid_out) = self._of[0], self._where
        bins, n = data.bins, data.n_rows
        if isinstance(bins, DenseBins):
            return bins.columns, *DENSE, self.workspace.array("packed", (n,), np.int64)
        assert marks is not None, "sparse bins have marks"
        packed = self.workspace.array("packed", (64 * marks.words.shape[1],), np.int64)
        columns = NO_COLUMNS if laid_out is None else laid_out
        return None, columns, bins.default, bins.column_start, bins.row, bins.column_bin, marks.words, marks.of, packed

    def seek_splits(self) -> None:
        """That is done already."""

    def split(self, most: int | None) -> bool:
        """Once, if there is something to gain."""
        now, self._split = self._size == 3 and not self._split, True
        return now

    def settle(self, *, wanted: bool) -> NDArray[np.int32]:
        """(n,) the leaf of every row."""
        return self._leaf_of_row

    def nodes(self) -> Nodes:
        """The finished tree."""
        feature, cut, left, right = self._words[:, : self._size]
        gain, cover = self._numbers[:2, : self._size]
        some = self._missing_left[: self._size], left, right, gain, cover, self._counts[: self._size]
        return Nodes(feature, cut, *some, np.zeros((self._size, 8), np.uint32))

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(v,) G and H of every node."""
        return self._numbers[lone_stump.SUM_G, : self._size], self._numbers[lone_stump.SUM_H, : self._size]
