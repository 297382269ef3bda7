"""A P-spline in one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpuboost.arguments import is_one_of
from gpuboost.backends.smoothing import Smoothing
from gpuboost.components import Space
from gpuboost.errors import RecipeError
from gpuboost.learners.families.basis import Axis, b_splines, calibrated, difference_penalty, space_on
from gpuboost.learners.families.checks import check_columns, check_df, check_int
from gpuboost.learners.families.protocol import Columns, OneFeatureFamily


@dataclass(frozen=True, slots=True)
class Spline(OneFeatureFamily):
    """A P-spline in one numeric feature: a B-spline basis and a penalty on differences of its coefficients.

    Beyond the range of the training data it keeps its value at the end (Eilers and Marx 1996). By default it is as
    flexible as additive models of boosted trees; fewer knots and ``difference=2`` make it smoother.

    Parameters
    ----------
    df : float
        Degrees of freedom tr(2S - S'S), the constant among them; decides the weight of the penalty.
    knots : int
        Pieces between the least and the greatest value.
    degree : int, 0 to 5
        Degree of the polynomials.
    difference : int, 1 to 3
        Order of the differences that are penalised: a polynomial of one degree less costs nothing.
    scale : "rank" or "value"
        Scale on which the knots are equidistant: the rank of a value, so that all pieces hold equally many rows, or the
        value itself.
    columns : tuple of int or str, or None
        Features to which it is offered; None for all that are numeric.

    Raises
    ------
    RecipeError
        If a number is out of its range.
    """

    df: float = 4.0
    knots: int = 100
    degree: int = 3
    difference: int = 1
    scale: str = "rank"
    columns: Columns = None

    kind: ClassVar[str] = "spline"

    def __post_init__(self) -> None:
        check_int(self, "knots", 1, 200)
        check_int(self, "degree", 0, 5)
        check_int(self, "difference", 1, 3)
        check_df(self, self.difference)
        check_columns(self)
        if not is_one_of(self.scale, ("rank", "value")):
            raise RecipeError(f"scale: Spline needs 'rank' or 'value'; got {self.scale!r}.")
        if self.difference >= self.knots + self.degree:
            raise RecipeError(f"difference: {self!r} has too few coefficients for differences of that order.")

    def space(self, axis: Axis, smoothing: Smoothing) -> Space:
        u = axis.rank if self.scale == "rank" else axis.at
        first, basis = b_splines(u, self.knots, self.degree)
        penalty = difference_penalty(self.knots + self.degree, self.difference)
        made = space_on(self.kind, axis, first, basis, penalty, 1.0)
        return calibrated(made, axis.weight, self.df, smoothing)
