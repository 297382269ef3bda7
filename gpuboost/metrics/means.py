"""Metrics of one's own that are means over rows: a term of each row, which a backend evaluates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from gpuboost.arguments import is_integer
from gpuboost.errors import InputError, RecipeError, shown
from gpuboost.losses.custom.functions import check_function, custom, flat, flat_row
from gpuboost.losses.protocol import Loss
from gpuboost.metrics import formulas
from gpuboost.metrics.metric import Metric
from gpuboost.types import Array


def mean(
    term: Callable[..., float], *, name: str | None = None, higher_is_better: bool = False, n_outputs: int = 1
) -> Metric:
    """The weighted mean of a term of each row, as a metric.

    Args:
        term: (y, f) -> number, f being the row's score, or with several outputs the array of its scores; in the Python
            that numba compiles, as ``value`` of ``gpuboost.losses.custom``. On a GPU the scores stay there.
        name: name in the history; the name of ``term`` if not given.
        higher_is_better: True if larger is better.
        n_outputs: scores of a row.

    Raises:
        InputError: if higher_is_better is neither True nor False.
        RecipeError: if ``term`` is no function of its arguments, or n_outputs no whole number of 1 or more.
    """
    if not isinstance(higher_is_better, bool):
        raise InputError(f"higher_is_better: must be True or False; got {higher_is_better!r}.")
    if not is_integer(n_outputs, 1):
        raise RecipeError(f"n_outputs: must be a whole number, 1 or more; got {shown(n_outputs)}.")
    check_function("term", term, int(n_outputs))
    loss = custom(term, flat if n_outputs == 1 else flat_row, None, name=name, n_outputs=n_outputs)
    of = replace(loss, argument="eval_metric")
    return Metric(of.name, higher_is_better, partial(_on_the_host, of), mean_of=of)


def _on_the_host(of: Loss, y: Array, scores: Array, weight: Array | None, loss: Any) -> float:
    return formulas.loss(y, scores, weight, of)
