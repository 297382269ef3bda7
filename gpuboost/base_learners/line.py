"""The length rho of the step along a direction f, one number a row: F <- F + rho f.

For a sigma-smooth loss and any f with <r, f> > 0, r being the negative gradient, rho = <r, f> / (sigma |f|^2) lowers
the loss by at least e^2 |r|^2 / (2 sigma), e = cos(f, r) being the edge (docs/theory/function_space.md). A Newton step
has the loss's own second derivatives in place of sigma; both are one formula here, since ``Gradients.h`` holds the
curvature of the step rule. Sums are exact, so their order does not matter. A line search starts from there, and is the
one of trees: ``backends.numerics.line_search``.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.protocol import Backend
from gpuboost.base_learners.protocol import RoundState
from gpuboost.losses.averages import exact_sum
from gpuboost.steps import Step, searches
from gpuboost.types import Gradients, TrainingSet

LEAST_EDGE = 1e-7
"""Smallest cosine of a direction of descent; below it, rounding of float32 gradients decides the sign."""

Vector = NDArray[np.float64]


def vectors(backend: Backend, gradients: Gradients, output: int) -> tuple[Vector, Vector]:
    """(m,) float64 g and h of one output in the host's memory, times the multiplicity of the rows."""
    g, h = (np.asarray(backend.to_host(part[output]), np.float64) for part in (gradients.g, gradients.h))
    if gradients.multiplicity is None:
        return g, h
    m = backend.to_host(gradients.multiplicity)
    return g * m, h * m


def edge(g: Vector, f: Vector) -> float:
    """cos(-g, f), 0 if one of them is 0."""
    size = sqrt(exact_sum(g * g)) * sqrt(exact_sum(f * f))
    return -exact_sum(g * f) / size if size > 0.0 else 0.0


def length(backend: Backend, state: RoundState, step: Step, output: int, f: Vector) -> float:
    """rho on all rows, by the step rule; 0 if the loss does not fall along f."""
    g, h = vectors(backend, state.gradients, output)
    if not edge(g, f) > LEAST_EDGE:
        return 0.0
    slope, curvature = -exact_sum(g * f), exact_sum(h * f * f)
    rho = slope / curvature if curvature > 0.0 else 0.0
    if not searches(step):
        return rho
    return backend.length_along(state.loss, state.scores.base, output, rho * f, state.data) * rho


def is_flat(data: TrainingSet) -> bool:
    """True if all rows have the same weight."""
    return data.weight is None and data.multiplicity is None


def seed_words(words: tuple[int, ...], *more: Any) -> bytes:
    """Bytes that name a stream, for a hash."""
    return b"".join(int(word).to_bytes(4, "little") for word in words) + "".join(f"/{part}" for part in more).encode()
