"""The loss of several classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpuboost.elementary import bounded, exp, exp_array, log
from gpuboost.errors import RecipeError
from gpuboost.losses.averages import constant, exact_sum
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.target import finite, require
from gpuboost.records import dataclass
from gpuboost.types import Array

_RAREST = 2.0**-23  # a class that is absent is taken to be this frequent, so that F_0 is finite


def odds(score: float, top: float) -> float:
    """Odds of a class against that of the largest score."""
    return exp(bounded(score - top))


def curvature(p: float, k: int) -> float:
    """h of a class of probability p among k."""
    return k / (k - 1.0) * (p * (1.0 - p))


@dataclass(frozen=True, slots=True)
class Softmax(BaseLoss):
    """log(sum over c of e^(f_c)) - f_y, y in 0 .. K - 1: the negative log-likelihood of K classes, K scores a row.

    g_c = p_c - [c = y], and h_c = K / (K - 1) p_c (1 - p_c). The second derivatives alone would be p_c (1 - p_c); but
    the K trees of a round move all scores at once, and a class gains both by its own rise and by the others' fall.
    The factor is Friedman's (2001, algorithm 6; LightGBM has it too). With two classes one round is exactly
    the Newton step of ``Logistic``. XGBoost takes 2, which is the factor of K = 2 for every K.

    ``smoothness`` is 1/2, the largest eigenvalue of diag(p) - p p^T: it bounds all scores moving together.

    Raises:
        RecipeError: if n_classes is not a whole number, 2 or more.
    """

    n_classes: int

    name: ClassVar[str] = "softmax"
    facts: ClassVar[LossFacts] = LossFacts(
        task="multiclass",
        smoothness=0.5,
        lipschitz=2.0**0.5,
        curvature_change=1.0,
        joint_curvature=2.0,
        default_metric="mlogloss",
        link="softmax",
    )

    def __post_init__(self) -> None:
        n_classes: Any = self.n_classes
        if isinstance(n_classes, bool) or not isinstance(n_classes, (int, np.integer)) or n_classes < 2:
            raise RecipeError(f"n_classes: Softmax needs a whole number, 2 or more; got {n_classes!r}.")
        object.__setattr__(self, "n_classes", int(n_classes))

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    @property
    def log_loss(self) -> Softmax:
        return self

    @staticmethod
    def row_value(y: float, f: Array, a: float) -> float:
        top = f[0]
        for score in f:
            top = score if score > top else top
        total = 0.0
        for score in f:
            total += exp(score - top)
        cost: float = log(total) + (top - f[int(y)])
        return cost

    @staticmethod
    def row_derivatives(y: float, f: Array, g: Array, h: Array, a: float) -> None:
        k = len(f)
        top = f[0]
        for score in f:
            top = score if score > top else top
        total = 0.0
        for c, score in enumerate(f):
            e = odds(score, top)
            g[np.uint64(c)] = e  # an unsigned index cannot be negative, which compilers would provide for
            total += e
        for c, e in enumerate(g):
            p = e / total
            h[np.uint64(c)] = curvature(p, k)
            g[np.uint64(c)] = p
        g[int(y)] -= 1.0

    def check_target(self, y: Array) -> None:
        y = finite(y, "Softmax")
        rule = f"Softmax(n_classes={self.n_classes}) needs labels 0 to {self.n_classes - 1}"
        whole = y == np.rint(y)
        many = bool(np.all(whole & (y >= 0.0)))
        advice = f"Use Softmax(n_classes={int(y.max()) + 1})." if many else "Code the classes as 0, 1, 2, ..."
        require(whole & (y >= 0.0) & (y < self.n_classes), y, rule, advice)

    def start(self, y: Array, weight: Array) -> Array:
        labels, weight = np.asarray(y), np.asarray(weight, dtype=np.float64)
        total = exact_sum(weight)
        share = [exact_sum(weight[labels == c]) / total for c in range(self.n_classes)]
        return np.concatenate([constant(log(max(p, _RAREST))) for p in share])

    def inverse_link(self, scores: Array) -> Array:
        e = exp_array(scores - np.max(scores, axis=0))
        total = e[0].copy()
        for c in range(1, self.n_classes):  # in this order on every machine
            total += e[c]
        return np.ascontiguousarray((e / total).T)
