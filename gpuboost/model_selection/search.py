"""Search of parameters by cross-validation: settings are fitted side by side, and the better ones go on."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuboost.api.base import GradientBoosting
from gpuboost.errors import InputError, RecipeError, shown
from gpuboost.model_selection.folds import Rows, splits_of
from gpuboost.model_selection.halving import Rung, most_settings, rungs
from gpuboost.model_selection.model_check import check_model
from gpuboost.model_selection.search_data import BINNING, Fold, SearchData
from gpuboost.model_selection.search_space import Setting, check_space, grid_size, is_grid, settings_of
from gpuboost.model_selection.side_by_side import RunningTrial, bin_for, check_recipes, fit_side_by_side, running
from gpuboost.training.parameters.automatic import is_auto, provisional
from gpuboost.training.parameters.threads import threads_of
from gpuboost.training.parameters.values import integer

BUDGET = 10  # of a search with distributions, unless it is given; the number of RandomizedSearchCV


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting of a search."""

    number: int  # in the order in which settings were drawn
    params: Setting
    rounds: int  # that each fold was fitted for, counted as by ``n_estimators``
    n_estimators: int  # number of rounds with the best mean of the metric
    score: float  # that mean over the folds
    std: float  # standard deviation over the folds, of the same round
    curve: tuple[float, ...] = field(repr=False)  # mean of the metric after each of these rounds


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The trials of a search, and the model of the best one."""

    trials: tuple[Trial, ...]  # the best first
    metric: str
    higher_is_better: bool
    rungs: tuple[Rung, ...]  # how many settings were fitted for how many rounds
    model: GradientBoosting | None  # fitted to all rows with ``best_params_``; None if ``refit`` is False

    @property
    def best(self) -> Trial:
        return self.trials[0]

    @property
    def best_params_(self) -> dict[str, Any]:
        """Parameters of the best trial, the number of rounds among them: ``model.set_params(**best_params_)``."""
        return {**self.best.params, "n_estimators": self.best.n_estimators}

    @property
    def table(self) -> dict[str, list[Any]]:
        """The trials as columns, the best first: ``pandas.DataFrame(result.table)``. None where a trial has no value
        of a parameter."""
        names = dict.fromkeys(name for trial in self.trials for name in trial.params)
        columns = ("number", "score", "std", "n_estimators", "rounds")
        facts: dict[str, list[Any]] = {name: [getattr(trial, name) for trial in self.trials] for name in columns}
        return facts | {f"param_{name}": [trial.params.get(name) for trial in self.trials] for name in names}

    def __repr__(self) -> str:
        best = f"{self.metric} {self.best.score:.5g} +- {self.best.std:.2g} with {self.best_params_}"
        return f"SearchResult({len(self.trials)} trials, {best})"


def search(
    model: GradientBoosting,
    space: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = 5,
    budget: float | None = None,
    sample_weight: Any = None,
    group: Any = None,
    init_score: Any = None,
    reduction: int = 3,
    refit: bool = True,
    random_state: int = 0,
) -> SearchResult:
    """Find parameters by cross-validation and successive halving over the number of rounds.

    The features are binned once per fold. Fits of settings and folds share the model's ``n_jobs`` threads, and take
    turns above 262,144 rows and with callbacks; on a GPU up to 16 go in lock-step. A setting that goes on keeps its
    trees: the model of a setting and fold is, byte for byte, that of a fit of all its rounds at once, as in
    ``GridSearchCV``. No number of rounds is searched: each curve has all of them, and the best is taken.

    Parameters
    ----------
    model : estimator
        Has the parameters that are not searched, and the most rounds (``n_estimators``). Settings are compared by the
        first of its ``eval_metric``. With ``early_stopping_rounds`` a setting whose mean was no new best for so many
        rounds does not go on. Not changed.
    space : mapping from parameters to values, or list of such
        Values are a list, a distribution of ``scipy.stats``, or one of ``optuna.distributions``. Parameters of
        policies are nested: ``sampling__rate``.
    X, y, sample_weight, group, init_score
        As for ``fit``; X may be a ``gb.Dataset``, whose cuts are then those of all rows.
    cv : int, splitter of scikit-learn, or iterable of (training rows, held-out rows)
        As ``folds`` of ``gb.cv``: an int shuffles, classes are spread evenly, and rows of a query stay together. Rules
        of one number for each row (``gb.RowProbabilities``) have those of a fold's rows.
    budget : number of 1 or more, optional
        Cost of the search, in cross-validated fits of ``n_estimators`` rounds. As many settings are drawn as successive
        halving can try at this cost. None tries every setting of a grid for all rounds, or is 10 for distributions.
    reduction : int, 2 or more
        Factor by which each stage reduces the settings and raises the rounds.
    refit : bool
        Also fit the best setting to all rows, for its best number of rounds.
    random_state : int
        Seed of the folds and of the settings.

    Returns
    -------
    SearchResult
        ``model``, ``best_params_``, and the ``trials`` with their curves, also as a ``table``.

    Raises
    ------
    RecipeError
        If an argument is out of its range, or a setting has a parameter that the model does not take or a value that
        no fit accepts: then nothing is fitted.
    InputError
        If the data cannot be learned from.

    Notes
    -----
    K. Jamieson and A. Talwalkar, AISTATS 2016. A setting that learns slowly can be dropped in an early stage: give
    learning rates of like size, or ``budget=None`` and a grid.
    """
    rounds, seed = _rounds_of(model), integer("random_state", random_state, 0, 2**32 - 1)
    stages, settings = _plan(check_space(space), budget, rounds, reduction, seed)
    _check_metric(model, settings)
    data = SearchData.of(model, X, y, sample_weight, group, init_score)
    settings = [_with_rate(setting, model, data.n_rows) for setting in settings]
    models = running(model, settings)
    splits = splits_of(cv, data.n_rows, data.y, data.group, seed, classify=is_classifier(model), name="cv")
    data.check(settings)
    trials = _trials(models, data, splits)
    check_recipes(trials)
    best_first = _halved(trials, stages, model, data)
    ranked_trials = tuple(_trial(trial, settings[trial.number]) for trial in best_first)
    final = (
        data.fit(models[ranked_trials[0].number].set_params(n_estimators=ranked_trials[0].n_estimators))
        if refit
        else None
    )
    return SearchResult(ranked_trials, trials[0].metric, trials[0].higher_is_better, stages, final)


def _rounds_of(model: GradientBoosting) -> int:
    """The most rounds. Raises RecipeError if the model is none of gpuboost, or holds rows out itself."""
    check_model(model)
    if model.validation_fraction is not None:
        raise RecipeError("validation_fraction: the folds hold rows out; set it to None.")
    if is_auto(model.n_estimators):
        raise RecipeError(
            "n_estimators: the search finds the number of rounds from the curves, up to that of the model, and 'auto' "
            "is none. Give the most rounds, such as 500."
        )
    return integer("n_estimators", model.n_estimators, 1)


def _plan(
    space: Sequence[Mapping[str, Any]], budget: float | None, rounds: int, reduction: int, seed: int
) -> tuple[tuple[Rung, ...], list[Setting]]:
    """The stages, and the settings that begin."""
    factor = integer("reduction", reduction, 2)
    grid = grid_size(space) if is_grid(space) else None
    if budget is None and grid is None:
        budget = BUDGET
    if budget is None:
        return (Rung(grid or 1, rounds),), settings_of(space, grid or 1, seed)
    if not isinstance(budget, Real) or isinstance(budget, bool) or not 1 <= budget < np.inf:
        raise RecipeError(f"budget: must be a finite number of 1 or more; got {shown(budget)}.")
    if grid is not None and grid <= budget:
        return (Rung(grid, rounds),), settings_of(space, grid, seed)
    count = most_settings(float(budget), rounds, factor)
    settings = settings_of(space, count if grid is None else min(count, grid), seed)
    return rungs(len(settings), rounds, factor), settings


def _check_metric(model: GradientBoosting, settings: Sequence[Setting]) -> None:
    """Raise RecipeError if settings would be judged by different losses."""
    names = {name.partition("__")[0] for setting in settings for name in setting}
    if "loss" in names and model.eval_metric is None:
        raise RecipeError("eval_metric: settings of several losses are compared by one metric; name it on the model.")


def _with_rate(setting: Setting, model: GradientBoosting, n_rows: int) -> Setting:
    """The setting with the number that ``learning_rate="auto"`` stands for, of the most rounds."""
    rate = setting.get("learning_rate", model.learning_rate)
    if not is_auto(rate):
        return setting
    numbers = provisional({**model.get_params(deep=False), "learning_rate": rate}, n_rows)
    return {**setting, "learning_rate": numbers["learning_rate"]}


def _trials(
    models: Sequence[GradientBoosting], data: SearchData, splits: Sequence[tuple[Rows, Rows]]
) -> list[RunningTrial]:
    """The settings with their folds; those that bin alike share them."""
    made: dict[bytes, Sequence[Fold]] = {}
    trials = []
    for number, model in enumerate(models):
        binning = {name: getattr(model, name) for name in BINNING}
        same = pickle.dumps(binning)
        if same not in made:
            made[same] = data.folds(splits, binning, threads_of(model.n_jobs))
        trials.append(RunningTrial(number, model, made[same]))
    return trials


def _halved(
    trials: Sequence[RunningTrial], stages: Sequence[Rung], model: GradientBoosting, data: SearchData
) -> list[RunningTrial]:
    """The trials after all stages, the best first."""
    place = data.n_rows * data.x.shape[1], data.device
    bin_for(trials, *place)
    for stage in stages:
        going = sorted(trials, key=lambda trial: trial.rank)[: stage.settings]
        fit_side_by_side([trial for trial in going if not _has_stopped(trial, model)], stage.rounds, *place)
    best_first = sorted(trials, key=lambda trial: trial.rank)
    if best_first[0].rank[0] == np.inf:
        raise InputError(f"eval_metric: the mean of {trials[0].metric} is nan for every setting; choose another one.")
    return best_first


def _has_stopped(trial: RunningTrial, model: GradientBoosting) -> bool:
    """True if the trial's mean was no new best in the model's ``early_stopping_rounds`` newest rounds."""
    patience = model.early_stopping_rounds
    return patience is not None and trial.rounds > 0 and trial.rounds - 1 - trial.best_round >= patience


def _trial(trial: RunningTrial, params: Setting) -> Trial:
    best, mean = trial.best_round, trial.mean
    std = float(np.std([curve[best] for curve in trial.curves]))
    return Trial(trial.number, params, trial.rounds, best + 1, float(mean[best]), std, tuple(mean.tolist()))
