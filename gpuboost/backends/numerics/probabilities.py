"""Sampling probability rules: from the scores of all rows to the probability with which each row is drawn.

A rule is two pure functions. ``solve`` finds its parameters by a search among the scores, ``probability`` is p of a row
with these parameters. Every machine calls ``solve`` with its own search, but for CUDA, where it is part of a graph.

Scores s are float32, not negative, normal numbers or 0. All arithmetic below is float64 and IEEE, with +, *, /, sqrt
and comparisons only, and sums over rows are integers, so that parameters have the same bits on every machine.

A new rule is a class in this file, with a ``kind`` of its own. CONTRIBUTING.md has the other places.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.threshold import ThresholdSearch
from gpuboost.records import dataclass
from gpuboost.types import Array

FIXED_THRESHOLD, SOLVED_THRESHOLD, GOSS, TRIMMING = 0, 1, 2, 3  # kinds, as in the kernels
FLOOR_SLACK = 1.0 / 64.0  # of a rate that is solved for with a floor: the last step may be a little too long

Parameters: TypeAlias = tuple[float, ...]
"""Parameters of ``probability``, computed from all rows"""

Search: TypeAlias = Literal["given", "newton", "bits"]
"""Search for the parameters on a GPU: none; Newton's steps; the digits of a score, from its highest bits downwards"""


class ProbabilityRule(Protocol):
    """Protocol of a rule from scores to probabilities: a frozen record, compared by value and sent to shards."""

    @property
    def kind(self) -> int:
        """Number of the rule in compiled kernels."""
        ...

    @property
    def search(self) -> Search: ...

    @property
    def settings(self) -> tuple[float, float]:
        """The rule's two settings, for the kernels of a GPU."""
        ...

    @property
    def largest_rate(self) -> float:
        """Upper bound on the mean of p over the rows, unless many scores tie; 1.0 if unknown."""
        ...

    def solve(self, search: ThresholdSearch) -> Parameters:
        """The parameters."""
        ...

    def probability(self, score: Array, parameters: Parameters) -> Array:
        """P of a score, or of an array of scores; float64 in and out."""
        ...


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """p_i = min(1, max(floor, rho s_i)), as in MVS; rho is such that the p_i sum to ``rate`` times the number of rows.

    Exactly one of ``rho`` and ``rate`` is set. 1 / rho is the threshold: rows of at least this score are always drawn.
    """

    rate: float | None = None
    rho: float | None = None
    floor: float = 0.0

    @property
    def kind(self) -> int:
        return FIXED_THRESHOLD if self.rate is None else SOLVED_THRESHOLD

    @property
    def search(self) -> Search:
        return "given" if self.rate is None else "newton"

    @property
    def settings(self) -> tuple[float, float]:
        """Rho or the rate, and the floor."""
        return float((self.rho if self.rate is None else self.rate) or 0.0), self.floor

    @property
    def largest_rate(self) -> float:
        return 1.0 if self.rate is None else min(1.0, self.rate * (1.0 + FLOOR_SLACK * (self.floor > 0.0)))

    def solve(self, search: ThresholdSearch) -> Parameters:
        """Rho and the floor."""
        if self.rate is None:
            return self.settings
        return search.rho_for_rate(self.rate, self.floor), self.floor

    def probability(self, score: Array, parameters: Parameters) -> Array:
        rho, floor = parameters
        return np.minimum(1.0, np.maximum(floor, rho * score))


@dataclass(frozen=True, slots=True)
class GossRule:
    """GOSS: p_i = 1 for the share ``top`` of the rows with the largest scores, and one probability for all others, of
    which a share ``other`` of all rows is drawn. Rows that tie at the threshold share a probability between the two.
    """

    top: float
    other: float

    kind: ClassVar[int] = GOSS
    search: ClassVar[Search] = "bits"

    @property
    def settings(self) -> tuple[float, float]:
        """The share ``top``, and p of the other rows."""
        return self.top, min(1.0, self.other / (1.0 - self.top))

    @property
    def largest_rate(self) -> float:
        return min(1.0, self.top + self.other)

    def solve(self, search: ThresholdSearch) -> Parameters:
        """the threshold, p of a row that has it, and p of a row below."""
        rank, (_, others) = self.top * search.n, self.settings
        least_score, above, ties = search.score_of_rank(rank)
        return least_score, threshold.probability_of_ties(rank, above, ties, others), others

    def probability(self, score: Array, parameters: Parameters) -> Array:
        return _by_threshold(score, *parameters)


@dataclass(frozen=True, slots=True)
class TrimmingRule:
    """p_i = 1 for the rows with the largest scores that together hold ``mass`` of the sum of all; 0 for the others."""

    mass: float

    kind: ClassVar[int] = TRIMMING
    search: ClassVar[Search] = "bits"
    largest_rate: ClassVar[float] = 1.0

    @property
    def settings(self) -> tuple[float, float]:
        return self.mass, 0.0

    def solve(self, search: ThresholdSearch) -> Parameters:
        """See ``GossRule.solve``; rows that tie at the threshold are all drawn."""
        return search.score_of_mass(self.mass), 1.0, 0.0

    def probability(self, score: Array, parameters: Parameters) -> Array:
        return _by_threshold(score, *parameters)


def _by_threshold(score: Array, least_score: float, at_threshold: float, below: float) -> Array:
    return np.where(score > least_score, 1.0, np.where(score == least_score, at_threshold, below))


Proportional, TopAndOthers, Heaviest = ThresholdRule, GossRule, TrimmingRule  # their names in version 0.1
