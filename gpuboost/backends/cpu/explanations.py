"""Contributions of features to predictions, and of pairs of features, by the threads of a pool."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.prediction.contributions import Explainer, contributions, interactions
from gpuboost.backends.prediction.memo import Memo
from gpuboost.backends.prediction.raw_values import rows_of
from gpuboost.types import Array, Ensemble


class Explanations:
    """The verbs ``contributions`` and ``interactions``."""

    def __init__(self, pool: ThreadPool) -> None:
        self._pool, self._explainers = pool, Memo(Explainer.of)

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        """See the verb."""
        explainer, rows = self._explainers.of(ensemble), rows_of(x)
        out = np.empty((x.shape[0], ensemble.n_outputs, ensemble.cuts.n_columns + 1))
        self._pool.run(lambda part: contributions(explainer, rows, *share(len(out), part, self._pool.size), out))
        return out

    def interactions(self, ensemble: Ensemble, x: Any) -> Array:
        """See the verb."""
        explainer, rows, side = self._explainers.of(ensemble), rows_of(x), ensemble.cuts.n_columns + 1
        out = np.empty((x.shape[0], ensemble.n_outputs, side, side))
        self._pool.run(lambda part: interactions(explainer, rows, *share(len(out), part, self._pool.size), out))
        return out
