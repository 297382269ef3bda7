"""The last step of the gradients of ranking losses: a constant curvature, the weights of rows, rounding to float32."""

from __future__ import annotations

import numpy as np

from gpuboost.types import Array, TrainingSet

SMALLEST = 1e-30  # below it float32 would be denormal, or close to it


def without_denormals(x: Array) -> Array:
    """Float32, with 0 in place of numbers of at most ``SMALLEST`` in size: denormal ones and their neighbour."""
    return np.where(np.abs(x) <= SMALLEST, 0.0, x).astype(np.float32)


def weighted_and_rounded(g: Array, h: Array, data: TrainingSet, curvature: float | None) -> tuple[Array, Array]:
    """(1, n) float32 g and h, times the weights of the rows.

    g, h: (n,) float64, without weights. curvature: the value of h in all rows, or None.
    """
    if curvature is not None:
        h = np.full(len(g), curvature)
    if data.weight is not None:
        g, h = g * data.weight, h * data.weight
    return without_denormals(g)[None], without_denormals(h)[None]
