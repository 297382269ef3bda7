"""A straight line in one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpuboost.backends.smoothing import Smoothing
from gpuboost.components import Space
from gpuboost.learners.families.basis import Axis, space_on
from gpuboost.learners.families.checks import check_columns
from gpuboost.learners.families.protocol import Columns, OneFeatureFamily
from gpuboost.losses.averages import exact_sum


@dataclass(frozen=True, slots=True)
class Linear(OneFeatureFamily):
    """A straight line in one numeric feature: slope and constant, not penalised.

    Degrees of freedom: 1 beside the constant.

    Parameters
    ----------
    columns : tuple of int or str, or None
        Features to which it is offered; None for all that are numeric.
    """

    columns: Columns = None

    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        check_columns(self)

    def space(self, axis: Axis, smoothing: Smoothing) -> Space:
        """Constant and slope; the latter's coefficient is that of x."""
        known = axis.weight[: len(axis.at)]
        basis = np.column_stack([np.ones(len(axis.at)), axis.at - exact_sum(known * axis.at) / exact_sum(known)])
        return space_on(self.kind, axis, np.zeros(len(axis.at), np.int32), basis, np.zeros((2, 2)), 0.0)
