"""Answers to callers: functions of a model's scores on the host, with the rules by which a device computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from gpuboost.losses.base import Link
from gpuboost.types import Array

Rule: TypeAlias = Literal["score", "rows", "difference", "predictions", "two_classes", "classes", "labels", "signs"]
"""The rule by which a device computes an answer of (k, n) scores.

"score": the first scores (n,); "rows": (n, k), or (n,) of one score; "difference": (n,) the second scores less the
first; "predictions": the ``link`` of each score, with the shape of "rows"; "two_classes": (n, 2) probabilities by the
logistic link of the first score; "classes": (n, k) probabilities, the softmax; "labels": (n,) of ``classes``; "signs":
(n, k) int64, 1 where a score is above 0.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A function of the (k, n) float64 scores of n rows, and the rule by which a device computes the same bits."""

    of_scores: Callable[[Array], Any]  # of scores on the host
    rule: Rule | None = None  # None: scores come to the host
    link: Link = "identity"  # of "predictions"
    scale: float = 1.0  # of the scores, in front of a logistic link
    classes: NDArray[Any] | None = None  # (K,) numbers, of "labels"

    def __call__(self, scores: Array) -> Any:
        return self.of_scores(scores)
