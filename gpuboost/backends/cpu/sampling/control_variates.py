"""Control variates on the CPU: the verbs of ``protocol.ControlVariates``, for ranges of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpuboost.kernels.sampling import control_variates as kernels
from gpuboost.types import Array, Gradients, Sample

ByRows = Callable[[int, Callable[[int, int], None]], None]
"""(n, work): call work(start, stop) for parts of n rows"""


def node(gradients: Gradients, sample: Sample, before: Gradients, eta: float, by_rows: ByRows) -> Gradients:
    """q / p (g - g') + eta g' and q / p h of all rows."""
    inputs, share, n = (gradients.g, gradients.h, before.g), _shares(gradients, sample), gradients.g.shape[1]
    g, h = np.empty_like(gradients.g), np.empty_like(gradients.h)
    by_rows(n, lambda a, b: kernels.node_control_variate(*inputs, share, eta, a, b, g, h))
    return Gradients(g, h, gradients.multiplicity)


def horvitz_thompson(gradients: Gradients, sample: Sample, by_rows: ByRows) -> Gradients:
    """q / p g and h of all rows."""
    share, g = _shares(gradients, sample), np.empty_like(gradients.g)
    by_rows(g.shape[1], lambda a, b: kernels.horvitz_thompson(gradients.g, share, a, b, g))
    return replace(gradients, g=g)


def leaf(
    gradients: Gradients, sample: Sample, before: Gradients, eta: float, means: Array, by_rows: ByRows
) -> Gradients:
    """(g - g' + eta mean) / p and h / p of the drawn rows. means (k, n) float64: the mean of g' over the row's leaf."""
    k, n = gradients.g.shape
    rows, share, m = sample.rows, sample.inverse_probability, gradients.multiplicity
    if rows is None or share is None:
        rows, share = np.arange(n, dtype=np.int32), np.ones(n, np.float32)
    else:
        m = None if m is None else m[rows]
    inputs = gradients.g, gradients.h, before.g, means, rows, share, eta
    g, h = np.empty((k, len(rows)), np.float32), np.empty((k, len(rows)), np.float32)
    by_rows(len(rows), lambda a, b: kernels.leaf_control_variate(*inputs, a, b, g, h))
    return Gradients(g, h, m)


def _shares(gradients: Gradients, sample: Sample) -> Array:
    """(n,) float64: q / p of every row."""
    n = gradients.g.shape[1]
    if sample.rows is None:
        return np.ones(n)
    share = np.zeros(n)
    share[sample.rows] = sample.inverse_probability
    return share
