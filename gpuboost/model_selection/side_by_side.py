"""Fits of the settings of a search, several at the same time in the threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from gpuboost.api.base import GradientBoosting
from gpuboost.backends.devices import choose
from gpuboost.execution import Serial
from gpuboost.model_selection.in_step import SET, deciding_metric, without_stopping
from gpuboost.model_selection.lock_step import fit_in_turn_or_together, gpu_of_fits
from gpuboost.model_selection.search_data import Fold
from gpuboost.training.job import seed_of
from gpuboost.training.parameters import execution, threads
from gpuboost.watch.record import Round

LEAST_CELLS = 100_000
"""Values of X below which fits take turns: they are in Python most of the time, where threads wait for each other."""


@dataclass(slots=True, eq=False)
class RunningTrial:
    """A setting, and its fits so far."""

    number: int
    model: GradientBoosting  # with the setting's parameters
    folds: Sequence[Fold]
    fitted: list[GradientBoosting | None] = field(default_factory=list)  # of each fold
    curves: list[list[float]] = field(default_factory=list)  # of each fold: the metric after each round
    metric: str = ""
    higher_is_better: bool = False

    def __post_init__(self) -> None:
        self.fitted, self.curves = [None for _ in self.folds], [[] for _ in self.folds]

    def go_on(self, fold: int, rounds: int, n_jobs: int, stopped: threading.Event | None) -> None:
        """Fit one fold up to so many rounds, from those that it has.

        stopped: ends the fit when it is set; None if no other thread may do so. A fit that looks at it in each round
        cannot repeat rounds without Python.
        """

        def asks_to_stop(_: Round) -> bool:
            return stopped is not None and stopped.is_set()

        made: GradientBoosting = clone(self.model).set_params(
            n_estimators=rounds - len(self.curves[fold]),
            callbacks=self.model.callbacks if stopped is None else (*self.model.callbacks, asks_to_stop),
            n_jobs=n_jobs,
        )
        rows, before = self.folds[fold], self.fitted[fold]
        self.fitted[fold] = made.fit(rows.training, eval_set={SET: rows.judged}, init_model=before)
        metric = deciding_metric(self.model, made)
        self.metric, self.higher_is_better = metric.name, metric.higher_is_better
        self.curves[fold] += made.evals_result_[SET][metric.name]

    @property
    def rounds(self) -> int:
        return len(self.curves[0])

    @property
    def mean(self) -> Any:
        """(rounds,) mean over the folds."""
        return np.mean(self.curves, axis=0)

    @property
    def best_round(self) -> int:
        """The round with the best mean, from 0; 0 if the metric is NaN in every round."""
        losses = self._losses
        return 0 if np.isnan(losses).all() else int(np.nanargmin(losses))

    @property
    def rank(self) -> tuple[float, int]:
        """Smaller is better; ties by the number."""
        best = float(self._losses[self.best_round]) if self.rounds else np.inf
        return (np.inf if np.isnan(best) else best), self.number

    @property
    def _losses(self) -> Any:
        return -self.mean if self.higher_is_better else self.mean


def running(model: GradientBoosting, settings: Sequence[dict[str, Any]]) -> list[GradientBoosting]:
    """The model of each setting, without early stopping of its own, and all with one seed.

    Raises
    ------
    RecipeError, ValueError
        If the model does not take a parameter of a setting.
    """
    seed = seed_of(model.random_state)
    common = {"early_stopping_rounds": None, "callbacks": without_stopping(model), "random_state": seed}
    return [clone(model).set_params(**setting, **common) for setting in settings]


def fit_side_by_side(trials: Sequence[RunningTrial], rounds: int, cells: int, on: str | None) -> None:
    """Fit all folds of the trials up to so many rounds.

    At the same time as many fits run as the models' ``n_jobs`` says, and share the threads evenly; one fit, with all
    threads, of small data, and where fits have workers of their own; on a GPU, some in lock-step. An error of one fit
    stops the others.

    cells, on: number of values of X, and the GPU that holds it, which decide for ``device="auto"``.
    """
    tasks = [(trial, fold) for trial in trials if trial.rounds < rounds for fold in range(len(trial.folds))]
    if not tasks:
        return
    total, stopped = threads(tasks[0][0].model.n_jobs), threading.Event()
    alone = cells >= LEAST_CELLS and all(_alone(trial.model, cells, on) for trial in trials)
    workers = min(total, len(tasks)) if alone else 1
    if workers == 1:
        works = [partial(_go_on, *task, rounds, total, None) for task in tasks]
        fit_in_turn_or_together(works, _one_gpu(trials, cells, on))
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="gpuboost-search")
    try:
        for future in [pool.submit(_go_on, *task, rounds, total // workers, stopped) for task in tasks]:
            future.result()
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)


def _go_on(trial: RunningTrial, fold: int, rounds: int, n_jobs: int, stopped: threading.Event | None) -> None:
    """``RunningTrial.go_on``; an error says of which setting, and stops the other fits."""
    try:
        trial.go_on(fold, rounds, n_jobs, stopped)
    except BaseException as error:
        if stopped is not None:
            stopped.set()
        error.add_note(f"The setting is number {trial.number} of the search, in fold {fold}.")
        raise


def _one_gpu(trials: Sequence[RunningTrial], cells: int, on: str | None) -> str | None:
    """The GPU on which the fits go in lock-step, if all of them are on one."""
    rows = len(trials[0].folds[0].training)
    gpus = {gpu_of_fits(trial.model, rows, cells, on) for trial in trials}
    return gpus.pop() if len(gpus) == 1 else None


def bin_for(trials: Sequence[RunningTrial], cells: int, on: str | None) -> None:
    """Bin the folds of fits on the CPU with all threads, before the fits share them out."""
    for trial in trials:
        if _alone(trial.model, cells, on):
            for fold in trial.folds:
                fold.bin_now(threads(trial.model.n_jobs))


def _alone(model: GradientBoosting, cells: int, on: str | None) -> bool:
    """True if a fit uses nothing but some threads of this process."""
    serial = isinstance(execution(model.execution), Serial)
    return serial and choose(model.device, cells, on).name == "cpu"
