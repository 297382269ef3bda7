"""A user's loss of whole arrays: one call a round for the derivatives of all rows, or of all lists of a ranking."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.losses.averages import exact_sum
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.custom.derivative_check import check_arrays
from gpuboost.losses.custom.parts import Start, check_name, check_outputs, check_start, first_scores, predictions
from gpuboost.losses.protocol import Loss
from gpuboost.losses.target import finite
from gpuboost.records import dataclass
from gpuboost.types import Array, TrainingSet

ArrayFunction: TypeAlias = Callable[..., Any]
"""(y, score), (y, score, weight) or (y, score, weight, group) -> arrays"""

_ROWS = 200  # of which a check of the derivatives takes evenly spaced ones, or the first whole lists


@dataclass(frozen=True, slots=True)
class ArrayFunctions:
    """The functions of ``custom_arrays``."""

    derivatives: ArrayFunction
    value: ArrayFunction | None
    arguments: int  # 2 to 4, of both
    link: Callable[[Array], Array] | None
    first_score: Start
    check_derivatives: bool = field(default=True, compare=False)


class ArrayLoss(BaseLoss, ABC):
    """The members that both losses of arrays share, for a dataclass with fields ``name`` and ``functions``."""

    __slots__ = ()

    name: str
    functions: ArrayFunctions

    @property
    def weighs(self) -> bool:
        """True if the functions take the weights, and what they return has them in it."""
        return self.functions.arguments > 2

    @property
    def link(self) -> Callable[[Array], Array] | None:
        """The user's inverse link, if there is one."""
        return self.functions.link

    def check_target(self, y: Array) -> None:
        finite(y, self.name)

    def start(self, y: Array, weight: Array) -> Array:
        """F_0. Raises RecipeError if the user's function returns anything but finite numbers."""
        return first_scores(self.functions.first_score, y, weight, self.n_outputs)

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        """F_0 beside the (k, n) offsets: the user's start as it is."""
        return self.start(y, weight)

    def inverse_link(self, scores: Array) -> Array:
        """(k, n) scores to (n,) or (n, m) predictions. Raises RecipeError if the user's function gives other shapes."""
        return predictions(self.functions.link, scores)

    def arrays(self, y: Array, scores: Array, weight: Array, sizes: Array | None) -> tuple[Array, Array]:
        """g and h of the user's function: two arrays, each (n,), or (n, k) of several outputs, of any real dtype.

        Args:
            y, weight: (n,) float64.
            scores: (k, n) float64.
            sizes: (queries,) int64 numbers of rows; None without queries.

        Raises:
            RecipeError: if it returns anything else.
        """
        derivatives = self.functions.derivatives(*self._arguments(y, scores, weight, sizes))
        shape = _as_seen(scores).shape
        if (
            not isinstance(derivatives, (tuple, list))
            or len(derivatives) != 2
            or any(np.shape(part) != shape for part in derivatives)
        ):
            seen = [f"{type(part).__name__} of shape {np.shape(part)}" for part in _parts(derivatives)]
            raise RecipeError(
                f"derivatives: {self.name} must return g and h, two arrays of shape {shape}; it returns "
                f"{' and '.join(seen)}."
            )
        return derivatives[0], derivatives[1]

    def host_derivatives(self, scores: Array, data: TrainingSet, curvature: float | None) -> tuple[Array, Array]:
        """(k, n) float32 g and h, times the weight that is not a multiplicity, as ``Gradients`` holds them."""
        weight = data.row_weight()
        g, h = self.arrays(_read_only(data.y), _read_only(scores), _read_only(weight), sizes_of(data))
        g, h = _by_output(g, scores), _by_output(h, scores)
        if curvature is not None:
            h = np.broadcast_to(curvature * weight if self.weighs else curvature, g.shape)
        with np.errstate(over="ignore"):  # an infinite gradient is refused as such
            g, h = (self.counted(part, weight, data).astype(np.float32) for part in (g, np.maximum(h, 0.0)))
        return np.ascontiguousarray(g), np.ascontiguousarray(h)

    def counted(self, values: Any, weight: Any, data: TrainingSet) -> Any:
        """g or h of the user's function as ``Gradients`` hold them: without the weights that the machine counts.

        values, weight: float64 arrays of one kind, NumPy's or CuPy's, the last axis being the rows.
        """
        if self.weighs:
            return values if data.multiplicity is None else np.divide(values, weight)
        return values if data.weight is None else np.multiply(values, weight)

    def total(self, y: Array, scores: Array, weight: Array, sizes: Array | None = None) -> Any:
        """Value of the loss by the user's function: (n,) numbers, or one, their sum; None without such a function."""
        if self.functions.value is None:
            return None
        return self.functions.value(*self._arguments(y, scores, weight, sizes))

    def mean(self, y: Array, scores: Array, weight: Array | None) -> float:
        """Mean loss by the user's function; NaN without one. y, weight: (n,); scores: (k, n)."""
        weights = np.ones(len(y)) if weight is None else weight
        return mean_of(self.total(y, scores, weights), weight, len(y), weighted=self.weighs)

    def check_functions(self, y: Array, query_start: Array | None) -> None:
        """Compare the derivatives with finite differences of the value, at some rows, before a fit.

        Raises:
            RecipeError: if they differ, or a function returns what it must not.
        """
        sizes = None
        if query_start is None:
            y = y[:: max(1, len(y) // _ROWS)]
        else:
            lists = max(1, int(np.searchsorted(query_start, _ROWS, side="right")) - 1)
            y, sizes = y[: int(query_start[lists])], np.diff(query_start[: lists + 1])
        weight, known = np.ones(len(y)), not callable(self.functions.first_score)
        start = self.start(y, weight) if known else np.zeros(self.n_outputs)

        def value(scores: Array) -> float:
            return float(np.sum(self.total(y, scores, weight, sizes)))

        def derivatives(scores: Array) -> tuple[Array, Array]:
            g, h = self.arrays(y, scores, weight, sizes)
            return _by_output(g, scores), _by_output(h, scores)

        derivatives(np.repeat(start[:, None], len(y), axis=1))
        if self.functions.check_derivatives and self.functions.value is not None:
            check_arrays(value, derivatives, start, len(y))

    def _arguments(self, y: Array, scores: Array, weight: Array, sizes: Array | None) -> tuple[Array | None, ...]:
        return (y, _as_seen(scores), weight, sizes)[: self.functions.arguments]


@dataclass(frozen=True, slots=True, repr=False)
class CustomArrays(ArrayLoss):
    """Loss made by ``custom_arrays`` from functions without ``group``."""

    name: str
    functions: ArrayFunctions
    n_outputs: int = 1

    facts: ClassVar[LossFacts] = LossFacts(task="any", convex=False, link="other")

    def __repr__(self) -> str:
        return f"custom_arrays({self.name!r})"


@dataclass(frozen=True, slots=True, repr=False)
class RankingArrays(ArrayLoss):
    """Loss made by ``custom_arrays`` from functions with ``group``: of the lists of a ranking."""

    name: str
    functions: ArrayFunctions

    facts: ClassVar[LossFacts] = LossFacts(task="ranking", convex=False, link="other", default_metric="ndcg")

    def __repr__(self) -> str:
        return f"custom_arrays({self.name!r})"

    def gains(self) -> Array:
        """(0,): metrics of rankings have gains of their own."""
        return np.empty(0)


def is_of_arrays(loss: Loss) -> TypeGuard[ArrayLoss]:
    """True if the derivatives come from one function of all rows."""
    return isinstance(loss, ArrayLoss)


def sizes_of(data: TrainingSet) -> Array | None:
    """(queries,) int64 numbers of rows of the queries; None without queries."""
    return None if data.query_start is None else np.diff(data.query_start)


def mean_of(found: Any, weight: Array | None, n: int, *, weighted: bool) -> float:
    """Mean loss of what ``ArrayLoss.total`` gave, in the host's memory; NaN for None.

    weighted: True if the weights, (n,) or None, are in it.
    """
    if found is None:
        return float("nan")
    each = np.asarray(found, np.float64)
    total = exact_sum(each if weight is None or weighted else each * weight) if each.ndim else float(each)
    return total / (n if weight is None else exact_sum(weight))


def _as_seen(scores: Array) -> Array:
    """(k, n) scores as users see them: (n,), or (n, k)."""
    return scores[0] if len(scores) == 1 else scores.T


def _by_output(values: Any, scores: Array) -> NDArray[np.float64]:
    """The user's values as (k, n) float64. Raises RecipeError if they are no numbers."""
    try:
        return np.asarray(values, np.float64).reshape(scores.shape[::-1]).T
    except (TypeError, ValueError) as error:
        raise RecipeError(f"derivatives: must return arrays of numbers; {error}.") from None


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def _parts(returned: Any) -> tuple[Any, ...]:
    return tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)


def _arity(role: str, function: Any) -> int:
    if not callable(function) or isinstance(function, type):
        raise RecipeError(f"{role}: must be a function of {ARGUMENTS}; got {function!r}.")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:  # of some built-in functions
        raise RecipeError(f"{role}: must be a function of {ARGUMENTS}; {error}.") from error
    required = [
        parameter for parameter in parameters if parameter.default is parameter.empty and parameter.kind in (0, 1)
    ]
    if not 2 <= len(required) <= 4 or any(
        parameter.default is parameter.empty for parameter in parameters if parameter.kind == parameter.KEYWORD_ONLY
    ):
        raise RecipeError(f"{role}: must be a function of {ARGUMENTS}; {function!r} takes {len(required)}.")
    return len(required)


ARGUMENTS = "(y, score), (y, score, weight) or, for rankings, (y, score, weight, group)"


def custom_arrays(
    derivatives: ArrayFunction,
    *,
    value: ArrayFunction | None = None,
    name: str | None = None,
    inverse_link: Callable[[Array], Array] | None = None,
    start: Start | None = None,
    check_derivatives: bool = True,
    n_outputs: int = 1,
) -> CustomArrays | RankingArrays:
    """A loss from one function of arrays that gives the derivatives of all rows (``objective`` of XGBoost, LightGBM).

    ``custom`` takes scalar functions, which are compiled, and is faster unless a row's derivatives need other rows.

    Args:
        derivatives: (y, score) -> g, h; the first and the second derivative of each row's loss, h not negative. y is
            (n,) float64, and score, g and h are (n,), or (n, k) for ``n_outputs`` = k. With (y, score, weight) g and h
            have to be those of the weighted loss, as in LightGBM; otherwise they are multiplied by the weights. With
            (y, score, weight, group) the loss is for ``GradientBoostingRanker``: rows are sorted by query, and group
            has the (queries,) numbers of their rows. Arrays are NumPy's, and CuPy's if the fit is on CUDA, where g and
            h may be of either; they must not be written to.
        value: function of the same arguments that gives the loss of each row, (n,), or one number, the sum over all
            rows. Then the derivatives are compared with its finite differences before a fit, the training loss can be
            shown, and it is the default metric but for rankings. Weighted if ``derivatives`` are.
        name: name of the loss; the name of ``derivatives`` if not given.
        inverse_link: (n,) scores to (n,) predictions; of k outputs, (k, n) scores to (n,) or (n, m) predictions.
        start: the score before the first tree, 0 if not given: a number, k numbers, or a function (y, weight).
        check_derivatives: False: compare nothing.
        n_outputs: scores of a row.

    A model file keeps only the name. The same function gives the same model on every machine as far as its arithmetic
    gives the same bits there, which NumPy and CuPy do not promise to each other.

    Raises:
        RecipeError: if a function does not take its arguments, the two take different ones, or a ranking has several
            outputs.
    """
    check_outputs(n_outputs)
    arity = _arity("derivatives", derivatives)
    if value is not None and _arity("value", value) != arity:
        raise RecipeError(f"value: must take the {arity} arguments of derivatives; got {value!r}.")
    if arity == 4 and n_outputs > 1:
        raise RecipeError(f"n_outputs: a ranking has one score a row; got {n_outputs!r}.")
    if inverse_link is not None and not callable(inverse_link):
        raise RecipeError(f"inverse_link: must be a function of an array of scores; got {inverse_link!r}.")
    if isinstance(start, str):
        raise RecipeError(f"start: must be a number or a function of (y, weight); got {start!r}.")
    check_start(start, int(n_outputs))
    check_name(name)
    if not isinstance(check_derivatives, bool):
        raise RecipeError(f"check_derivatives: must be True or False; got {check_derivatives!r}.")
    called = name or getattr(derivatives, "__name__", "custom_arrays").strip("<>")
    first = 0.0 if start is None else start
    functions = ArrayFunctions(derivatives, value, arity, inverse_link, first, check_derivatives)
    return RankingArrays(called, functions) if arity == 4 else CustomArrays(called, functions, int(n_outputs))
