"""LambdaMART for clicks: pairs are weighed against the bias of the positions at which documents were shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.losses.ranking import PairwiseLoss, change_of_ndcg, check_labels, gain_table, gains_of_labels
from gpuboost.losses.target import number
from gpuboost.types import Array


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
