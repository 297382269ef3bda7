"""The keyword arguments that presets share, and the check of a choice."""

from __future__ import annotations

from numbers import Real
from typing import Any

from gpuboost.errors import RecipeError

Parameters = dict[str, Any]
"""Keyword arguments of an estimator"""

PLAIN_TREES: Parameters = {"reg_lambda": 0.0, "min_child_weight": 0.0}
"""Leaves without a ridge or a least weight, as in the papers."""


def check_one_of(name: str, value: Any, options: tuple[Any, ...]) -> None:
    """Raise RecipeError, with the name, if the value is none of the options."""
    comparable = value is None or isinstance(value, (str, Real))  # an array has no one answer
    if not comparable or isinstance(value, bool) or value not in options:
        raise RecipeError(f"{name}: must be one of {', '.join(map(repr, options))}; got {value!r}.")
