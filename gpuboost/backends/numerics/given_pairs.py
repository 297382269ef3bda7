"""Definition of the derivatives of given pairs: sums over the pairs of each row, in the order of pairs, in float64."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.numerics.list_gradients import weighted_and_rounded
from gpuboost.elementary import exp_array
from gpuboost.errors import InputError
from gpuboost.losses.protocol import Loss
from gpuboost.types import Array, TrainingSet


def derivatives(loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> tuple[Array, Array]:
    """(1, n) float32 g and h, weighted; first the pairs that a row loses, less those that it wins.

    Raises:
        InputError: if the data have no pairs.
    """
    pairs = data.pairs
    if pairs is None:
        raise InputError(f"pairs: loss {loss.name!r} learns from given pairs; pass fit(..., pairs=).")
    f, n, sigma = scores[0], data.n_rows, loss.parameter
    with np.errstate(invalid="ignore"):  # infinite scores are refused as such
        ahead = sigma * (f[pairs.winner] - f[pairs.loser])
    small = exp_array(-np.abs(ahead))
    wrong = np.where(ahead >= 0.0, small, 1.0) / (1.0 + small)
    weight = np.ones(len(ahead)) if pairs.weight is None else pairs.weight
    pull = (sigma * weight) * wrong
    bend = (sigma * sigma * weight) * (small / ((1.0 + small) * (1.0 + small)))
    g = np.bincount(pairs.loser, pull, n) - np.bincount(pairs.winner, pull, n)
    h = np.bincount(pairs.loser, bend, n) + np.bincount(pairs.winner, bend, n)
    return weighted_and_rounded(g, h, data, curvature)
