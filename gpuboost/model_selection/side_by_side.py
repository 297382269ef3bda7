"""Fits of the settings of a search, several at the same time in the threads of one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from gpuboost.api.base import GradientBoosting
from gpuboost.losses.protocol import Loss
from gpuboost.model_selection.folds import for_fold
from gpuboost.model_selection.in_step import SET, deciding_metric, without_stopping
from gpuboost.model_selection.in_threads import fit_in_threads, fit_with, is_on_cpu
from gpuboost.model_selection.lock_step import fit_in_turn_or_together, gpu_of_fits
from gpuboost.model_selection.search_data import Fold
from gpuboost.training.parameters.assembly import recipe_from
from gpuboost.training.parameters.seeds import seed_of
from gpuboost.training.parameters.threads import threads_of
from gpuboost.training.placement.at_once import Share
from gpuboost.training.row_sampling import check_rows_of


@dataclass(slots=True, eq=False)
class RunningTrial:
    """A setting, and its fits so far."""

    number: int
    model: GradientBoosting  # with the setting's parameters
    folds: Sequence[Fold]
    fitted: list[GradientBoosting | None] = field(default_factory=list)  # of each fold
    curves: list[list[float]] = field(default_factory=list)  # of each fold: the metric by ``n_estimators``
    metric: str = ""
    higher_is_better: bool = False

    def __post_init__(self) -> None:
        self.fitted, self.curves = [None for _ in self.folds], [[] for _ in self.folds]

    def go_on(self, fold: int, rounds: int, share: Share) -> GradientBoosting:
        """Fit one fold up to so many rounds, from those that it has."""
        rows, before = self.folds[fold], self.fitted[fold]
        made = for_fold(self.model, rows.learn, rows.n_rows)
        made.set_params(n_estimators=rounds - len(self.curves[fold]))
        made = fit_with(
            share, made, lambda part: part.fit(rows.training, eval_set={SET: rows.judged}, init_model=before)
        )
        metric = deciding_metric(self.model, made)
        self.metric, self.higher_is_better = metric.name, metric.higher_is_better
        sequences = made.columns_.sequences  # each has a round for one of n_estimators
        self.curves[fold] += made.evals_result_[SET][metric.name][sequences - 1 :: sequences]
        self.fitted[fold] = made
        return made

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
    """The model of each setting, without early stopping of its own, and with one seed unless it has its own.

    Raises
    ------
    RecipeError, ValueError
        If the model does not take a parameter of a setting.
    """
    seed = seed_of(model.random_state)
    common = {"early_stopping_rounds": None, "callbacks": without_stopping(model)}
    seeds = [seed_of(setting.get("random_state", seed)) for setting in settings]
    return [
        clone(model).set_params(**setting | common | {"random_state": own})
        for setting, own in zip(settings, seeds, strict=True)
    ]


def check_recipes(trials: Sequence[RunningTrial]) -> None:
    """Raise RecipeError or InputError for the first setting that no fit accepts, before any is fitted."""
    losses: dict[str, Loss] = {}
    for trial in trials:
        params, rows = trial.model.get_params(deep=False), trial.folds[0].training
        try:
            key = repr(params["loss"])
            if key not in losses:
                fresh: GradientBoosting = clone(trial.model)
                losses[key] = fresh._target(fresh._rows(rows, None, None)).loss
            recipe_from(params, losses[key], len(rows))
            check_rows_of(params["sampling"], trial.folds[0].n_rows)
        except BaseException as error:
            error.add_note(f"The setting is number {trial.number} of the search.")
            raise


def fit_side_by_side(trials: Sequence[RunningTrial], rounds: int, cells: int, on: str | None) -> None:
    """Fit all folds of the trials up to so many rounds: on the CPU in threads, on a GPU some in lock-step.

    cells, on: number of values of X, and the GPU that holds it, which decide for ``device="auto"``.
    """
    going = [trial for trial in trials if trial.rounds < rounds]
    tasks = [(trial, fold) for trial in going for fold in range(len(trial.folds))]
    if not tasks:
        return
    works = [partial(_go_on, *task, rounds) for task in tasks]
    if all(is_on_cpu(trial.model, cells, on) for trial in going):
        new_rounds, rows = min(rounds - trial.rounds for trial in going), len(going[0].folds[0].training)
        fit_in_threads(works, [trial.model for trial in going], new_rounds, rows, cells)
    else:
        alone = Share(threads_of(tasks[0][0].model.n_jobs))
        fit_in_turn_or_together([partial(work, alone) for work in works], _one_gpu(trials, cells, on))


def _go_on(trial: RunningTrial, fold: int, rounds: int, share: Share) -> GradientBoosting:
    """``RunningTrial.go_on``; an error says of which setting."""
    try:
        return trial.go_on(fold, rounds, share)
    except BaseException as error:
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
        if is_on_cpu(trial.model, cells, on):
            for fold in trial.folds:
                fold.bin_now(threads_of(trial.model.n_jobs))
