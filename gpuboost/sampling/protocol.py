"""Protocol of row-sampling rules, and the queries that they may make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from gpuboost.arguments import explaining, is_one_of, is_real
from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.types import Array, Gradients, Sample

Losses: TypeAlias = Callable[[], Array]
"""() -> (n,) float64, the loss of each row under the current model; computed by the call"""


@dataclass(frozen=True, slots=True)
class SamplingTraits:
    """Attributes that a row-sampling rule may have, and the values that stand for those that it does not have."""

    unbiased: bool | None = None  # True: sums over the sample are unbiased; None: unknown
    bounded: bool | None = None  # True: g / p is bounded; None: unknown. Langevin boosting requires both
    follows_gradients: bool = True  # probabilities depend on the model's gradients or losses
    score: Any = None  # score by which rows are drawn; this and the next three as in ``ImportanceSampling``
    variance_control: str = "leaf_refit"
    lag: int = 1
    eta: float = 1.0
    draws_every_row: bool = False  # True: equal to no sampling at all, as a rate of 1 is
    n_rows: int | None = None  # number of rows that it is for; then it has ``of_rows`` and ``prepared``
    frozen_from: int | None = None  # the first round whose scores later ones keep; then it has ``prepared``
    by_query: bool = False  # True: it draws whole queries; then it has ``prepared``
    repeatable: bool = False  # True: verbs of ``draw`` differ by the key alone, so that a GPU repeats the rounds
    weighs_losses: bool = False  # True: ``draw`` gets a ``Losses`` as its last argument


class Sampling(Protocol):
    """A row-sampling rule. It may have any of the ``SamplingTraits`` as attributes."""

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample: ...


LEAVES_FROM = ("leaf_refit", "none", "horvitz_thompson")


def leaves_from(value: Any, options: tuple[str, ...] = LEAVES_FROM) -> None:
    """Raise RecipeError unless value is one of the options of ``variance_control``."""
    if not is_one_of(value, options):
        names = ", ".join(map(repr, options))
        raise RecipeError(f"sampling: variance_control must be one of {names}; got {value!r}.")


explaining_leaf_values = explaining({"leaf_values": "variance_control"})
"""Decorator of a rule: its leaf values and its control variates are one choice, ``variance_control``."""


SMALLEST = 2.0**-1022
"""Least share above 0: 1 / p is a number."""


def share(name: str, value: Any, *, least: float = 0.0, with_least: bool = False) -> float:
    """The value as a float above ``least`` (or at it) and at most 1, or RecipeError."""
    denormal = is_real(value) and 0.0 < value < SMALLEST
    if not is_real(value) or not (least <= value <= 1.0) or (value == least and not with_least) or denormal:
        bracket = "[" if with_least else "("
        raise RecipeError(f"sampling: the {name} must be in {bracket}{least:g}, 1]; got {value!r}.")
    return float(value)
