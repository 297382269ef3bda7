"""Losses of whole lists, for learning to rank. A list holds the documents of one query, with relevance labels.

For two documents i, j of a list with labels y_i > y_j, the pair costs w_ij log(1 + e^(-sigma (f_i - f_j))). The losses
differ in w_ij. It is held constant in derivatives, even if it depends on the scores.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_one_of
from gpuboost.errors import RecipeError
from gpuboost.losses.averages import constant
from gpuboost.losses.base import LATER, BaseLoss, LossFacts
from gpuboost.losses.protocol import PairWeight
from gpuboost.losses.target import finite, number, require
from gpuboost.records import dataclass, restored
from gpuboost.types import Array

MOST_LABEL = 31  # of the default gains: the largest gain is 2**31 - 1
MOST_GRADES = 2**24  # labels below it are exact in float32
NEAR = 0.01  # score differences well below this do not change a pair's weight
FARTHEST = -50.0  # least score times sigma relative to the list's best; lower ones are clipped
FURTHEST = -4096.0  # the same for scores, in the distance of two documents

Numbers = NDArray[np.float32]


def pair_derivatives(better: Numbers, worse: Numbers, weight: Numbers, apart: Numbers) -> tuple[Numbers, Numbers]:
    """The derivatives of weight / apart log(1 + e^(-d)), d the better document's score less the worse one's,
    times sigma.

    better, worse: e^(sigma f) of the two, up to a common factor. Returns -d/dd, which pulls the better document up and
    the worse one down, and the second derivative, which both have. One division for both, as it costs the most. All
    float32, and none a denormal number: a weight is 0 or 2^-28 or more, ``FARTHEST`` and ``FURTHEST`` do the rest.
    """
    inverse = np.float32(1.0) / ((better + worse) * apart)
    first = weight * (worse * inverse)
    return first, first * (better * (inverse * apart))


class PairwiseLoss(BaseLoss, ABC):
    """The members that losses of pairs share, for a dataclass with fields ``sigma``, ``truncation``, ``normalise``."""

    __slots__ = ()

    facts: ClassVar[LossFacts] = LossFacts(task="ranking", convex=False, default_metric="ndcg")

    sigma: float
    truncation: int | None
    normalise: bool

    def _check_pairs(self) -> None:
        """Make the three fields a float, an int or None, and a bool. Raises RecipeError if one is out of its range."""
        loss = type(self).__name__
        object.__setattr__(self, "sigma", _positive(loss, self.sigma))
        object.__setattr__(self, "truncation", truncation_of(loss, self.truncation))
        object.__setattr__(self, "normalise", flag(loss, "normalise", self.normalise))

    @property
    def parameter(self) -> float:
        return self.sigma

    @property
    def evens_lists(self) -> bool:
        return self.normalise

    def start(self, y: Array, weight: Array) -> Array:
        return constant(0.0)  # only differences of scores matter


def change_of_ndcg(gain: float, discount: float) -> float:
    """The change of DCG if two documents are exchanged, from the differences of their gains and discounts."""
    return gain * discount


def change_of_map(gain: float, precision: float) -> float:
    """That of the sum of precisions. Rounding may give the difference a sign."""
    return gain * abs(precision)


@dataclass(frozen=True, slots=True)
class LambdaMART(PairwiseLoss):
    """w_ij = the change of a metric if the two are exchanged: NDCG (Burges 2010), or MAP.

    NDCG: |G_i - G_j| |D_i - D_j| / (ideal DCG). G is the gain of a label, D = 1 / log2(1 + rank) the discount of a
    place; the ideal DCG is truncated as the pairs are. MAP, of labels 0 and 1 (XGBoost: ``rank:map``): the change of
    the sum of precisions at relevant documents, divided by their number; all places count in it. Only pairs with a
    document among the first ``truncation`` places count, so a list costs truncation x documents.

    Args:
        sigma: steepness of the logistic function.
        truncation: places that count; None for all of them.
        gain: gain of label 0, 1, 2, ..., not decreasing; None for 2^label - 1, labels up to 31. Of NDCG only.
        normalise: divide w_ij by 0.01 + |f_i - f_j|, and multiply a list's derivatives by log2(1 + S) / S, where
            S = 2 sum sigma w p, so that long lists do not dominate (LightGBM's ``lambdarank_norm``).
        metric: "ndcg" or "map".

    Raises:
        RecipeError: if one of them is out of its range.
    """

    sigma: float = 1.0
    truncation: int | None = 30
    gain: tuple[float, ...] | None = None
    normalise: bool = True
    metric: str = field(default="ndcg", metadata=LATER)

    name: ClassVar[str] = "lambdamart"
    uses_ideal: ClassVar[bool] = True

    __setstate__ = restored

    def __post_init__(self) -> None:
        self._check_pairs()
        object.__setattr__(self, "gain", gain_table("LambdaMART", self.gain))
        if not is_one_of(self.metric, ("ndcg", "map")):
            raise RecipeError(f"metric: LambdaMART has pair weights of 'ndcg' or 'map'; got {self.metric!r}.")
        if self.metric == "map" and self.gain is not None:
            raise RecipeError(
                f"gain: MAP has no gains of labels; got {self.gain!r}. Leave it out, or use metric='ndcg'."
            )

    @property
    def prefers_close(self) -> bool:
        return self.normalise

    @property
    def weighs_precision(self) -> bool:
        return self.metric == "map"

    @property
    def pair_weight(self) -> PairWeight:
        return change_of_map if self.metric == "map" else change_of_ndcg

    @property
    def default_metric(self) -> str:
        return self.metric

    def gains(self) -> NDArray[np.float64]:
        return np.array([0.0, 1.0]) if self.metric == "map" else gains_of_labels(self.gain)

    def check_target(self, y: Array) -> None:
        if self.metric == "map":
            labels = finite(y, "LambdaMART")
            rule = "LambdaMART(metric='map') needs labels 0 and 1"
            require((labels == 0.0) | (labels == 1.0), labels, rule, "Pass y > 0, or use metric='ndcg'.")
        else:
            check_labels("LambdaMART", y, len(self.gains()))


@dataclass(frozen=True, slots=True)
class UnbiasedLambdaMART(PairwiseLoss):
    """LambdaMART whose w_ij is divided by t+ of the position of i and t- of that of j (Hu et al. 2019, arXiv
    1809.05818; XGBoost: ``lambdarank_unbiased``).

    y are clicks; positions are those of ``fit(..., position=)``, or the order of a query's rows. In each round, with
    C_pq the cost of all pairs of a document clicked at position p and one passed over at q, both are the solution of

        t+_p = (sum_q C_pq / t-_q / the same of p = 0)^(1 / (1 + bias_norm)), and t-_q likewise,

    found by 10 sweeps from 1, and are held between 2^-7 and 2^7. So they are functions of the scores: a fit that is
    continued is that which was not interrupted. Positions from 100 on count as position 99. Derivatives are computed by
    the host, also for a training on a GPU.

    Args:
        sigma, truncation, gain: as of ``LambdaMART``.
        normalise: as of ``LambdaMART``; it hides part of the bias. The cost C has no distance of scores in any case.
        bias_norm: 0 or more; larger ones bring the estimates nearer to 1 (XGBoost: ``lambdarank_bias_norm``).

    Raises:
        RecipeError: if one of them is out of its range.
    """

    sigma: float = 1.0
    truncation: int | None = 30
    gain: tuple[float, ...] | None = None
    normalise: bool = False
    bias_norm: float = 1.0

    name: ClassVar[str] = "unbiased_lambdamart"
    uses_ideal: ClassVar[bool] = True
    weighs_precision: ClassVar[bool] = False
    on_host: ClassVar[bool] = True
    debiases: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_pairs()
        object.__setattr__(self, "gain", gain_table("UnbiasedLambdaMART", self.gain))
        norm = number("UnbiasedLambdaMART", "bias_norm", self.bias_norm)
        if norm < 0.0:
            raise RecipeError(f"bias_norm: UnbiasedLambdaMART needs a number of 0 or more; got {self.bias_norm!r}.")
        object.__setattr__(self, "bias_norm", norm)

    @property
    def prefers_close(self) -> bool:
        return self.normalise

    @staticmethod
    def pair_weight(gain: float, discount: float) -> float:
        return change_of_ndcg(gain, discount)

    def gains(self) -> NDArray[np.float64]:
        return gains_of_labels(self.gain)

    def check_target(self, y: Array) -> None:
        check_labels("UnbiasedLambdaMART", y, len(self.gains()))


@dataclass(frozen=True, slots=True)
class PairwiseLogistic(PairwiseLoss):
    """w_ij = 1: the negative log-likelihood of the pairs' order (RankNet, Burges et al. 2005).

    Every pair counts by default, which costs documents^2 a list; with ``truncation``, pairs with a document among
    the first ``truncation`` places.

    Args:
        sigma: steepness of the logistic function.
        truncation: places that count; None for all of them.
        normalise: shrink the derivatives of a list as ``LambdaMART`` does; pair weights stay 1.

    Raises:
        RecipeError: if one of them is out of its range.
    """

    sigma: float = 1.0
    truncation: int | None = None
    normalise: bool = True

    name: ClassVar[str] = "pairwise_logistic"
    uses_ideal: ClassVar[bool] = False
    weighs_precision: ClassVar[bool] = False
    prefers_close: ClassVar[bool] = False  # it helps LambdaMART and hurts here: docs/losses.md

    def __post_init__(self) -> None:
        self._check_pairs()

    @staticmethod
    def pair_weight(gain: float, discount: float) -> float:
        return 1.0

    def gains(self) -> NDArray[np.float64]:
        return np.empty(0)

    def check_target(self, y: Array) -> None:
        _whole(finite(y, "PairwiseLogistic"), "PairwiseLogistic")
        rule = f"PairwiseLogistic tells labels up to {MOST_GRADES} apart"
        require(np.asarray(y) <= MOST_GRADES, np.asarray(y), rule, "Number the grades from 0.")


def gains_of_labels(gain: tuple[float, ...] | None) -> NDArray[np.float64]:
    """(labels,) the gain of each label; None for 2^label - 1."""
    return np.array([2.0**label - 1.0 for label in range(MOST_LABEL + 1)] if gain is None else gain)


def check_labels(loss: str, y: Array, labels: int) -> None:
    """Refuse labels that are not whole numbers below ``labels``.

    Raises:
        InputError: naming the rule, the row and its value.
    """
    _whole(finite(y, loss), loss)
    advice = f"Pass {loss}(gain=[...]), one number for each label, or use fewer grades."
    rule = f"{loss} knows the gain of labels 0 to {labels - 1}"
    require(np.asarray(y) <= labels - 1, np.asarray(y), rule, advice)


def _whole(y: NDArray[np.float64], loss: str) -> None:
    """Refuse labels that are not 0, 1, 2, ..."""
    rule = f"{loss} needs labels that are whole numbers, 0 or more (0 for what is of no use)"
    require((y >= 0.0) & (y == np.rint(y)), y, rule, "Code the grades as 0, 1, 2, ...")


def _positive(loss: str, sigma: Any) -> float:
    positive = number(loss, "sigma", sigma)
    if not positive > 0.0:
        raise RecipeError(f"sigma: {loss} needs a positive number; got {sigma!r}.")
    return positive


def truncation_of(loss: str, value: Any) -> int | None:
    """The number of places that count, or None. Raises RecipeError if it is neither."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise RecipeError(f"truncation: {loss} needs a whole number of places, 1 or more, or None; got {value!r}.")
    return int(value)


def flag(loss: str, name: str, value: Any) -> bool:
    """An argument that is True or False. Raises RecipeError if it is neither."""
    if not isinstance(value, (bool, np.bool_)):
        raise RecipeError(f"{name}: {loss} needs True or False; got {value!r}.")
    return bool(value)


def _is_short(value: Any) -> bool:
    return not value.shape or len(value) < 2 if isinstance(value, np.ndarray) else len(value) < 2


def gain_table(loss: str, value: Any) -> tuple[float, ...] | None:
    """The gains of labels as a tuple; None if they are None. Raises RecipeError if they fall, or are not numbers."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)) or _is_short(value):
        raise RecipeError(f"gain: {loss} needs two numbers or more, one for each label from 0; got {value!r}.")
    table = tuple(number(loss, "gain", gain) for gain in value)
    if table[0] < 0.0 or any(b < a for a, b in pairwise(table)) or table[-1] <= table[0]:
        raise RecipeError(
            f"gain: {loss} needs numbers of 0 or more that do not fall, nor are all equal; got {value!r}."
        )
    return table
