"""The model that ``fit(init_model=)`` continues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuboost.api import files
from gpuboost.api.goals import Goal
from gpuboost.data.columns import Columns
from gpuboost.errors import InputError
from gpuboost.losses import SavedCustom
from gpuboost.types import Ensemble


@dataclass(frozen=True, slots=True)
class Start:
    """A model to continue."""

    columns: Columns
    ensemble: Ensemble


def starting_point(saved: files.Saved, goal: Goal) -> Start:
    """What to continue from.

    Raises
    ------
    InputError
        If it was made for another kind of target.
    """
    if (saved.classes is None) != (goal.classes is None):
        raise InputError("init_model: must be of the same kind as this estimator; got another.")
    same_name = isinstance(saved.loss, SavedCustom) and saved.loss.name == goal.loss.name
    if saved.loss != goal.loss and not same_name:
        raise InputError(f"init_model: was trained for the loss {saved.loss!r}; this fit is for {goal.loss!r}.")
    if saved.classes is not None and goal.classes is not None and not np.array_equal(saved.classes, goal.classes):
        raise InputError(f"init_model: knows the classes {saved.classes}; y holds {goal.classes}.")
    return Start(saved.columns, saved.ensemble)
