"""The loss of several targets a row: a loss of one score for each column of y."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Protocol

import numpy as np

from gpuboost.errors import InputError
from gpuboost.losses.base import BaseLoss, LossFacts, named
from gpuboost.losses.protocol import Derivatives, Loss, RowDerivatives, RowValue, Value
from gpuboost.records import dataclass
from gpuboost.types import Array

MULTILABEL = "multilabel"
"""The task of a loss of two classes for each column of y"""


class OneOutputLoss(Loss, Protocol):
    """A loss of this package of one target and one score."""

    @property
    def facts(self) -> LossFacts: ...

    @property
    def lipschitz(self) -> float | None: ...

    @property
    def curvature_change(self) -> float | None: ...

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array: ...

    def noise(self, members: Array, predictions: Array, temperature: float) -> Array | None: ...


@dataclass(frozen=True, slots=True)
class PerOutput(BaseLoss):
    """The sum over k outputs of ``loss``, that of output c being of the target y[c] and the score f[c].

    ``GradientBoostingRegressor`` and ``...Classifier`` make it of their loss if y is (n, k). Gradient and curvature of
    an output are those of ``loss`` alone, so the trees of an output are those of a model of this target alone.

    loss: one of this package, of one target and one score a row. n_outputs: 2 or more.
    """

    loss: OneOutputLoss
    n_outputs: int

    name: ClassVar[str] = "per_output"

    @property
    def facts(self) -> LossFacts:  # type: ignore[override]  # those of another loss
        task = MULTILABEL if self.loss.task == "binary" else self.loss.task
        return replace(self.loss.facts, task=task, n_outputs=self.n_outputs, normal_noise=False)

    @property
    def n_targets(self) -> int:
        return self.n_outputs

    @property
    def parameter(self) -> float:
        return self.loss.parameter

    @property
    def smoothness(self) -> float | None:
        return self.loss.smoothness

    @property
    def strong_convexity(self) -> float:
        return self.loss.strong_convexity

    @property
    def bounded_level_sets(self) -> bool:
        return self.loss.bounded_level_sets

    @property
    def convex(self) -> bool:
        return self.loss.convex

    @property
    def lipschitz(self) -> float | None:
        slope = self.loss.lipschitz
        return None if slope is None else slope * math.sqrt(self.n_outputs)

    @property
    def has_curvature(self) -> bool:
        return self.loss.has_curvature

    @property
    def leaf_quantile(self) -> float | None:
        return None

    @property
    def curvature_change(self) -> float | None:
        return self.loss.curvature_change

    @property
    def link_scale(self) -> float:
        return float(getattr(self.loss, "link_scale", 1.0))

    @property
    def row_value(self) -> RowValue:
        return _row_value(self.loss.value)

    @property
    def row_derivatives(self) -> RowDerivatives:
        return _row_derivatives(self.loss.derivatives)

    def of_output(self, output: int) -> OneOutputLoss:
        return self.loss

    def check_target(self, y: Array) -> None:
        """Raise InputError, naming the column too, if y is not (n, n_outputs) or outside the loss's domain."""
        if np.ndim(y) != 2 or np.shape(y)[1] != self.n_outputs:
            raise InputError(f"y: the model has {self.n_outputs} targets for each row; got shape {np.shape(y)}.")
        for column, values in enumerate(np.transpose(y)):
            try:
                self.loss.check_target(values)
            except InputError as error:
                raise InputError(f"{error} (column {column} of y)") from None

    def start(self, y: Array, weight: Array) -> Array:
        return np.concatenate([self.loss.start(values, weight) for values in _columns(y)])

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Array:
        each = enumerate(_columns(y))
        return np.concatenate([self.loss.start_beside(values, weight, offset[c : c + 1]) for c, values in each])

    def inverse_link(self, scores: Array) -> Array:
        """(k, n) scores to (n, k) predictions; of two classes the probabilities of class 1."""
        return np.column_stack([self.loss.inverse_link(scores[c : c + 1]) for c in range(self.n_outputs)])


def _columns(y: Array) -> list[Array]:
    return [np.ascontiguousarray(values) for values in np.transpose(y)]


@cache
def _row_value(value: Value) -> Callable[[Any, Array, float], float]:
    """One function object per formula, so that a backend compiles it once."""

    def row_value(y: Any, f: Array, a: float) -> float:
        total = 0.0
        for c in range(len(f)):
            total += value(y[c], f[c], a)
        return total

    return named(row_value, f"{value.__module__}.{value.__qualname__}")


@cache
def _row_derivatives(derivatives: Derivatives) -> Callable[[Any, Array, Array, Array, float], None]:
    def row_derivatives(y: Any, f: Array, g: Array, h: Array, a: float) -> None:
        for c in range(len(f)):
            g[c], h[c] = derivatives(y[c], f[c], a)

    return named(row_derivatives, f"{derivatives.__module__}.{derivatives.__qualname__}")
