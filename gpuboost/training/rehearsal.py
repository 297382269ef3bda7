"""A base learner's preparation for the data, as ``check`` tries it: what it refuses, a fit would refuse too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost import backends
from gpuboost.base_learners.estimator import AnyEstimator
from gpuboost.data.columns import categorical_columns
from gpuboost.data.dataset import Dataset
from gpuboost.data.tables import as_table
from gpuboost.errors import RecipeError
from gpuboost.learners.selection import SelectionTraits, prepared
from gpuboost.recipe import Recipe
from gpuboost.records import declared
from gpuboost.training import parameters
from gpuboost.training.base_learners import with_numbers
from gpuboost.training.features import features, training_set
from gpuboost.training.rows import LabelledRows
from gpuboost.training.targets import TrainingTarget
from gpuboost.types import DeviceMatrix

FEW = 50  # rows of a trial fit


def try_base_learner(params: Mapping[str, Any], recipe: Recipe, rows: LabelledRows, target: TrainingTarget) -> None:
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
    threads = parameters.threads(params["n_jobs"])
    found = features(params, rows.x, target.rows.weight, None, threads)
    backend = backends.get("cpu", threads)
    recipe = with_numbers(recipe, found.columns.names)
    recipe.prepared(backend, training_set(found, target, with_x=True)(backend))
    if isinstance(recipe.base_learner, AnyEstimator):
        _try_missing(recipe.base_learner, found.x, target.y)


def try_selection(params: Mapping[str, Any], recipe: Recipe, rows: LabelledRows, target: TrainingTarget) -> None:
    """Prepare the selection rule for the data, if a column is categorical; nothing for rules that need no data.

    Raises
    ------
    RecipeError
        If the rule draws cuts, which a categorical column does not have.
    """
    data = rows.x
    if recipe.base_learner is not None or declared(SelectionTraits, recipe.learners).prepared is None:
        return
    known = data.columns.is_categorical if isinstance(data, Dataset) else _categorical(params, data)
    if known.any():
        threads = parameters.threads(params["n_jobs"])
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
