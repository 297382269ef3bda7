"""Predictions of the first few rows of a process by NumPy, so that it need not load numba and the kernels for them.

The bytes are the same. With kernels in the cache on disk, numba and the kernels of prediction are loaded in half a
second by a process that loads a model, and in 0.02 s after a fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.backends.prediction.numpy_forest import NumpyForest
from gpuboost.types import Array, Ensemble

WORK = 1 << 18
"""Rows times trees that NumPy predicts in 0.02 s: about as long as kernels are loaded after a fit"""

ROWS_TO_PREPARE = 200  # rows that NumPy predicts by a tree in the time that the tree is prepared in


class FirstRows:
    """The predictor of calls until ``work`` is done. It keeps nothing of a model between calls."""

    def __init__(self, work: int = WORK) -> None:
        """work: rows times trees that are predicted without kernels."""
        self._work_left = work

    def scores(self, ensemble: Ensemble, x: Any) -> Array | None:
        """(k, n) float64 scores; None if a backend should predict x, or report what is wrong with it.

        x: any matrix that ``predict`` of a backend takes. Only dense ones of floats are predicted here, by trees.
        """
        if self._work_left < 0 or ensemble.components or not is_dense(x, ensemble.cuts.n_columns):
            return None
        self._work_left -= (len(x) + ROWS_TO_PREPARE) * max(1, len(ensemble.trees))
        return None if self._work_left < 0 else NumpyForest.of(ensemble).scores(x)

    def end(self) -> None:
        """Leave all predictions to backends from now on."""
        self._work_left = -1


FIRST = FirstRows()
"""The first rows of this process"""


def is_dense(x: Any, n_columns: int) -> bool:
    """True for an array of floats of as many columns."""
    return isinstance(x, np.ndarray) and x.dtype in (np.float64, np.float32) and x.shape[1] == n_columns
