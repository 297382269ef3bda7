"""Derivatives of losses of rankings that the host computes, whatever machine grows the trees."""

from __future__ import annotations

from typing import final

from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.unbiased_ranking import UnbiasedRanking
from gpuboost.backends.numerics import given_pairs
from gpuboost.losses.protocol import Loss, debiases
from gpuboost.types import Array, TrainingSet


@final
class HostLosses:
    """These losses, on the threads of a pool. The bits are those of ``reference.host_losses``."""

    def __init__(self, pool: ThreadPool) -> None:
        self._unbiased = UnbiasedRanking(pool)

    def derivatives(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> tuple[Array, Array]:
        """(1, n) float32 g and h, weighted. scores: (1, n) float64.

        Raises:
            InputError: if the data lack what the loss needs.
        """
        if debiases(loss):
            return self._unbiased.derivatives(loss, scores, data, curvature)
        return given_pairs.derivatives(loss, scores, data, curvature)
