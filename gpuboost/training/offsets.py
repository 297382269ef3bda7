"""Offsets (``init_score``) of a fit: their shape, and the fits that cannot have them."""

from __future__ import annotations

from dataclasses import replace

from gpuboost.data.offsets import of_scores
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.errors import InputError, RecipeError
from gpuboost.langevin import Langevin
from gpuboost.recipe import Recipe
from gpuboost.training.init_model import Start
from gpuboost.training.targets import TrainingTarget


def with_offsets(target: TrainingTarget, start: Start | None) -> TrainingTarget:
    """The target with offsets of one number for each score of the loss.

    Raises
    ------
    InputError
        If their shape is another, or the model to continue was fitted with offsets and there are none.
    """
    if target.rows.offset is None and start is not None and start.offsets:
        raise InputError(
            "init_score: the model to continue was fitted with offsets, and this fit has none. Pass them, or "
            "init_score=0 to go on without."
        )
    offset = of_scores(target.rows.offset, target.loss.n_outputs)
    return replace(target, rows=replace(target.rows, offset=offset))


def offsets_of_watched(rows: RowMetadata, target: TrainingTarget) -> RowMetadata:
    """The rows of an eval set, with offsets of one number for each score.

    Raises
    ------
    InputError
        If their shape is another, or the training rows have offsets and these have none.
    """
    if rows.offset is None and target.rows.offset is not None:
        raise InputError(
            "init_score: the training rows have offsets, and these rows have none, so their scores could not be "
            "compared. Pass (X, y, weight, init_score), a Dataset with init_score=, or init_score=0 for none."
        )
    return replace(rows, offset=of_scores(rows.offset, target.loss.n_outputs))


def refuse_shrunk_offsets(recipe: Recipe, rows: RowMetadata, start: Start | None) -> None:
    """Raise RecipeError if scores have offsets, and the model is one that shrinks."""
    shrunk = start is not None and start.ensemble.scale != 1.0
    if rows.offset is not None and recipe.averages:
        raise RecipeError(
            "init_score: a mean of trees (learning_rate=gb.Averaging()) is around one start for all rows, and offsets "
            "are none. Give the offset as a feature."
        )
    if rows.offset is not None and (isinstance(recipe.langevin, Langevin) or shrunk):
        raise RecipeError(
            "init_score: Langevin boosting shrinks scores towards the start of the model, and offsets are no part of "
            "it. Leave out init_score or langevin, or give the offset as a feature."
        )
