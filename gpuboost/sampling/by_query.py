"""Rows drawn by query: all documents of a list or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.numerics.probabilities import ThresholdRule
from gpuboost.backends.numerics.random_numbers import uniform_bits
from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.sampling.protocol import explaining_leaf_values, leaves_from, share
from gpuboost.types import Gradients, Sample, TrainingSet


@explaining_leaf_values
@dataclass(frozen=True, slots=True)
class QuerySampling:
    """Whole queries, each drawn with one probability, anew for each tree (LightGBM: ``bagging_by_query``).

    A tree is grown on all documents of the drawn queries. Their sums are not divided by the rate, as in LightGBM, so in
    the search for splits ``reg_lambda`` and ``min_child_weight`` weigh 1 / rate times as much. For rankings only.

    Parameters
    ----------
    rate : float in (0, 1]
    variance_control : "leaf_refit" or "none"
        Source of the leaf values: the exact sums of all rows of a leaf, or those of its drawn rows.

    Raises
    ------
    RecipeError
        If the rate is not in (0, 1], or there is no such variance control.
    """

    rate: float
    variance_control: str = "leaf_refit"

    unbiased: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    follows_gradients: ClassVar[bool] = False
    by_query: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", share("rate", self.rate))
        leaves_from(self.variance_control, ("leaf_refit", "none"))

    @property
    def draws_every_row(self) -> bool:
        return self.rate == 1.0

    def prepared(self, data: TrainingSet) -> DrawQueries:
        """The rule for the queries of these rows."""
        return DrawQueries(np.diff(data.lists()), self.rate, self.variance_control)

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        """Raises TypeError: the queries must be known, which they are after ``prepared``."""
        raise TypeError("QuerySampling.draw: needs the queries; call prepared(data).draw")


@dataclass(frozen=True, slots=True, eq=False)
class DrawQueries:
    """Draws of the queries that have so many rows each."""

    sizes: NDArray[np.int64]
    rate: float
    variance_control: str = "leaf_refit"

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        drawn = uniform_bits(len(self.sizes), key) < np.uint64(int(self.rate * 2.0**32))
        scores = np.repeat(drawn.astype(np.float64), self.sizes)  # p is 1 or 0
        return backend.draw(gradients, 0.0, ThresholdRule(None, 1.0), key, scores)
