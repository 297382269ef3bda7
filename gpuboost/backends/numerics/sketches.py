"""Sums over outputs that sketches of gradients are made of, each in one order on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpuboost.kernels.gradients import pointwise
from gpuboost.types import Array, Gradients

ROWS = 1 << 13  # of a block, which stays in the cache


def squared_norms(gradients: Gradients) -> Array:
    """(k,) float64 sums over the rows of g^2, a row of multiplicity m counting m times."""
    return np.array([pointwise.sum_in_order(squares) for squares in squared(gradients)])


def squared(gradients: Gradients) -> Iterator[Array]:
    """(m,) float64 g^2 times the multiplicity, output by output."""
    times = 1.0 if gradients.multiplicity is None else gradients.multiplicity.astype(np.float64)
    return (np.square(g.astype(np.float64)) * times for g in gradients.g)


def chosen_outputs(gradients: Gradients, outputs: Array, factors: Array) -> Gradients:
    """The gradients of (s,) outputs, g times (s,) float64 factors."""
    g = (gradients.g[outputs].astype(np.float64) * factors[:, None]).astype(np.float32)
    return replace(gradients, g=g, h=gradients.h[outputs])


def projected_outputs(gradients: Gradients, matrix: Array) -> Gradients:
    """Sums of the outputs' g by (k, s) factors, each with the mean of h."""
    mean = mean_curvature(gradients.h)
    return replace(gradients, g=projected(gradients.g, matrix), h=np.repeat(mean[None], matrix.shape[1], axis=0))


def projected(g: Array, matrix: Array) -> Array:
    """(s, m) float32 sums over j of matrix[j] g[j], added in the order of the outputs. g (k, m); matrix (k, s)."""
    out = np.empty((matrix.shape[1], g.shape[1]), np.float32)
    for begin in range(0, g.shape[1], ROWS):
        block = g[:, begin : begin + ROWS].astype(np.float64)
        total = np.zeros((matrix.shape[1], block.shape[1]))
        for values, by in zip(block, matrix, strict=True):
            total += by[:, None] * values
        out[:, begin : begin + ROWS] = total
    return out


def mean_curvature(h: Array) -> Array:
    """(m,) float32 means over the outputs, added in their order. h (k, m)."""
    total = np.zeros(h.shape[1])
    for values in h:
        total += values
    return (total / len(h)).astype(np.float32)
