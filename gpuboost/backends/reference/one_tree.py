"""Definition of the split search for one tree of several outputs: every candidate of every feature, in order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.numerics.one_tree import NOISE, RowsOfHost, VectorNode, VectorSplit, VectorTree
from gpuboost.backends.prediction.routing import dense_rows, route
from gpuboost.types import Array, Candidates, Gradients, Limits, Structure, Target, TrainingSet


def grow_together(
    data: TrainingSet, target: Target, searched: Gradients, candidates: Candidates, limits: Limits
) -> tuple[Structure, ...]:
    """See ``Trainer.grow_together``."""
    each = [integers(searched, output) for output in range(len(searched.g))]
    values = np.stack([np.stack([g, h], axis=-1) for g, h, _ in each], axis=1)  # (m, s, 2)
    bins = dense_rows(data.bins)
    columns = (bins if target.rows is None else bins[target.rows]).T
    search = _Search(columns, data, values, np.array([units for *_, units in each]), limits)
    kinds = data.cuts.n_bins, data.cuts.is_categorical
    rows = RowsOfHost(columns, *kinds, search, search.sums)
    tree = VectorTree(rows, *kinds, search.units, candidates, limits)
    tree.grow()
    leaf_of_row, nodes = rows.leaf_of_row(tree.nodes), tree.as_arrays()

    def sums(output: int) -> tuple[Array, Array] | None:
        if not target.gives_leaf_sums:
            return None
        g, h, units = integers(target.gradients, output)
        exact = np.zeros((2, len(tree.nodes)), np.int64)
        np.add.at(exact[0], leaf_of_row, g)
        np.add.at(exact[1], leaf_of_row, h)
        return exact[0] * units[0], exact[1] * units[1]

    every = leaf_of_row if target.rows is None else route(nodes, bins, data.cuts)
    outputs = range(len(target.gradients.g))
    return tuple(Structure(nodes, output, target.version, every, sums(output)) for output in outputs)


class _Search:
    """The search of a tree's splits."""

    def __init__(self, columns: Array, data: TrainingSet, values: Array, units: Array, limits: Limits) -> None:
        self.columns, self.values, self.units, self.limits = columns, values, units, limits
        self.n_bins, self.categorical = data.cuts.n_bins, data.cuts.is_categorical

    def sums(self, rows: Array) -> Array:
        return np.asarray(self.values[rows].sum(axis=0))

    def __call__(self, nodes: list[VectorNode]) -> list[VectorSplit | None]:
        return [self._best(node) for node in nodes]

    def _best(self, node: VectorNode) -> VectorSplit | None:
        parent = self._score(node.sums)
        gain, best = max(self.limits.min_split_gain, NOISE * parent), None
        for feature in node.features.tolist():
            for left, count, split in self._candidates(feature, node):
                right = node.sums - left
                if not (self._allowed(left, count) and self._allowed(right, len(node.rows) - count)):
                    continue
                here = self._score(left) + self._score(right) - parent
                if here > gain:
                    gain, best = here, split._replace(gain=here)
        return best

    def _candidates(self, feature: int, node: VectorNode) -> Iterator[tuple[Array, int, VectorSplit]]:
        """Sums and rows of the left side of each candidate. Missing values go to the heavier side if there are none."""
        b, codes = int(self.n_bins[feature]), self.columns[feature][node.rows]
        cells, counts = np.zeros((b + 1, *node.sums.shape), np.int64), np.bincount(codes, minlength=b + 1)
        np.add.at(cells, codes, self.values[node.rows])
        missing = cells[b].any() or (self.limits.min_samples_leaf > 1 and counts[b] > 0)

        def side(left: Array) -> bool:
            return not missing and self._mean_h(left) > self._mean_h(node.sums - left)

        if self.categorical[feature]:
            for c in range(b):
                if cells[c].any() or (self.limits.min_samples_leaf > 1 and counts[c] > 0):
                    yield cells[c], int(counts[c]), VectorSplit(feature, 0.0, c, side(cells[c]))
            if missing:
                yield node.sums - cells[b], len(node.rows) - int(counts[b]), VectorSplit(feature, 0.0, b, False, True)
            return
        left, count = np.zeros_like(node.sums), 0
        for c in range(b if missing else b - 1):
            left, count = left + cells[c], count + int(counts[c])
            yield left, count, VectorSplit(feature, 0.0, c, side(left))
            if missing and c < b - 1:
                yield left + cells[b], count + int(counts[b]), VectorSplit(feature, 0.0, c, True)

    def _allowed(self, sums: Array, count: int) -> bool:
        mean = self._mean_h(sums)
        return mean > 0.0 and mean >= self.limits.min_child_weight and count >= self.limits.min_samples_leaf

    def _mean_h(self, sums: Array) -> float:
        total = 0.0
        for (_, h), (_, unit) in zip(sums.tolist(), self.units.tolist(), strict=True):
            total += h * unit
        return total / len(sums)

    def _score(self, sums: Array) -> float:
        """Sum over the outputs of G^2 / (H + lambda); an output without curvature adds nothing."""
        total = 0.0
        for (g, h), (unit_g, unit_h) in zip(sums.tolist(), self.units.tolist(), strict=True):
            below = h * unit_h + self.limits.reg_lambda
            total += (g * unit_g) * (g * unit_g) / below if below > 0.0 else 0.0
        return total
