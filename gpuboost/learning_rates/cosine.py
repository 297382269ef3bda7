"""Half a period of a cosine from one learning rate to another."""

from __future__ import annotations

from gpuboost.learning_rates.checks import checked
from gpuboost.records import dataclass

_TERMS = 20  # of sin(pi t / 2): the next one is below 2**-60 for t <= 1


@dataclass(frozen=True, slots=True)
class CosineDecay:
    """A learning rate that falls from ``start`` to ``end`` along half a cosine (Loshchilov and Hutter, ICLR 2017).

    In round t < ``rounds``, 0 being the model's first, it is ``end + (start - end) (1 + cos(pi t / rounds)) / 2``; from
    round ``rounds`` on it is ``end``.

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
        rest = _sine(1.0 - round / self.rounds)
        return self.end + (self.start - self.end) * (rest * rest)  # (1 + cos(pi t)) / 2 = sin(pi (1 - t) / 2)**2


def _sine(t: float) -> float:
    """sin(pi t / 2) for t from 0 to 1, by its series: the same bits on every machine."""
    x = 1.5707963267948966 * t
    total = term = x
    for i in range(3, _TERMS + 2, 2):
        term = -term * (x * x) / (i * (i - 1))
        total += term
    return total
