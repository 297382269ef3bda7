"""Definition of the derivatives of XE-NDCG, in plain NumPy.

Of a list with scores f and labels y let rho = softmax(f), p_i = phi_i / sum phi, phi_i = 2^y_i - gamma_i. The gradient
is t = rho - p, and the matrix of second derivatives diag(rho) - rho rho^T. Newton's direction divides by the whole
matrix, approximately:

    t2_i = rho_i sum_(j != i) t_j / (1 - rho_j),    t3_i = rho_i sum_(j != i) t2_j / (1 - rho_j)

and g = t + t2 + t3, h = rho (1 - rho) (Bruch 2021, arXiv 1911.09798; LightGBM's ``rank_xendcg``). 1 - rho is taken to
be 2^-26 at least. As rho_i <= 1 - rho_j, each of |t|, |t2|, |t3| sums to 2 at most over a list.

Everything is float64. A sum over a list has 32 lanes: document i in lane i % 32, then the lanes pairwise, half by half.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gpuboost.backends.numerics.list_gradients import weighted_and_rounded
from gpuboost.backends.numerics.random_numbers import uniform_bits
from gpuboost.elementary import exp_array
from gpuboost.keys import Key
from gpuboost.losses.ranking import FARTHEST
from gpuboost.losses.xendcg import LEAST_REST
from gpuboost.types import Array, Gradients, TrainingSet

LANES = 32


def gradients(scores: Array, data: TrainingSet, curvature: float | None, key: Key) -> Gradients:
    """(1, n) float32 g and h, weighted. Number i of stream ``key / 0`` is the gamma of row i."""
    g, h = np.zeros(data.n_rows), np.zeros(data.n_rows)
    phi = powers_of(data.y) - uniform_bits(data.n_rows, key / 0).astype(np.float64) * 2.0**-32
    for begin, stop in pairwise(data.lists().tolist()):
        if stop - begin > 1:
            g[begin:stop], h[begin:stop] = _of_list(scores[0, begin:stop], phi[begin:stop], newton=curvature is None)
    return Gradients(*weighted_and_rounded(g, h, data, curvature), data.multiplicity)


def powers_of(y: Array) -> Array:
    """(n,) float64 2^y."""
    return np.asarray(np.ldexp(1.0, np.asarray(y).astype(np.int64)))


def in_lanes(x: Array) -> Any:
    """The sum of float64 numbers, in 32 lanes."""
    lanes = np.zeros(LANES)
    for begin in range(0, len(x), LANES):
        line = x[begin : begin + LANES]
        lanes[: len(line)] += line
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]


def _of_list(f: Array, phi: Array, *, newton: bool) -> tuple[Array, Array]:
    """g and h of the documents of a list, two or more."""
    with np.errstate(invalid="ignore"):  # a list whose best score is infinite
        below = f - f.max()
    power = exp_array(np.where(below < FARTHEST, FARTHEST, below))
    rho = power / in_lanes(power)
    first = rho - phi / in_lanes(phi)
    if not newton:
        return first, rho
    rest = 1.0 - rho
    rest = np.where(rest < LEAST_REST, LEAST_REST, rest)
    ratio = first / rest
    second = rho * (in_lanes(ratio) - ratio)
    ratio = second / rest
    return (first + second) + rho * (in_lanes(ratio) - ratio), rho * rest
