"""Minimal cosine angle between a random selection of weak learners and any direction.

Theta = min over c in the range of B of ||[cos(B_j, c)]_j||, the minimal cosine angle (RGBM, section 4.1), and the
tighter Xi = min ||[cos^2(B_j, c)]_j|| >= Theta^2, in a norm of ``norms``. Both are minima of functions that are not
convex: they are exact for orthonormal learners and in one dimension, come from a grid in two and three, and are upper
bounds otherwise. Only ``lower`` certifies a rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import floats
from gpuboost.errors import InputError, shown
from gpuboost.theory.norms import SelectionNorm
from gpuboost.theory.rates import orthonormal_angle, orthonormal_edge

MOST_NUMBERS = 10_000_000
"""Largest number of entries of B for which the minimum is searched."""

CIRCLE, SPHERE = 20_000, 20_000  # points of a grid in two and in three dimensions
STARTS, STEPS = 48, 300  # of the search in more
CHUNK = 4_000_000  # numbers of A u at once

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Angle:
    """A minimum over directions.

    ``kind``: "exact"; "grid", so at most ``value - lower`` away; or "upper bound", found from random starts, which must
    not be used to certify a rate. ``lower`` is a bound from below in any case.
    """

    value: float
    lower: float
    kind: Literal["exact", "grid", "upper bound"]


def minimal_cosine_angle(B: Any, norm: SelectionNorm | None = None) -> Angle:
    """Theta of theorems 4.1 and 4.2.

    Parameters
    ----------
    B : (n, K) array
        Predictions of the learners; columns are scaled to length 1.
    norm : SelectionNorm, optional
        The selection rule's; by default all learners compete.

    Raises
    ------
    InputError
        If B is no matrix of finite numbers, has a column of zeros, or more than 10,000,000 numbers.
    """
    return _least(B, norm, power=1)


def smallest_expected_edge(B: Any, norm: SelectionNorm | None = None) -> Angle:
    """Xi, the least mean square of the cosine: theorem 4.1 holds with it in the place of Theta^2, which is smaller.

    ``lower`` rests on ||a^2|| >= mean over the groups of their largest >= |a|^2 / (groups x the largest group), and
    |B^T c|^2 >= (the least eigenvalue of B B^T that is not 0) |c|^2. Arguments as for ``minimal_cosine_angle``.
    """
    return _least(B, norm, power=2)


def _least(B: Any, rule: SelectionNorm | None, power: int) -> Angle:
    norm = SelectionNorm() if rule is None else rule
    if not isinstance(norm, SelectionNorm):
        raise InputError(f"norm: must be a gb.theory.SelectionNorm or None; got {shown(norm)}.")
    a = _in_range(_checked(B))
    k, rank = a.shape
    groups, largest = norm.sizes(k)
    eigenvalue = max(float(np.linalg.eigvalsh(a.T @ a)[0]), 0.0)
    lower = eigenvalue / (groups * largest)
    if power == 1:
        lower = max(lower, sqrt(eigenvalue / k) if norm.t is None else sqrt(eigenvalue / largest) / groups)
    if rank == 1:
        exact = float(norm(np.abs(a[:, 0]) ** power))
        return Angle(exact, exact, "exact")
    if rank == k and norm.groups is None and np.allclose(a.T @ a, np.eye(k), atol=1e-9):
        t = k if norm.t is None else norm.t
        exact = orthonormal_angle(k, t) if power == 1 else orthonormal_edge(k)
        return Angle(exact, exact, "exact")
    if rank <= 3:
        points, mesh = _circle() if rank == 2 else _sphere()
        sampled = _values(a, points, norm, power)
        value = min(float(sampled.min()), _searched(a, norm, power))
        # the norm of cosines changes by no more than the direction does; that of their squares by twice as much
        return Angle(value, max(lower, value - power * mesh), "grid")
    return Angle(_searched(a, norm, power), lower, "upper bound")


def _checked(B: Any) -> Matrix:
    b = floats("B", B)
    if b.ndim != 2 or b.size == 0 or not np.isfinite(b).all():
        raise InputError(f"B: a matrix of finite numbers, (n, learners), is needed; got shape {b.shape}.")
    if b.size > MOST_NUMBERS:
        raise InputError(
            f"B: the minimum is looked for among at most {MOST_NUMBERS:,} numbers; {b.shape[0]:,} rows x "
            f"{b.shape[1]:,} learners are {b.size:,}. Take fewer rows, or coarser cuts."
        )
    length = np.sqrt((b * b).sum(axis=0))
    if (length == 0.0).any():
        raise InputError(f"B: column {int(np.argmin(length))} is 0 everywhere, so it has no direction.")
    scaled: Matrix = b / length
    return scaled


def _in_range(b: Matrix) -> Matrix:
    """(K, rank): B^T times an orthonormal basis of the range of B."""
    left, sizes, _ = np.linalg.svd(b, full_matrices=False)
    kept: Matrix = b.T @ left[:, sizes > sizes[0] * max(b.shape) * np.finfo(np.float64).eps * 8]
    return kept


def _values(a: Matrix, directions: Matrix, norm: SelectionNorm, power: int) -> Matrix:
    """(m,) for unit vectors (rank, m)."""
    step = max(1, CHUNK // len(a))
    parts = [norm(np.abs(a @ directions[:, i : i + step]) ** power) for i in range(0, directions.shape[1], step)]
    return np.concatenate(parts)


def _circle() -> tuple[Matrix, float]:
    """Half a circle, opposite directions being the same; and how far a direction can be from the nearest point."""
    angle = np.arange(CIRCLE) * (np.pi / CIRCLE)
    return np.stack([np.cos(angle), np.sin(angle)]), 0.5 * np.pi / CIRCLE


def _sphere() -> tuple[Matrix, float]:
    """Half a sphere in rings, with points in proportion to the length of each."""
    rings = int(np.sqrt(SPHERE * np.pi / 4))
    points, height = [], (np.arange(rings) + 0.5) * (0.5 * np.pi / rings)
    for polar in height:
        count = max(1, int(np.ceil(4 * rings * np.sin(polar))))
        around = np.arange(count) * (2.0 * np.pi / count)
        ring = np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.full(count, np.cos(polar))
        points.append(np.stack(ring))
    return np.concatenate(points, axis=1), 0.5 * np.pi / rings


def _searched(a: Matrix, norm: SelectionNorm, power: int) -> float:
    """From random starts, and each of the directions that few learners see, small random steps that go down."""
    rng = np.random.default_rng(0)
    start = np.concatenate([np.linalg.eigh(a.T @ a)[1], rng.normal(size=(a.shape[1], STARTS))], axis=1)
    u = start / np.sqrt((start * start).sum(axis=0))
    best, size = _values(a, u, norm, power), np.full(u.shape[1], 0.5)
    for _ in range(STEPS):
        tried = u + size * rng.normal(size=u.shape) / np.sqrt(len(u))
        tried /= np.sqrt((tried * tried).sum(axis=0))
        now = _values(a, tried, norm, power)
        down = now < best
        u[:, down], best[down] = tried[:, down], now[down]
        size = np.where(down, size * 1.6, np.maximum(size * 0.85, 1e-7))
    return float(best.min())
