"""Fits on the CPU, several at the same time: each in a thread, with a share of the processors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from gpuboost.api.base import GradientBoosting
from gpuboost.backends.devices import choose
from gpuboost.backends.several_rounds import PAYS
from gpuboost.composition.repeated_rounds import may_repeat_on_cpu
from gpuboost.errors import RecipeError
from gpuboost.execution import Serial
from gpuboost.training.parameters.assembly import recipe_from
from gpuboost.training.parameters.policies import execution
from gpuboost.training.parameters.threads import threads_of
from gpuboost.training.placement.at_once import LEAST_CELLS, MOST_ROWS, Share, each_with_a_share
from gpuboost.watch.early_stopping import EarlyStopping


def fit_with(
    share: Share, model: GradientBoosting, fit: Callable[[GradientBoosting], GradientBoosting]
) -> GradientBoosting:
    """The model, fitted with this share by the function, and with its own parameters again."""
    parameters = {"n_jobs": model.n_jobs, "callbacks": model.callbacks}
    model.set_params(n_jobs=share.n_jobs, callbacks=(*model.callbacks, *share.callbacks))
    return fit(model).set_params(**parameters)


Work = Callable[[Share], GradientBoosting]
"""A fit, which returns its model"""


def is_on_cpu(model: GradientBoosting, cells: int, on: str | None) -> bool:
    """True if a fit uses nothing but some threads of this process.

    cells, on: number of values of X, and the GPU that holds it, which decide for ``device="auto"``.
    """
    serial = isinstance(execution(model.execution), Serial)
    return serial and choose(model.device, cells, on).name == "cpu"


def fit_in_threads(
    works: Sequence[Work], models: Sequence[GradientBoosting], rounds: int, rows: int, cells: int
) -> list[GradientBoosting]:
    """The results of fits of models like these, for so many rounds.

    ``n_jobs`` of the first model is the number of fits at the same time, which share the threads evenly. They take
    turns, with all threads, on large data, where they have callbacks, and on small data unless a kernel repeats their
    rounds. An error of one fit stops the others.

    Parameters
    ----------
    works : the fits, all on the CPU
    models : what differs between the fits
    rows, cells : numbers of rows, and of values of X, of a fit
    """
    total, done = threads_of(models[0].n_jobs), list[GradientBoosting]()
    at_once = rows <= MOST_ROWS and not any(model.verbose or _calls_back(model) for model in models)
    if at_once and cells < LEAST_CELLS and min(total, len(works) - 1) > 1:
        done, works = [works[0](Share(total))], works[1:]
        at_once = rounds >= PAYS and all(_repeats(model, done[0], rows) for model in models)
    return done + each_with_a_share(works, total, total if at_once else 1)


def _calls_back(model: GradientBoosting) -> bool:
    return any(not isinstance(callback, EarlyStopping) for callback in model.callbacks)


def _repeats(model: GradientBoosting, fitted: GradientBoosting, rows: int) -> bool:
    """True if a kernel may repeat the rounds of the model, with the loss of one that is fitted."""
    with suppress(RecipeError):  # which the fit will raise
        return may_repeat_on_cpu(recipe_from(model.get_params(deep=False), fitted.loss_, rows))
    return False
