"""The model that a fit continues: ``init_model``, a checkpoint, or the estimator's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.columns import Columns
from gpuboost.errors import InputError, RecipeError
from gpuboost.learning_rates import Averaging
from gpuboost.losses import SavedCustom
from gpuboost.losses.per_output import MULTILABEL
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass
from gpuboost.training import files
from gpuboost.training.checkpoint import CheckpointState
from gpuboost.training.fit_record import FitRecord
from gpuboost.training.targets import TrainingTarget
from gpuboost.types import Ensemble


@dataclass(frozen=True, slots=True)
class Start:
    """A model to continue."""

    columns: Columns
    ensemble: Ensemble
    params: Mapping[str, Any] = field(default_factory=dict)
    run: CheckpointState | None = None  # state of an interrupted fit, if it is to be resumed
    record: FitRecord = field(default_factory=FitRecord)
    offsets: bool = False  # True: fitted with offsets
    argument: str = "init_model"  # by which the user asked for it, for messages


def rounds_before(start: Start) -> int:
    """Rounds of the model that the fit begins with, as ``n_estimators`` counts them; not those before an interrupt."""
    steps = start.ensemble.n_rounds if start.run is None else start.run.first
    return steps // start.columns.sequences


def check_averaged(recipe: Recipe, start: Start) -> None:
    """Raise RecipeError if a mean of trees is to continue a model that is none."""
    if not recipe.averages or not start.ensemble.n_rounds:
        return
    if not isinstance(start.params.get("learning_rate"), Averaging):
        raise RecipeError(
            "learning_rate: gb.Averaging() makes the mean of all rounds, and the model to continue is a sum. Begin "
            "anew, or continue with a number."
        )


def starting_point(saved: files.Saved, target: TrainingTarget, argument: str = "init_model") -> Start:
    """The model to continue, checked against the target. argument: by which the user asked for it.

    Raises
    ------
    InputError
        If the model was made for another kind of target.
    """
    if (saved.classes is None) != (target.classes is None):
        wanted = files.CLASSIFIER if target.classes is not None else "a regressor or ranker"
        raise InputError(
            f"{argument}: must be of the same kind as this estimator, {wanted}; got {files.kind_of(saved)}."
        )
    if MULTILABEL not in (saved.loss.task, target.loss.task):
        _check_classes(saved.classes, target.classes, argument)
    same_name = isinstance(saved.loss, SavedCustom) and saved.loss.name == target.loss.name
    if saved.loss != target.loss and not same_name:
        raise InputError(f"{argument}: was trained for the loss {saved.loss!r}; this fit is for {target.loss!r}.")
    record = saved.record
    if saved.best_iteration is not None:  # picked by its score, so it is no state of a chain
        record = replace(record, chain=None)
    return Start(saved.columns, saved.ensemble, saved.fitted, None, record, saved.offsets, argument)


def _check_classes(known: NDArray[Any] | None, seen: NDArray[Any] | None, argument: str) -> None:
    """Raise InputError if the rows to learn from have other classes than the model to continue."""
    if known is None or seen is None or np.array_equal(known, seen):
        return
    lacks_some = set(seen.tolist()) < set(known.tolist())
    advice = "Add a row of weight 0 for each class that is lacking." if lacks_some else "Fit a new model to all rows."
    raise InputError(f"{argument}: knows the classes {known}; y holds {seen}. {advice}")


def checkpoint(path: Any, init_model: Any, target: TrainingTarget) -> Start:
    """The checkpoint to resume from.

    Raises
    ------
    RecipeError
        If it is not a path, or ``init_model`` was given too.
    InputError
        If it is not a checkpoint of a fit of this kind.
    """
    if init_model is not None:
        raise RecipeError("resume_from: a fit that goes on has begun with a model of its own; init_model must be None.")
    if not isinstance(path, (str, os.PathLike)):
        raise RecipeError(f"resume_from: must be the path of a checkpoint; got {path!r}.")
    saved = files.read(path)
    if saved.run is None:
        raise InputError(
            f"resume_from: {os.fspath(path)!r} is a model, and no checkpoint that gb.callbacks.Checkpoint wrote. "
            "To continue a model with more rounds, use init_model."
        )
    return replace(starting_point(saved, target, "resume_from"), run=CheckpointState.from_json(saved.run))
