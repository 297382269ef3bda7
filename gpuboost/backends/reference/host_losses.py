"""Derivatives of losses of rankings that the host computes, by definition."""

from __future__ import annotations

from gpuboost.backends.numerics import given_pairs
from gpuboost.backends.reference import unbiased_ranking
from gpuboost.losses.protocol import Loss, debiases
from gpuboost.types import Array, TrainingSet


def derivatives(loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> tuple[Array, Array]:
    """(1, n) float32 g and h, weighted. scores: (1, n) float64.

    Raises:
        InputError: if the data lack what the loss needs.
    """
    if debiases(loss):
        return unbiased_ranking.derivatives(loss, scores, data, curvature)
    return given_pairs.derivatives(loss, scores, data, curvature)
