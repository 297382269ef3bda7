"""The calibration scores of a conformal predictor, and their quantiles, which hold in finite samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.weights import check_weight
from gpuboost.errors import InputError

Floats = NDArray[np.float64]

_ROUNDING = 1e-12  # relative: 0.9 * 10 rows are 9, whatever the product is rounded to


@dataclass(frozen=True, slots=True)
class CalibrationScores:
    """Scores of the calibration rows in increasing order, and the weight up to each."""

    scores: Floats  # (n,)
    weight: Floats  # (n,)

    @staticmethod
    def of(scores: Floats, sample_weight: Any) -> CalibrationScores:
        """scores, sample_weight (n,) in any order. Raises InputError if the weights are invalid."""
        weight = check_weight(sample_weight, len(scores))
        order = np.argsort(scores, kind="stable")
        return CalibrationScores(scores[order], np.ones(len(scores)) if weight is None else weight[order])

    def quantile(self, coverage: float, weight: Any = 1.0) -> Floats:
        """The least score s with (weight of scores <= s) >= coverage (W + weight), W being the weight of all rows.

        Without weights it is the ceil((n + 1) coverage)-th smallest score (Vovk et al. 2005; Lei et al. 2018, section
        2.2); with weights the quantile of Tibshirani et al. (2019, lemma 1), whose new row has the given ``weight``.
        Infinite where there is none.

        weight: a number, or (m,) one for each new row; the result has its shape.
        """
        reached = np.cumsum(self.weight)
        asked = coverage * (reached[-1] + np.asarray(weight, dtype=np.float64)) * (1.0 - _ROUNDING)
        place = np.searchsorted(reached, asked)
        quantiles: Floats = np.append(self.scores, np.inf)[place]
        return quantiles

    def check_enough(self, coverage: float) -> None:
        """Raise InputError if the intervals of this coverage would be infinite."""
        needed = math.ceil(coverage / (1.0 - coverage) * (1.0 - _ROUNDING))
        total = float(self.weight.sum())
        if total * (1.0 + _ROUNDING) < needed:
            rows = "rows" if (self.weight == 1.0).all() else "as the weight of all rows"
            raise InputError(
                f"X_cal: {total:g} {rows} are too few for a coverage of {coverage:g}: intervals would be infinite. At "
                f"least {needed} are needed, coverage / (1 - coverage)."
            )
