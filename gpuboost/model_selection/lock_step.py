"""Several fits: on a GPU in lock-step, elsewhere one after another. Each is the fit that it is alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from gpuboost.api.base import GradientBoosting
from gpuboost.data.dataset import Dataset
from gpuboost.execution import Serial
from gpuboost.training.devices import machine, size_of
from gpuboost.training.parameters import execution

T = TypeVar("T")

MOST_FITS = 16
"""Fits that go in lock-step: the memory that they take adds up."""

MOST_ROWS = 1 << 18
"""Rows of a fit above which it keeps a GPU busy by itself."""


def gpu_of_fits(model: GradientBoosting, rows: int, values: int, on: str | None) -> str | None:
    """The GPU ("cuda:N") on which fits like the model's go in lock-step; None if they are better done in turn.

    Parameters
    ----------
    model : an estimator with the parameters of the fits
    rows, values : numbers of rows, and of values of X, of a fit
    on : the GPU that holds X, if any

    Raises
    ------
    RecipeError, DeviceError
        If there is no such device, as a fit would.
    """
    if rows > MOST_ROWS or not isinstance(execution(model.execution), Serial):
        return None
    name = machine(model.get_params(deep=False), values, on).name
    return name if name.startswith("cuda:") else None


def fit_in_turn_or_together(works: Sequence[Callable[[], T]], gpu: str | None) -> list[T]:
    """The results of functions that fit, on a GPU several of them in lock-step. The first error ends them all."""
    if gpu is None or len(works) < 2:
        return [work() for work in works]
    from gpuboost.backends.cuda.device.lock_step import in_lock_step  # it imports numba

    parts = -(-len(works) // MOST_FITS)
    size = -(-len(works) // parts)
    return [result for i in range(0, len(works), size) for result in in_lock_step(works[i : i + size], gpu)]


def fit_each(model: GradientBoosting, works: Sequence[Callable[[], T]], data: Dataset) -> list[T]:
    """The results of functions that fit models like this one to the data, or to parts of them."""
    return fit_in_turn_or_together(works, gpu_of_fits(model, len(data), *size_of(data)))
