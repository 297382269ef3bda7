"""Contributions of features, and of pairs of them, computed by kernels; see ``backends.prediction.tree_shap``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.prediction.predictor import ForestPredictor, with_asked_cuts
from gpuboost.backends.prediction.tree_shap import Paths, gauss_legendre_rules
from gpuboost.kernels.prediction import contributions as kernels
from gpuboost.records import dataclass
from gpuboost.types import Array, Ensemble

_ROOM = 1 << 15  # bytes to work in for the rows of a block: they should stay in the first-level cache


@dataclass(frozen=True, slots=True)
class Explainer:
    """An ensemble prepared for SHAP values. It consists of arrays and can be shared by threads."""

    forest: ForestPredictor
    paths: Paths
    columns: NDArray[np.int32]  # (p,) columns that the trees split on, increasing
    place: NDArray[np.int32]  # (conditions,) of its column among those
    slot: NDArray[np.int32]  # (tests,) of its feature among those the forest uses
    points: NDArray[np.float64]  # (q, q) row i holds the Gauss-Legendre rule of i + 1 points on [0, 1]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, ensemble: Ensemble) -> Explainer:
        ensemble = with_asked_cuts(ensemble)  # paths and forest must mean the same by a bin
        forest, paths = ForestPredictor.of(ensemble), Paths.of(ensemble)
        points, weights = gauss_legendre_rules(paths)
        columns, column_index = np.unique(paths.column, return_inverse=True)
        slot = np.searchsorted(forest.flat_forest.features, paths.feature)
        return cls(forest, paths, columns, column_index.astype(np.int32), slot.astype(np.int32), points, weights)


def contributions(explainer: Explainer, x: Any, start: int, stop: int, out: Array) -> None:
    """out[start:stop] = contributions of each column to each score, and last the expected score.

    x: (n, d) as for ``predictor.predict``; out: (n, k, d + 1) float64. A row's contributions sum to its score, up to
    rounding. Raises InputError if x has another number of features than the model was trained on.
    """
    out[start:stop, :, :-1] = 0.0
    out[start:stop, :, -1] = explainer.paths.expected
    for rows, phi, _ in _explained(explainer, x, start, stop, pairs=False):
        out[rows, :, explainer.columns] = phi.transpose(2, 0, 1)


def interactions(explainer: Explainer, x: Any, start: int, stop: int, out: Array) -> None:
    """out[start:stop] = interactions of each pair of columns in each score, and last the expected score.

    x: (n, d) as for ``predictor.predict``; out: (n, k, d + 1, d + 1) float64, symmetric; its rows sum to
    ``contributions``, up to rounding. Raises InputError as ``contributions`` does.
    """
    out[start:stop] = 0.0
    out[start:stop, :, -1, -1] = explainer.paths.expected
    columns = explainer.columns
    for rows, _, pairs in _explained(explainer, x, start, stop, pairs=True):
        out[rows, :, columns[:, None], columns] = pairs.transpose(3, 0, 1, 2)


def _explained(
    explainer: Explainer, x: Any, start: int, stop: int, *, pairs: bool
) -> Iterator[tuple[slice, Array, Array]]:
    """Blocks of rows, with (k, p, n) contributions, and (k, p, p, n) interactions if ``pairs``."""
    forest, paths, rows = explainer.forest, explainer.paths, explainer.forest.rows_of(x)
    k, s, p = len(forest.bias), len(forest.flat_forest.features), len(explainer.columns)
    longest = int(np.diff(paths.start).max(initial=0)) + 1
    width = min(-(-(stop - start) // 8) * 8, max(8, _ROOM // (3 * longest * 8) // 8 * 8))
    codes, phi, scratch = np.zeros((1, s, width), np.uint8), np.empty((k, p, width)), np.empty((3, longest, width))
    both = np.empty((k, p, p, width)) if pairs else np.empty((0, 0, 0, 0))
    conditions = explainer.place, paths.share, paths.test_start, explainer.slot, paths.accepted
    leaves = paths.value, paths.output, explainer.points, explainer.weights
    for first in range(start, stop, max(width, 1)):
        n = min(width, stop - first)
        forest.code(rows, first, n, codes)
        phi[:] = 0.0
        kernels.add_contributions(codes[0], paths.start, *conditions, *leaves, *scratch, phi)
        if pairs:
            both[:] = 0.0
            kernels.add_interactions(codes[0], paths.start, *conditions, *leaves, *scratch[:2], scratch[2, :2], both)
            kernels.complete(phi, both)
        yield slice(first, first + n), phi[:, :, :n], both[..., :n]
