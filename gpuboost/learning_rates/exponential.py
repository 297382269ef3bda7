"""A learning rate that falls by the same factor in every round."""

from __future__ import annotations

from gpuboost.elementary import exp, log
from gpuboost.learning_rates.checks import checked
from gpuboost.records import dataclass


@dataclass(frozen=True, slots=True)
class ExponentialDecay:
    """A learning rate that falls geometrically from ``start`` to ``end``.

    In round t < ``rounds``, 0 being the model's first, it is ``start (end / start)**(t / rounds)``; from round
    ``rounds`` on it is ``end``.

    Raises
    ------
    RecipeError
        If start or end is not a finite number above 0, or rounds not at least 1.
    """

    start: float
    end: float
    rounds: int

    def __post_init__(self) -> None:
        checked(self)

    def __call__(self, round: int, /) -> float:
        if round <= 0 or round >= self.rounds:
            return self.start if round <= 0 else self.end
        return self.start * exp(round / self.rounds * (log(self.end) - log(self.start)))
