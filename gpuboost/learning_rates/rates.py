"""The learning rate of each round: of a list, a function of the round, or a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gpuboost.arguments import is_real
from gpuboost.errors import RecipeError, shown

Rates: TypeAlias = tuple[float, ...]
"""The learning rate of each round of a model, from its first round on"""


def rates_of(value: Any, rounds: int) -> Rates:
    """The rates of so many rounds of a model.

    Parameters
    ----------
    value
        A list or array of numbers, or a function of the round, as ``gb.CosineDecay`` is; 0 is the model's first.

    Raises
    ------
    RecipeError
        If it is neither, is too short, or a rate is not a finite number above 0; the message names the round.
    """
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, (list, tuple)) and value:
        if len(value) < rounds:
            raise RecipeError(
                f"learning_rate: a list has a rate for each round of the model, {rounds} here; got {len(value)}. Give "
                "more, or a function of the round."
            )
        return tuple(_checked(rate, round) for round, rate in enumerate(value))
    if isinstance(value, type) or not callable(value):
        rule = "a finite number above 0, a list of them, gb.CosineDecay(0.3, 0.03, 100), or a function of the round"
        raise RecipeError(f"learning_rate: must be {rule}; got {shown(value)}.")
    return listed(value, rounds)


def listed(function: Callable[[int], Any], rounds: int) -> Rates:
    """The answers of the function. Raises RecipeError as ``rates_of``."""
    return tuple(_checked(_answer(function, round), round) for round in range(rounds))


def _answer(function: Callable[[int], Any], round: int) -> Any:
    try:
        return function(round)
    except Exception as error:
        why = f"the function of the round raised {type(error).__name__} in round {round}: {error}"
        raise RecipeError(
            f"learning_rate: {why}. It takes the number of the round, from 0, and returns a rate."
        ) from error


def _checked(rate: Any, round: int) -> float:
    if not is_real(rate) or not float(rate) > 0.0:
        raise RecipeError(
            f"learning_rate: the rate of a round must be a finite number above 0; got {shown(rate)} in round {round}."
        )
    return float(rate)
