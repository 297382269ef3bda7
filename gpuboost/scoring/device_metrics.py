"""Metrics that a device computes from scores in its memory: a record of each, made once for the rows of an eval set.

A record has the numbers that do not change from round to round, and ``value``, which computes the metric from the
device's result. ``gpuboost.metrics`` has the definitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.losses.averages import sum_of_pieces
from gpuboost.records import dataclass
from gpuboost.scoring.class_sums import ENTRIES, ClassSums, sums_of_pieces
from gpuboost.scoring.curves import Curve, Integers, area_of_pieces

Floats: TypeAlias = NDArray[np.float64]
Link: TypeAlias = Literal["identity", "log", "logistic", "softmax"]
TermRule: TypeAlias = Literal[
    "squared", "absolute", "relative", "symmetric", "logarithmic", "poisson", "gamma", "tweedie", "quantile",
    "expectile", "huber", "coverage", "width",
]  # fmt: skip
ListRule: TypeAlias = Literal["ndcg", "map", "mrr", "precision", "recall"]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class HitShare:
    """Share of the weight of rows whose class is among the ``places`` of largest score.

    With one output the class is 1 where the score is above 0. Of equal scores the earlier class leads, or the later.
    """

    y: Floats  # (n,) numbers of classes
    weight: Floats | None  # (n,)
    places: int
    later_leads: bool
    largest: float  # weight of a row
    total: float  # weight of all rows

    def value(self, sums: Integers) -> float:
        """The share, from the sums of the three pieces of the hits' weights."""
        return sum_of_pieces(sums.tolist(), self.largest) / self.total


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ClassScore:
    """A function of the weights of rows by class and predicted class, that of the largest score.

    With one output the class is 1 where the score is above 0; of equal scores the earlier class is predicted.
    """

    y: Floats  # (n,) numbers of classes
    weight: Floats | None  # (n,)
    largest: float  # weight of a row
    true: Floats  # (classes,) weight of the rows of each
    occurs: NDArray[np.bool_]  # (classes,) True for those of some row
    of: Callable[[ClassSums], float]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the sums that a device returns: by predicted class, and by whether it is the row's."""
        return len(self.true), 2, ENTRIES

    def value(self, sums: Integers) -> float:
        """The function of the sums of the weights' three pieces and of the numbers of rows."""
        return self.of(sums_of_pieces(sums, self.largest, self.true, self.occurs))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CurveArea:
    """Area under a curve of the thresholds of the first score (``scoring.curves``)."""

    curve: Curve
    ones: NDArray[np.uint8]  # (n,) 1 for rows of class 1
    units: Integers | None  # (n,) weights; None if all are 1
    positive: int  # the weight of the ones
    negative: int  # that of the others

    def value(self, sums: Integers) -> float:
        """The area, from the sums of the three pieces of the curve's terms."""
        return area_of_pieces(self.curve, sums, self.positive, self.negative)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class AreasOfClasses:
    """Mean of the areas under the ROC curves of each of several classes against the rest, by its probability."""

    y: Floats  # (n,) numbers of classes
    units: Integers | None  # (n,) weights; None if all are 1
    positive: tuple[int, ...]  # the weight of each class
    negative: tuple[int, ...]  # that of the others
    mean: Callable[[Floats], float]  # of the (classes,) areas

    def value(self, sums: Integers) -> float:
        """The mean, from (classes, 3) sums of the pieces of the curves' terms."""
        weights = zip(sums, self.positive, self.negative, strict=True)
        return self.mean(np.array([area_of_pieces("roc", *of_class) for of_class in weights]))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ListMean:
    """Mean over lists of a sum over their first places, divided by a number of each list."""

    rule: ListRule
    gain: Floats  # (n,) of each document; 0 and less: not relevant
    start: NDArray[np.int64]  # (lists + 1,)
    places: int  # that count, of each list
    worth: Floats  # (longest list,) of the places, for "ndcg"
    divisors: Floats  # (lists,); 0: the list has no value
    mean: Callable[[Floats], float]  # of the (lists,) values, nan for lists without

    def value(self, values: Floats) -> float:
        """The mean of (lists,) values."""
        return self.mean(values)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TermMean:
    """A function of the weighted mean of a term of each row's prediction and target.

    With the link "softmax" the term is the sum over classes of the squared differences of probabilities and the class.
    """

    rule: TermRule
    link: Link
    scale: float  # of the score, in front of the link
    parameter: float  # of the rule
    y: Floats  # (n,)
    weight: Floats | None  # (n,)
    heaviest: float  # weight of a row
    total: float  # weight of all rows
    of: Callable[[float], float]

    def value(self, found: Integers) -> float:
        """The function of the mean, from (5,): the sums of the three pieces of the terms, and as bits the largest of
        their absolute values, of terms that are not negative and of those that are."""
        above, below = found[3:].view(np.float64).tolist()
        largest = max(above, below) * self.heaviest
        if math.isnan(above) or math.isnan(below) or (above == below == math.inf):
            return self.of(math.nan)
        if math.isinf(largest):
            return self.of(math.copysign(math.inf, above - below))
        total = sum_of_pieces(found[:3].tolist(), largest) if largest > 0.0 else 0.0
        return self.of(total / self.total)


ScoreMetric: TypeAlias = HitShare | ClassScore | CurveArea | AreasOfClasses | TermMean | ListMean


class ValuesOfRounds(Protocol):
    """The values of a metric after each round of a training."""

    def next(self) -> Callable[[], float]:
        """The value after the next round, the first round at first. The function that it returns waits for it."""
        ...
