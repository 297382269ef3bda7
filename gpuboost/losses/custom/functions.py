"""A user's loss, from Python functions of (y, f), f being one score or the scores of a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from functools import cache
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np

from gpuboost.arguments import misfit
from gpuboost.errors import RecipeError
from gpuboost.losses.averages import constant
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.custom.derivative_check import along, check_facts, check_gradient, check_hessian
from gpuboost.losses.custom.parts import (
    Start,
    check_name,
    check_outputs,
    check_start,
    first_scores,
    is_number,
    predictions,
    scores_of,
)
from gpuboost.losses.protocol import Derivatives, RowDerivatives, RowValue, Value, undefined
from gpuboost.losses.target import finite
from gpuboost.records import dataclass, restored
from gpuboost.types import Array

Formula: TypeAlias = Callable[..., Any]
"""(y, f) -> number, in the Python that numba compiles: arithmetic, comparisons, ``math``. With several outputs f is an
array, and a gradient is (y, f, g), which writes into the array g"""

_SEARCH_ROWS = 10_000
_GOLDEN = 0.6180339887498949


def custom(
    value: Formula,
    gradient: Formula,
    hessian: Formula | None,
    *,
    name: str | None = None,
    inverse_link: Callable[[Array], Array] | None = None,
    start: Start | None = None,
    smoothness: float | None = None,
    convex: bool = False,
    check_derivatives: bool = True,
    n_outputs: int = 1,
) -> Custom:
    """A loss from its value and its first two derivatives with respect to the score f.

    Args:
        value: (y, f) -> the loss of one row.
        gradient: (y, f) -> its first derivative.
        hessian: (y, f) -> its second derivative, or any curvature that is not negative; None if there is none.
        name: name of the loss; the name of ``value`` if not given.
        inverse_link: (n,) scores to (n,) predictions; the scores themselves if not given.
        start: the score before the first tree, 0 if not given; "minimise" searches for the constant of least loss
            (on at most 10,000 rows, beside their ``init_score``); a function (y, weight) -> number computes it.
        smoothness: the largest second derivative, if known: permits the constant step.
        convex: True if the loss is convex in f.
        check_derivatives: compare gradient, curvature, smoothness and convexity with finite differences at some rows
            before a fit, which then raises RecipeError where they contradict each other.
        n_outputs: scores of a row. With k above 1, f is an array of k scores; ``gradient`` is a function (y, f, g) that
            writes the k derivatives into the array g, ``hessian`` one (y, f, h) that writes the second derivative with
            respect to each score; ``inverse_link`` takes (k, n) scores and returns (n,) or (n, m) predictions, by
            default the scores of each row; ``start`` is a number, k numbers, or a function that returns either.

    The backends compile the functions unchanged; a model file keeps only the name. Models are not guaranteed to be
    byte-identical on every machine, as the functions may call ``math.exp`` and others that differ between machines.

    Raises:
        RecipeError: if a function does not take its arguments, or the name is that of a built-in loss.
    """
    check_outputs(n_outputs)
    none = flat if n_outputs == 1 else flat_row
    functions = (value, gradient, none if hessian is None else hessian)
    for role, function in zip(("value", "gradient", "hessian"), functions, strict=True):
        check_function(role, function, int(n_outputs))
    if inverse_link is not None and not callable(inverse_link):
        raise RecipeError(f"inverse_link: must be a function of an array of scores; got {inverse_link!r}.")
    check_start(start, int(n_outputs))
    _check_facts(name, smoothness, convex)
    if not isinstance(check_derivatives, bool):
        raise RecipeError(f"check_derivatives: must be True or False; got {check_derivatives!r}.")
    called = name or getattr(value, "__name__", "custom").strip("<>")
    first = 0.0 if start is None else start
    return Custom(called, functions, inverse_link, first, smoothness, convex, check_derivatives, int(n_outputs))


def flat(y: float, f: float) -> float:
    """The hessian of a loss that has none."""
    return 0.0


def flat_row(y: float, f: Array, h: Array) -> None:
    """The same for several outputs."""
    for c in range(len(h)):
        h[c] = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Custom(BaseLoss):
    """Loss made by ``custom``. ``functions`` holds value, gradient and hessian, for a backend to compile."""

    name: str
    functions: tuple[Formula, Formula, Formula]
    link: Callable[[Array], Array] | None = None
    first_score: Start = 0.0
    smoothness: float | None = None
    convex: bool = False
    check_derivatives: bool = field(default=True, compare=False)
    n_outputs: int = 1
    argument: str = field(default="loss", compare=False)  # that the functions are passed in: "loss" or "eval_metric"

    facts: ClassVar[LossFacts] = LossFacts(task="any", link="other")

    __setstate__ = restored

    def __repr__(self) -> str:
        return f"custom({self.name!r})"

    @property
    def roles(self) -> tuple[str, str, str]:
        """Names of the functions, for messages."""
        return "value" if self.argument == "loss" else "term", "gradient", "hessian"

    @property
    def has_curvature(self) -> bool:
        return self.functions[2] not in (flat, flat_row)

    @property
    def value(self) -> Value:
        return _value(self.functions[0]) if self.n_outputs == 1 else undefined

    @property
    def derivatives(self) -> Derivatives:
        return _derivatives(self.functions[1], self.functions[2]) if self.n_outputs == 1 else undefined

    @property
    def row_value(self) -> RowValue:
        return undefined if self.n_outputs == 1 else _value(self.functions[0])

    @property
    def row_derivatives(self) -> RowDerivatives:
        return undefined if self.n_outputs == 1 else _row_derivatives(self.functions[1], self.functions[2])

    def check_target(self, y: Array) -> None:
        finite(y, self.name)

    def start(self, y: Array, weight: Array) -> Array:
        """F_0. Raises RecipeError if the search finds no minimum."""
        if self.first_score == "minimise":
            return constant(self._least_constant(np.asarray(y), np.asarray(weight), np.zeros(len(y))))
        return first_scores(self.first_score, y, weight, self.n_outputs)

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        """F_0 beside the (k, n) offsets: the constant of least loss, or the user's start as it is."""
        if self.first_score == "minimise":
            return constant(self._least_constant(np.asarray(y), np.asarray(weight), np.asarray(offset)[0]))
        return self.start(y, weight)

    def inverse_link(self, scores: Array) -> Array:
        """(k, n) scores to (n,) or (n, m) predictions. Raises RecipeError if the user's function gives other shapes."""
        return predictions(self.link, scores)

    def check_functions(self, y: Array, *, uses_hessian: bool) -> None:
        """Check the functions at some rows, before a fit.

        Args:
            y: (n,) targets.
            uses_hessian: True if leaf values depend on the hessian.

        Raises:
            RecipeError: if the inverse link returns something else than a number for each score; or, with
                ``check_derivatives``, if the functions contradict each other or the facts.
        """
        known = not (self.first_score == "minimise" or callable(self.first_score))
        start = scores_of(self.first_score if known else 0.0, self.n_outputs)
        kind = np.asarray(self.inverse_link(np.array([[score] * 3 for score in start]))).dtype.kind
        if kind not in "biuf":
            raise RecipeError(f"inverse_link: must return numbers; it returns an array of kind {kind!r}.")
        if not self.check_derivatives:
            return
        # as Python: a failed compilation stays failed in numba, also where a backend makes the function compile later
        functions = tuple(getattr(function, "py_func", function) for function in self.functions)
        for output, score in enumerate(start):
            value, gradient, hessian = functions if self.n_outputs == 1 else along(functions, start, output)
            of = "" if self.n_outputs == 1 else f" of output {output}"
            check_gradient(value, gradient, y, score, of)
            if uses_hessian and self.has_curvature:
                check_hessian(gradient, hessian, y, score, of)
            check_facts(gradient, self.smoothness, self.convex, y, score)

    def _least_constant(self, y: Array, weight: Array, offset: Array) -> float:
        by = max(1, math.ceil(len(y) / _SEARCH_ROWS))
        rows = list(zip(y[::by].tolist(), weight[::by].tolist(), offset[::by].tolist(), strict=True))
        value = self.functions[0]

        def total(f: float) -> float:
            loss_sum = math.fsum(w * value(t, f + o) for t, w, o in rows)
            if math.isnan(loss_sum):
                raise RecipeError(f"start: {self.name} is not a number at the score {f!r}; give start a number.")
            return loss_sum

        return _least(total, self.name)


@dataclass(frozen=True, slots=True)
class SavedCustom(BaseLoss):
    """A custom loss from a model file, which holds its name only. It gives raw scores, and cannot be trained on."""

    name: str
    n_outputs: int = 1
    lists: bool = False  # True: of whole lists, for rankings

    facts: ClassVar[LossFacts] = LossFacts(task="any", convex=False, link="other")

    __setstate__ = restored

    @property
    def task(self) -> str:
        return "ranking" if self.lists else "any"

    def gains(self) -> Array:
        """(0,): metrics of rankings have gains of their own."""
        return np.empty(0)

    def inverse_link(self, scores: Array) -> Array:
        """(k, n) scores: (n,) for one output, else (n, k)."""
        return scores[0] if self.n_outputs == 1 else np.ascontiguousarray(scores.T)

    def value(self, y: float, f: float, a: float) -> float:
        self._refuse()

    def derivatives(self, y: float, f: float, a: float) -> tuple[float, float]:
        self._refuse()

    def check_target(self, y: Array) -> None:
        self._refuse()

    def start(self, y: Array, weight: Array) -> Array:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RecipeError(
            f"loss: {self.name!r} was read from a model file, which keeps a custom loss by name only. "
            "Pass loss=gpuboost.losses.custom(...) with its functions again to train or to evaluate."
        )


@cache
def _value(value: Formula) -> Callable[[float, Any, float], float]:
    """One function object per user function, so that a backend compiles it once. For one output or several."""

    def formula(y: float, f: Any, a: float) -> float:
        cost: float = value(y, f)
        return cost

    return formula


@cache
def _derivatives(gradient: Formula, hessian: Formula) -> Derivatives:
    def formula(y: float, f: float, a: float) -> tuple[float, float]:
        h = hessian(y, f)
        return gradient(y, f), 0.0 if h < 0.0 else h  # where a loss is not convex, a Newton step would climb

    return formula


@cache
def _row_derivatives(gradient: Formula, hessian: Formula) -> RowDerivatives:
    def formula(y: float, f: Array, g: Array, h: Array, a: float) -> None:
        gradient(y, f, g)
        hessian(y, f, h)
        for c in range(len(h)):
            h[c] = 0.0 if h[c] < 0.0 else h[c]  # and what is no number stays so

    return formula


def check_function(role: str, function: Any, n_outputs: int) -> None:
    """Raise RecipeError unless the function can be called with a target and the scores of a row."""
    rule, arguments = "(y, f), two numbers", 2
    if n_outputs > 1:
        rule = f"(y, f), f being an array of {n_outputs} scores"
        if role in ("gradient", "hessian"):
            rule, arguments = f"(y, f, {role[0]}) that writes into the array {role[0]} of {n_outputs} numbers", 3
    if not callable(function):
        raise RecipeError(f"{role}: must be a function of {rule}; got {function!r}.")
    problem = misfit(function, arguments)
    if problem:
        raise RecipeError(f"{role}: must be a function of {rule}; {function!r}: {problem}.")


def _check_facts(name: Any, smoothness: Any, convex: Any) -> None:
    check_name(name)
    if smoothness is not None and not (is_number(smoothness) and smoothness > 0.0):
        raise RecipeError(
            f"smoothness: must be a finite number above 0, or None if it is not known; got {smoothness!r}."
        )
    if not isinstance(convex, bool):
        raise RecipeError(f"convex: must be True or False; got {convex!r}.")


def _least(total: Callable[[float], float], name: str) -> float:
    """Minimiser of a unimodal function of one number: bracketed by doubled steps downhill, then golden section."""
    low, high = _bracket(total, name)
    while abs(high - low) > 1e-9 * (1.0 + abs(low)):
        third = (1.0 - _GOLDEN) * (high - low)
        if total(low + third) < total(high - third):
            high -= third
        else:
            low += third
    return 0.5 * (low + high)


def _bracket(total: Callable[[float], float], name: str) -> tuple[float, float]:
    here, step = 0.0, 1.0
    least = total(here)
    if total(step) >= least:
        if total(-step) >= least:
            return -step, step
        step = -step
    before = here
    for _ in range(100):
        before, here, step = here, here + step, 2.0 * step
        if total(here + step) >= total(here):
            return min(before, here + step), max(before, here + step)
    raise RecipeError(f"start: {name} falls without end as the score goes to {here:g}; give start a number.")
