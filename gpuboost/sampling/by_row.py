"""Probabilities and factors that the user gives for each row."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.numerics.probabilities import ThresholdRule
from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError, shown
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.sampling.protocol import explaining_leaf_values, leaves_from
from gpuboost.types import Array, Gradients, Sample, TrainingSet


@explaining_leaf_values
@dataclass(frozen=True, slots=True, repr=False)
class RowProbabilities:
    """Row i is drawn with probability p_i, in every round, and weighted by 1 / p_i: importance sampling by hand.

    Rows of probability 1 are in every sample. A ``validation_fraction`` and rows of weight 0 take their probabilities
    with them. A model file does not hold p, which belongs to the training rows; a loaded model has ``sampling=None``.

    Parameters
    ----------
    p : (n,) numbers from 0 to 1, not all 0
        One for each row of X. A row of probability 0 is never drawn, and sums are then biased.
    variance_control : "leaf_refit", "none" or "horvitz_thompson"
        Source of the leaf values, as of ``gb.UniformSampling``.

    Raises
    ------
    RecipeError
        If p is not such an array; from ``fit``, if it has another number of rows than X.
    """

    p: Any = field(repr=False)
    variance_control: str = "leaf_refit"

    bounded: ClassVar[bool] = True
    follows_gradients: ClassVar[bool] = False  # p is the same for every F, so a chain's law is that of all rows

    def __post_init__(self) -> None:
        p = numbers_of_rows("p", self.p)
        if not (p <= 1.0).all() or not p.any():
            raise RecipeError("sampling: p must be probabilities from 0 to 1, not all 0; " + _range(p))
        leaves_from(self.variance_control)
        object.__setattr__(self, "p", tuple(p.tolist()))

    def __repr__(self) -> str:
        drawn = f"{len(self.p)} rows, {np.mean(self.p):.4g} of them drawn"
        return f"RowProbabilities({drawn}, variance_control={self.variance_control!r})"

    @property
    def unbiased(self) -> bool:
        return all(p > 0.0 for p in self.p)

    @property
    def n_rows(self) -> int:
        return len(self.p)

    def of_rows(self, rows: NDArray[np.int64]) -> Self:
        """The rule for some of the rows."""
        return replace(self, p=np.asarray(self.p)[rows])

    def prepared(self, data: TrainingSet) -> DrawByRow:
        """The rule with p as an array, checked against the training rows."""
        p = checked(self.p, data.n_rows)
        # draw multiplies scores by the multiplicity
        return DrawByRow(p if data.multiplicity is None else p / data.multiplicity, self.variance_control)

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        p, m = checked(self.p, gradients.g.shape[1]), gradients.multiplicity
        return DrawByRow(p if m is None else p / backend.to_host(m)).draw(backend, gradients, key)


@dataclass(frozen=True, slots=True, eq=False)
class DrawByRow:
    """Draws with known probabilities: scores (n,) float64, p over the multiplicity."""

    scores: NDArray[np.float64]
    variance_control: str = "leaf_refit"

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        return backend.draw(gradients, 0.0, ThresholdRule(None, 1.0), key, self.scores)


def numbers_of_rows(name: str, value: Any) -> Array:
    """(n,) float64 finite numbers, 0 or more; raises RecipeError otherwise."""
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        rule = "must be an array of one finite number, 0 or more, per row"
        raise RecipeError(f"sampling: {name} {rule}; got {shown(value)[:80]}.") from None
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all() or (numbers < 0.0).any():
        seen = repr(value) if numbers.size < 10 else f"an array of shape {numbers.shape}"
        raise RecipeError(f"sampling: {name} must be an array of one finite number, 0 or more, per row; got {seen}.")
    return numbers


def checked(numbers: Any, n: int) -> Array:
    """The numbers as an array; raises RecipeError unless there are n."""
    if len(numbers) != n:
        raise RecipeError(f"sampling: a number for each row is needed; got {len(numbers)} for {n} rows.")
    return np.asarray(numbers, np.float64)


def _range(p: Array) -> str:
    return f"got numbers from {p.min():g} to {p.max():g}."
