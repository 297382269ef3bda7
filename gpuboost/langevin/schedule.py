"""Temperature schedules of Langevin boosting: the factor on the temperature, round by round."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, nan, sqrt
from numbers import Integral
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from gpuboost.arguments import is_one_of, is_real
from gpuboost.elementary import exp, log
from gpuboost.errors import RecipeError, shown
from gpuboost.records import dataclass


@runtime_checkable
class TemperatureSchedule(Protocol):
    """A schedule of this library: a frozen record with the theory of it as text."""

    def __call__(self, round: int, /) -> float:
        """Factor on the temperature in a round, above 0; 0 is the model's first round."""
        ...

    @property
    def constant_from(self) -> int | None:
        """Round from which on the factor is 1; None: there is none."""
        ...

    @property
    def theory(self) -> str:
        """The theory of a chain whose temperature changes so, as text."""
        ...


Schedule: TypeAlias = TemperatureSchedule | Callable[[int], float]
"""A schedule, or a user's function of the round"""


@dataclass(frozen=True, slots=True)
class GeometricAnnealing:
    """Simulated annealing: the temperature begins ``factor`` times as high, and falls geometrically to that given.

    In round t < ``rounds`` it is ``factor ** (1 - t / rounds)`` times that of ``gb.Langevin``; then it stays there. A
    hot start crosses barriers between local optima. Cooling is faster than the logarithmic schedule for which
    convergence to the global optimum is proven (Gelfand and Mitter 1991); once the temperature is constant, the chain
    has the stationary law of that temperature, wherever annealing left it.

    Raises
    ------
    RecipeError
        If factor is not above 0, or rounds not at least 1.
    """

    factor: float
    rounds: int

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, round: int, /) -> float:
        return 1.0 if round >= self.rounds else _power(self.factor, 1.0 - round / self.rounds)

    @property
    def constant_from(self) -> int | None:
        return self.rounds

    @property
    def theory(self) -> str:
        return (
            "geometric annealing cools faster than the logarithmic schedule for which convergence to the global "
            "optimum is proven (Gelfand and Mitter 1991)"
        )


@dataclass(frozen=True, slots=True)
class CyclicalTemperature:
    """Cycles of ``rounds`` rounds: each begins ``factor`` times as hot, and falls geometrically to that given.

    Every cycle looks for another mode, and its last round is at the temperature of ``gb.Langevin`` (after cyclical
    SG-MCMC, Zhang et al., ICLR 2020, whose cycles are of the step and not of the temperature).

    Raises
    ------
    RecipeError
        If factor is not above 0, or rounds not at least 2.
    """

    factor: float
    rounds: int

    def __post_init__(self) -> None:
        _check(self, least=2)

    def __call__(self, round: int, /) -> float:
        return _power(self.factor, 1.0 - round % self.rounds / (self.rounds - 1))

    @property
    def constant_from(self) -> int | None:
        return 0 if self.factor == 1.0 else None

    @property
    def theory(self) -> str:
        return "cycles have no one stationary law, and their convergence is known of cycles of the step only"


def schedule_of(value: Any) -> Schedule | None:
    """None for a constant temperature; raises RecipeError if value is no schedule."""
    if value is None or is_one_of(value, ("constant",)):
        return None
    if isinstance(value, type) or not callable(value):
        rule = "None, 'constant', gb.GeometricAnnealing(10.0, 200), gb.CyclicalTemperature(10.0, 50), or a function"
        raise RecipeError(f"schedule: must be {rule} of the round; got {shown(value)}.")
    schedule: Schedule = value
    return schedule


def deviation_factor(schedule: Schedule | None, round: int) -> float:
    """Factor on the standard deviation of the noise in a round.

    Raises
    ------
    RecipeError
        If a user's function gives anything but a finite number of at least 0.
    """
    if schedule is None:
        return 1.0
    answer: Any = schedule(round)
    factor = _number(answer)
    if not isfinite(factor) or factor < 0.0:
        raise RecipeError(
            f"schedule: the factor on the temperature must be a finite number, 0 or more; got {answer!r} in round "
            f"{round}."
        )
    return sqrt(factor)


def _number(value: Any) -> float:
    """The value as a float; NaN for what is no number."""
    return float(value) if is_real(value) else nan


def _power(base: float, exponent: float) -> float:
    """By polynomials, so that every machine has the same bits."""
    return base if exponent == 1.0 else 1.0 if exponent == 0.0 else exp(exponent * log(base))


def _check(schedule: GeometricAnnealing | CyclicalTemperature, least: int = 1) -> None:
    factor, rounds, name = _number(schedule.factor), cast(Any, schedule.rounds), type(schedule).__name__
    if not isfinite(factor) or not factor > 0.0:
        raise RecipeError(f"schedule: {name} needs a finite factor above 0; got {shown(schedule.factor)}.")
    if isinstance(rounds, bool) or not isinstance(rounds, Integral) or rounds < least:
        raise RecipeError(f"schedule: {name} needs at least {least} rounds; got {rounds!r}.")
    object.__setattr__(schedule, "factor", factor)
    object.__setattr__(schedule, "rounds", int(rounds))
