"""Derivatives of losses of rankings that the host computes, whatever machine grows the trees."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, final

from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.numerics import given_pairs
from gpuboost.losses.protocol import Loss, debiases
from gpuboost.types import Array, TrainingSet

if TYPE_CHECKING:
    from gpuboost.backends.host.unbiased_ranking import UnbiasedRanking


@final
class HostLosses:
    """These losses, on the threads of a pool. The bits are those of ``reference.host_losses``."""

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool

    def derivatives(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> tuple[Array, Array]:
        """(1, n) float32 g and h, weighted. scores: (1, n) float64.

        Raises:
            InputError: if the data lack what the loss needs.
        """
        if debiases(loss):
            return self._unbiased.derivatives(loss, scores, data, curvature)
        return given_pairs.derivatives(loss, scores, data, curvature)

    @cached_property
    def _unbiased(self) -> UnbiasedRanking:
        from gpuboost.backends.host.unbiased_ranking import UnbiasedRanking  # its kernels are for few losses

        return UnbiasedRanking(self._pool)
