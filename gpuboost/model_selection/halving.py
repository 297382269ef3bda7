"""Successive halving: many settings for a few rounds, the better ones for more.

K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016.
The resource is the number of rounds. A setting goes on with the trees that it has, so a rung costs the further rounds.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

LEAST_ROUNDS = 10  # of a first rung: fewer say little about a setting


@dataclass(frozen=True, slots=True)
class Rung:
    """A stage of the search: that many settings have that many rounds after it."""

    settings: int
    rounds: int


def rungs(settings: int, rounds: int, reduction: int) -> tuple[Rung, ...]:
    """The stages for this number of settings: each divides the settings, and multiplies the rounds, by ``reduction``.

    The last one has ``rounds`` rounds. There are as many as leave LEAST_ROUNDS to the first and a setting to the last.
    """
    stages = 1
    while rounds // reduction**stages >= LEAST_ROUNDS and settings // reduction**stages >= 1:
        stages += 1
    return tuple(Rung(settings // reduction**i, rounds // reduction ** (stages - 1 - i)) for i in range(stages))


def cost(stages: tuple[Rung, ...]) -> float:
    """Cost in fits of all rounds."""
    spent, before = 0, 0
    for stage in stages:
        spent += stage.settings * (stage.rounds - before)
        before = stage.rounds
    return spent / stages[-1].rounds


def most_settings(budget: float, rounds: int, reduction: int) -> int:
    """The largest number of settings whose stages cost no more than the budget, in fits of all rounds; at least 1.

    The cost rises with the settings between two powers of ``reduction``, at which the number of stages changes, and
    from power to power.
    """

    def cost_of(settings: int) -> float:
        return cost(rungs(settings, rounds, reduction))

    max_settings, power = 1, 1
    while cost_of(power) <= budget:
        fitting = bisect_right(range(power, reduction * power), budget, key=cost_of)
        max_settings, power = power + fitting - 1, reduction * power
    return max_settings
