"""Checks of the parameters of a schedule."""

from __future__ import annotations

from typing import Any

from gpuboost.arguments import is_integer, is_real
from gpuboost.errors import RecipeError, shown


def checked(policy: Any) -> None:
    """Make ``start`` and ``end`` floats and ``rounds`` an int.

    Raises
    ------
    RecipeError
        If ``start`` or ``end`` is no finite number above 0, or ``rounds`` no integer of at least 1.
    """
    kind = type(policy).__name__
    for name in ("start", "end"):
        value = getattr(policy, name)
        if not is_real(value) or not float(value) > 0.0:
            raise RecipeError(f"learning_rate: {kind} needs a finite {name} above 0; got {shown(value)}.")
        object.__setattr__(policy, name, float(value))
    if not is_integer(policy.rounds, 1):
        raise RecipeError(f"learning_rate: {kind} needs whole rounds, 1 or more; got {shown(policy.rounds)}.")
    object.__setattr__(policy, "rounds", int(policy.rounds))
