"""With what probability each row is drawn, given the size of its score: three rules, as records for every machine.

Scores s are float32, not negative, normal numbers or 0. All arithmetic below is float64 and IEEE, with +, *, /, sqrt
and comparisons only, and sums over rows are integers, so that a threshold has the same bits on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Proportional:
    """p_i = min(1, max(floor, rho s_i)), with rho such that the p_i sum to ``rate`` times the number of rows.

    Or rho is given, and there is nothing to solve. Exactly one of the two is.
    """

    rate: float | None = None
    rho: float | None = None
    floor: float = 0.0


@dataclass(frozen=True, slots=True)
class TopAndOthers:
    """p_i = 1 for the share ``top`` of the rows with the largest scores, and the same for all others: a share ``other``
    of all rows is drawn from them. Rows that tie at the border have a probability between, the same for each.
    """

    top: float
    other: float


@dataclass(frozen=True, slots=True)
class Heaviest:
    """p_i = 1 for the rows with the largest scores that together hold ``mass`` of the sum of all; 0 for the others."""

    mass: float


Odds: TypeAlias = Proportional | TopAndOthers | Heaviest
