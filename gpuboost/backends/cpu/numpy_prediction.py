"""Predictions of few rows by NumPy while the compiled kernels are not on disk; the same bytes.

To compile the kernels of prediction takes some seconds, which a process that loads a model and predicts one row on a
new machine need not wait for. The second such call starts a process that compiles them.
"""

from __future__ import annotations

from typing import Any

from gpuboost.backends.cpu.compilation.background import BACKGROUND, PREDICTION
from gpuboost.backends.prediction.first_rows import is_dense
from gpuboost.backends.prediction.memo import Memo
from gpuboost.backends.prediction.numpy_forest import NumpyForest
from gpuboost.types import Array, Ensemble

WORK_WITHOUT_KERNELS = 1 << 23
"""Rows times trees that NumPy predicts in about half of the time that it takes to compile the kernels."""


class NumpyPrediction:
    """The predictor of calls until the kernels are on disk, or until ``work`` is done."""

    def __init__(self, work: int = WORK_WITHOUT_KERNELS) -> None:
        """work: rows times trees that are predicted without kernels."""
        self._forests, self._work_left = Memo(NumpyForest.of), work

    def scores(self, ensemble: Ensemble, x: Any) -> Array | None:
        """(k, n) float64 scores; None if the kernels should predict x, or report what is wrong with it.

        x: any matrix that ``predict`` of a backend takes. Only dense ones of floats are predicted here.
        """
        if self._work_left < 0 or not is_dense(x, ensemble.cuts.n_columns):
            return None
        self._work_left -= len(x) * max(1, len(ensemble.trees))
        if self._work_left < 0 or BACKGROUND.request(PREDICTION):
            self._work_left = -1
            return None
        return self._forests.of(ensemble).scores(x)
