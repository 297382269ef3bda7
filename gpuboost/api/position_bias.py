"""Estimates of the bias of positions by a fitted ranker."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.losses.protocol import DebiasingLoss
from gpuboost.training.rows import LabelledRows
from gpuboost.types import Array, PositionBias


def position_bias(loss: DebiasingLoss, rows: LabelledRows, scores: Array) -> PositionBias:
    """The estimates at the (n,) scores of all rows; rows of weight 0 do not count."""
    from gpuboost.backends.host.threads import ThreadPool
    from gpuboost.backends.host.unbiased_ranking import UnbiasedRanking  # it imports numba

    nothing: Any = None  # bins, which are not read
    data = rows.metadata.training_set(nothing, nothing, np.asarray(rows.y, np.float64))
    kept = rows.metadata.select(np.asarray(scores, np.float64))
    return UnbiasedRanking(ThreadPool(1)).position_bias(loss, kept[None], data)
