"""XE-NDCG: the cross entropy of a list's scores with its labels, perturbed at random, a convex bound of NDCG."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.losses.averages import constant
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.ranking import MOST_LABEL, gains_of_labels
from gpuboost.losses.target import finite, require
from gpuboost.records import dataclass
from gpuboost.types import Array

LEAST_REST = 2.0**-26  # of the softmax of all other documents: bounds the terms of Newton's direction


@dataclass(frozen=True, slots=True)
class XENDCG(BaseLoss):
    """-sum p_i log softmax(f)_i, with p_i proportional to 2^y_i - gamma_i (Bruch 2021; LightGBM: ``rank_xendcg``).

    Each document's gamma is uniform on [0, 1), drawn anew in each round, by the number of its row. Minus the logarithm
    of mean NDCG is at most the mean loss, up to a constant (arXiv 1911.09798). A list costs as many operations as it
    has documents, not pairs.

    With Newton steps, the default, g is the gradient and two terms more, and h is rho (1 - rho), rho being the softmax:
    -g / h is Newton's direction with the whole matrix of second derivatives inverted to third order, as in LightGBM.
    The terms of a list sum to at most 6 in size. Other steps have the gradient itself, of the size 1 at most, which is
    an unbiased estimate of that of a fixed, convex objective: the mean over gamma.
    """

    name: ClassVar[str] = "xendcg"
    perturbs_labels: ClassVar[bool] = True
    truncation: ClassVar[int | None] = None
    uses_ideal: ClassVar[bool] = True
    facts: ClassVar[LossFacts] = LossFacts(task="ranking", smoothness=0.5, lipschitz=1.0, default_metric="ndcg")

    @staticmethod
    def pair_weight(gain: float, discount: float) -> float:
        return gain * discount  # of NDCG, by which ``losses`` measures a list

    def gains(self) -> NDArray[np.float64]:
        return gains_of_labels(None)

    def check_target(self, y: Array) -> None:
        labels = finite(y, "XENDCG")
        rule = f"XENDCG needs labels that are whole numbers from 0 to {MOST_LABEL}"
        inside = (labels >= 0.0) & (labels <= MOST_LABEL) & (labels == np.rint(labels))
        require(inside, labels, rule, "Code the grades as 0, 1, 2, ...")

    def start(self, y: Array, weight: Array) -> Array:
        return constant(0.0)  # only differences of scores matter
