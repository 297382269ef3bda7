"""Several fits: on a GPU in lock-step, on the CPU in threads, else in turn. Each is the fit that it is alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from gpuboost.api.base import GradientBoosting
from gpuboost.data.dataset import Dataset
from gpuboost.execution import Serial
from gpuboost.model_selection.in_threads import fit_in_threads, fit_with, is_on_cpu
from gpuboost.training.parameters.automatic import provisional
from gpuboost.training.parameters.policies import execution
from gpuboost.training.placement.device_arrays import size_of
from gpuboost.training.placement.devices import device_choice

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
    name = device_choice(model.get_params(deep=False), values, on).name
    return name if name.startswith("cuda:") else None


def fit_in_turn_or_together(works: Sequence[Callable[[], T]], gpu: str | None) -> list[T]:
    """The results of functions that fit, on a GPU several of them in lock-step. The first error ends them all."""
    if gpu is None or len(works) < 2:
        return [work() for work in works]
    from gpuboost.backends.cuda.device.lock_step import in_lock_step  # it imports numba

    parts = -(-len(works) // MOST_FITS)
    size = -(-len(works) // parts)
    return [result for i in range(0, len(works), size) for result in in_lock_step(works[i : i + size], gpu)]


def fit_each(
    models: Sequence[GradientBoosting], fits: Sequence[Callable[[GradientBoosting], GradientBoosting]], data: Dataset
) -> list[GradientBoosting]:
    """The models, each fitted by its function to the data, or parts of them; at the same time where that is faster."""
    if not models:
        return []
    first, (cells, on) = models[0], size_of(data)
    gpu = gpu_of_fits(first, len(data), cells, on)
    if gpu is None and is_on_cpu(first, cells, on):
        works = [partial(fit_with, model=model, fit=fit) for model, fit in zip(models, fits, strict=True)]
        rounds = provisional(first.get_params(deep=False), len(data))["n_estimators"]
        return fit_in_threads(works, models, rounds, len(data), cells)
    return fit_in_turn_or_together([partial(fit, model) for model, fit in zip(models, fits, strict=True)], gpu)
