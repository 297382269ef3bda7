"""The verdict on parameters and data before any training; what it refuses, a fit would refuse too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost import backends
from gpuboost.base_learners.estimator import AnyEstimator
from gpuboost.data.columns import categorical_columns
from gpuboost.data.dataset import Dataset
from gpuboost.data.tables import as_table
from gpuboost.errors import InputError, RecipeError
from gpuboost.learners.selection import SelectionTraits, prepared
from gpuboost.recipe import Recipe
from gpuboost.records import declared
from gpuboost.reports.report import Verdict, refused, verdict
from gpuboost.training.alternatives import sound_alternative
from gpuboost.training.constraints.by_column import ByColumn
from gpuboost.training.features import features, training_set
from gpuboost.training.parameters.assembly import recipe_from
from gpuboost.training.parameters.base_learners import with_numbers
from gpuboost.training.parameters.threads import threads_of
from gpuboost.training.row_sampling import check_rows_of
from gpuboost.training.rows import LabelledRows
from gpuboost.training.targets import TrainingTarget
from gpuboost.types import DeviceMatrix
from gpuboost.watch.early_stopping import stops_early

FEW = 50  # rows of a trial fit


def verdict_on(params: dict[str, Any], rows: LabelledRows, target: TrainingTarget) -> Verdict:
    """The verdict of theory on these parameters and data, with the parameters to change for a sound one, if known."""

    def is_sound(changed: dict[str, Any]) -> bool:
        return _verdict(changed, rows, target, trial=False).kind == "sound"

    verdict_now = _verdict(params, rows, target)
    changes = {} if verdict_now.kind == "sound" else sound_alternative(params, is_sound)
    if changes and _verdict({**params, **changes}, rows, target).kind != "sound":
        changes = None
    return replace(verdict_now, alternative=changes)


def _verdict(params: Mapping[str, Any], rows: LabelledRows, target: TrainingTarget, *, trial: bool = True) -> Verdict:
    """The verdict on these parameters. trial: prepare base learner and selection rule, which takes passes over rows."""
    try:
        stops = params["early_stopping_rounds"] is not None or stops_early(params["callbacks"])
        by_column = ByColumn.of_rows(params, rows.x)
        size = len(target.y), rows.x.shape[1]
        recipe = recipe_from(params, target.loss, *size, by_column, counted=target.rows.n_counted)
        check_rows_of(recipe.sampling, len(target.y))
    except RecipeError as error:
        return refused(error)
    if trial:
        try:
            _try_base_learner(params, recipe, rows, target)
            _try_selection(params, recipe, rows, target)
        except (InputError, RecipeError) as error:
            return refused(error)
    return verdict(recipe, stops_early=stops)


def _try_base_learner(params: Mapping[str, Any], recipe: Recipe, rows: LabelledRows, target: TrainingTarget) -> None:
    """Bin the rows and prepare the base learner and the selection rule for them; nothing for trees.

    Raises
    ------
    RecipeError, InputError
        As ``fit`` would as it begins: the numbers of families and features, of labels and weights, do not match, or the
        learner cannot take the data.
    """
    on_device = rows.x.device is not None if isinstance(rows.x, Dataset) else isinstance(rows.x.matrix, DeviceMatrix)
    if recipe.base_learner is None or on_device:
        return
    threads = threads_of(params["n_jobs"])
    binned = features(params, rows.x, target.rows.weight, None, threads)
    backend = backends.get("cpu", threads)
    recipe = with_numbers(recipe, binned.columns.names)
    recipe.prepared(backend, training_set(binned, target, with_x=True)(backend))
    if isinstance(recipe.base_learner, AnyEstimator):
        _try_missing(recipe.base_learner, binned.x, target.y)


def _try_selection(params: Mapping[str, Any], recipe: Recipe, rows: LabelledRows, target: TrainingTarget) -> None:
    """Prepare the selection rule for the data, if a column is categorical; nothing for rules that need no data.

    Raises
    ------
    RecipeError
        If the rule draws cuts, which a categorical column does not have.
    """
    data = rows.x
    if recipe.base_learner is not None or declared(SelectionTraits, recipe.learners).prepared is None:
        return
    is_categorical = data.columns.is_categorical if isinstance(data, Dataset) else _categorical(params, data)
    if is_categorical.any():
        threads = threads_of(params["n_jobs"])
        cuts = features(params, data, target.rows.weight, None, threads).cuts
        prepared(recipe.learners, cuts, cuts.n_features)


def _categorical(params: Mapping[str, Any], data: Any) -> NDArray[np.bool_]:
    return categorical_columns(as_table(data), params["categorical_features"])


def _try_missing(learner: AnyEstimator, x: Any, y: Any) -> None:
    """Raise RecipeError if the estimator cannot be fitted to rows with missing values, and can be to the others."""
    if not isinstance(x, np.ndarray) or not np.isnan(x).any():
        return
    rows = np.argsort(~np.isnan(x).any(axis=1), kind="stable")[:FEW]  # those with missing values first
    try:
        learner.copied(learner.template).fit(x[rows], y[rows])
    except ValueError as error:
        try:
            learner.copied(learner.template).fit(np.nan_to_num(x[rows]), y[rows])
        except ValueError:
            return  # it has another reason, such as too few rows
        why = str(error).splitlines()[0]
        raise RecipeError(
            f"base_learner: {type(learner.template).__name__} takes no missing values, and X has some: {why}"
        ) from error
