"""Largest stable step for stale gradients."""

from __future__ import annotations

from math import pi, sin

from gpuboost.arguments import is_real
from gpuboost.errors import RecipeError


def stability_limit(staleness: float) -> float:
    """The longest stable step on a squared loss whose trees fit the residual fully, each ``staleness`` rounds late.

    The error then obeys ``e_{k+1} = e_k - step * e_{k-s}``, which dies out iff ``step < 2 sin(pi / (2 (2 s + 1)))``:
    2 for s = 0, 1 for 1, 0.445 for 3, 0.101 for 15, 0.0499 for 31, about pi / (2 s + 1) in general. W workers are late
    by W - 1 on average. The step is ``learning_rate`` for Newton and constant steps, and times the loss's smoothness
    for gradient steps. Trees that fit part of the residual, and lateness that varies, forgive a little more.

    Raises:
        RecipeError: if the staleness is below 0.
    """
    if not is_real(staleness, 0.0):
        raise RecipeError(f"staleness: must be a number of rounds, 0 or more; got {staleness!r}.")
    return 2.0 * sin(pi / (2.0 * (2.0 * staleness + 1.0)))
