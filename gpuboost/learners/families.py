"""Families of base learners that are built in: what ``base_learner=`` takes beside anybody's estimator.

All are functions of the bins of their features, as trees are, so that a round costs one histogram whichever of them
compete. Give one of them or a list; in each round the one that lowers the weighted sum of squares most is taken, each
with the same degrees of freedom, or the flexible ones would always win (Hofner, Hothorn, Kneib and Schmid 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import Any, TypeAlias

from gpuboost.errors import RecipeError

Columns: TypeAlias = tuple[int | str, ...] | None
"""Numbers or names; None for every column of the kind that the family is for."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A straight line in one numeric feature: slope and constant, not penalised.

    Degrees of freedom: 1 beside the constant.

    Parameters
    ----------
    columns : tuple of int or str, or None
        Features to which it is offered; None for all that are numeric.
    """

    columns: Columns = None

    def __post_init__(self) -> None:
        _check_columns(self)


@dataclass(frozen=True, slots=True)
class Spline:
    """A P-spline in one numeric feature: a B-spline basis and a penalty on differences of its coefficients.

    Beyond the range of the training data it keeps its value at the end (Eilers and Marx 1996). By default it is free to
    bend sharply, as additive models of boosted trees are; fewer knots and ``difference=2`` make it slower to.

    Parameters
    ----------
    df : float
        Degrees of freedom tr(2S - S'S), the constant among them; decides the weight of the penalty.
    knots : int
        Pieces between the least and the greatest value.
    degree : int, 0 to 5
        Of the polynomials.
    difference : int, 1 to 3
        Order of the differences that are penalised: a polynomial of one degree less costs nothing.
    scale : "rank" or "value"
        Along what the knots are equidistant: by the rank of a value, so that each piece holds as many rows, or by the
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

    def __post_init__(self) -> None:
        _check_df(self, self.difference)
        _check_int(self, "knots", 1, 200)
        _check_int(self, "degree", 0, 5)
        _check_int(self, "difference", 1, 3)
        _check_columns(self)
        if self.scale not in ("rank", "value"):
            raise RecipeError(f"scale: Spline needs 'rank' or 'value'; got {self.scale!r}.")
        if self.difference >= self.knots + self.degree:
            raise RecipeError(f"difference: {self!r} has too few coefficients for differences of that order.")


@dataclass(frozen=True, slots=True)
class TensorSpline:
    """A smooth surface over two numeric features: the products of two B-spline bases, penalised along both.

    Parameters
    ----------
    pairs : tuple of pairs of int or str
        The pairs of features to which it is offered.
    df : float
        Degrees of freedom tr(2S - S'S), the constant among them.
    knots : int
        Pieces along each feature.
    degree, difference : int
        As of ``Spline``.
    cells : int, 2 to 64
        Into so many groups of bins each feature is cut.

    Raises
    ------
    RecipeError
        If a number is out of its range, or there is no pair.
    """

    pairs: tuple[tuple[int | str, int | str], ...]
    df: float = 4.0
    knots: int = 4
    degree: int = 3
    difference: int = 1
    cells: int = 32

    def __post_init__(self) -> None:
        _check_df(self, self.difference**2)
        _check_int(self, "knots", 1, 10)
        _check_int(self, "degree", 0, 3)
        _check_int(self, "difference", 1, 2)
        _check_int(self, "cells", 2, 64)
        given: Any = self.pairs
        pairs = tuple(tuple(pair) for pair in given) if isinstance(given, (list, tuple)) else ()
        if not pairs or any(len(pair) != 2 or pair[0] == pair[1] for pair in pairs):
            raise RecipeError(f"pairs: TensorSpline needs pairs of two different features; got {self.pairs!r}.")
        object.__setattr__(self, "pairs", pairs)


@dataclass(frozen=True, slots=True)
class CategoricalRidge:
    """One effect for each category of a feature, shrunk towards 0: a random effect.

    What is missing counts as one more category if it occurs in training.

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

    def __post_init__(self) -> None:
        _check_df(self, 0)
        _check_columns(self)


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree among other families; the default is a stump.

    Parameters
    ----------
    max_depth : int
        Levels of splits.
    reg_lambda : float
        L2 term of its leaves.

    Raises
    ------
    RecipeError
        If a number is out of its range.
    """

    max_depth: int = 1
    reg_lambda: float = 1.0

    def __post_init__(self) -> None:
        _check_int(self, "max_depth", 1, 30)
        _check_real(self, "reg_lambda")


@dataclass(frozen=True, slots=True)
class LinearTree:
    """A tree with a ridge regression in each leaf, on the numeric features along its path.

    A missing value counts as the mean of its feature (Shi, Li and Li 2019 have the idea; LightGBM's linear trees too).

    Parameters
    ----------
    max_depth : int
        Levels of splits.
    ridge : float
        L2 term on slopes, of features that are scaled to variance 1, times the mean curvature of a row.
    reg_lambda : float
        L2 term of the constants, and of the search for splits.

    Raises
    ------
    RecipeError
        If a number is out of its range.
    """

    max_depth: int = 3
    ridge: float = 1.0
    reg_lambda: float = 1.0

    def __post_init__(self) -> None:
        _check_int(self, "max_depth", 1, 12)
        _check_real(self, "ridge")
        _check_real(self, "reg_lambda")


Family: TypeAlias = Linear | Spline | TensorSpline | CategoricalRidge | Tree | LinearTree

FAMILIES = (Linear, Spline, TensorSpline, CategoricalRidge, Tree, LinearTree)


def _check_df(family: Any, null_space: int) -> None:
    """Of a penalised fit: what the penalty leaves alone cannot be taken away."""
    value = family.df
    if isinstance(value, bool) or not isinstance(value, Real) or not null_space < float(value) < inf:
        name = type(family).__name__
        raise RecipeError(
            f"df: {name} needs a finite number above {null_space}, the dimension of what is not penalised; got "
            f"{value!r}."
        )


def _check_int(family: Any, name: str, low: int, high: int) -> None:
    value = getattr(family, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise RecipeError(f"{name}: {type(family).__name__} needs an integer from {low} to {high}; got {value!r}.")


def _check_real(family: Any, name: str) -> None:
    value = getattr(family, name)
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) < inf:
        raise RecipeError(f"{name}: {type(family).__name__} needs a finite number of at least 0; got {value!r}.")


def _check_columns(family: Any) -> None:
    value = family.columns
    if value is None:
        return
    if not isinstance(value, (list, tuple)) or not value or any(isinstance(one, bool) for one in value):
        raise RecipeError(
            f"columns: {type(family).__name__} needs None, or numbers or names of features; got {value!r}."
        )
    if not all(isinstance(one, (Integral, str)) for one in value):
        raise RecipeError(f"columns: {type(family).__name__} needs numbers or names of features; got {value!r}.")
    object.__setattr__(family, "columns", tuple(int(one) if isinstance(one, Integral) else one for one in value))
