"""An effect for each category of a feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpuboost.backends.smoothing import Smoothing
from gpuboost.components import Space
from gpuboost.learners.families.basis import Axis, calibrated
from gpuboost.learners.families.checks import check_columns, check_df
from gpuboost.learners.families.protocol import Columns, OneFeatureFamily
from gpuboost.losses.averages import exact_sum


@dataclass(frozen=True, slots=True)
class CategoricalRidge(OneFeatureFamily):
    """One effect for each category of a feature, shrunk towards 0: a random effect.

    Missing values count as one more category if they occur in training.

    Parameters
    ----------
    df : float
        Degrees of freedom tr(2S - S'S); a feature of no more categories than that is not penalised.
    columns : tuple of int or str, or None
        Features to which it is offered; None for all that are categorical. A numeric one has an effect for each bin.

    Raises
    ------
    RecipeError
        If df is not above 0.
    """

    df: float = 4.0
    columns: Columns = None

    kind: ClassVar[str] = "categorical"
    for_categories: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_df(self, 0)
        check_columns(self)

    def space(self, axis: Axis, smoothing: Smoothing) -> Space:
        """An effect for each cell."""
        c = len(axis.weight)
        mean = axis.weight / max(exact_sum(axis.weight), 1.0)
        ones = np.ones((c, 1))
        made = Space(self.kind, axis.grid, np.arange(c, dtype=np.int32), ones, mean, ones, 1.0)
        return calibrated(made, axis.weight, self.df, smoothing)
