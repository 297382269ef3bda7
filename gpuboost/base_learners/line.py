"""How far to go along a direction f, one number a row: F <- F + rho f.

For a sigma-smooth loss and any f with <r, f> > 0, r being the negative gradient, rho = <r, f> / (sigma |f|^2) lowers
the loss by at least e^2 |r|^2 / (2 sigma), e = cos(f, r) being the edge (docs/theory/function_space.md). A Newton step
has the loss's own second derivatives in place of sigma; both are one formula here, since ``Gradients.h`` holds what the
step rule puts there. Sums are exact, so they have no order. A step that searches starts from there, and is the one of
trees: ``backends.numerics.line_search``.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.protocol import Backend
from gpuboost.base_learners.protocol import Now
from gpuboost.losses.averages import exact_sum
from gpuboost.steps import searches
from gpuboost.types import Gradients, TrainingSet

LEAST_EDGE = 1e-7
"""A direction that is closer to a right angle than that is no way down: gradients are float32."""

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


def length(backend: Backend, now: Now, output: int, f: Vector) -> float:
    """rho on all rows, as the step rule has it; 0 if f is no way down."""
    g, h = vectors(backend, now.gradients, output)
    if not edge(g, f) > LEAST_EDGE:
        return 0.0
    slope, curvature = -exact_sum(g * f), exact_sum(h * f * f)
    rho = slope / curvature if curvature > 0.0 else 0.0
    if not searches(now.step):
        return rho
    return backend.length_along(now.loss, now.running.scores, output, rho * f, now.data) * rho


def is_flat(data: TrainingSet) -> bool:
    """Whether all rows weigh the same."""
    return data.weight is None and data.multiplicity is None


def seed_words(words: tuple[int, ...], *more: Any) -> bytes:
    """Bytes that name a stream, for a hash."""
    return b"".join(int(word).to_bytes(4, "little") for word in words) + "".join(f"/{one}" for one in more).encode()
