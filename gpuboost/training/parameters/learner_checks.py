"""Checks of a selection rule of features against the columns and the limits of trees."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

from gpuboost.composition.learners import MOST_PAIRS_PER_FEATURE, is_stump, not_enumerable
from gpuboost.errors import RecipeError
from gpuboost.learners import RandomGroups, RandomLearners, Selection, WeightedGroups
from gpuboost.learners.partition import partition
from gpuboost.learners.selection import SelectionTraits
from gpuboost.records import declared
from gpuboost.training.parameters.values import integer
from gpuboost.types import Limits


def check_learners(selection: Selection, limits: Limits, n_columns: int, max_bins: Any) -> None:
    """Refuse rules that do not fit the columns or the limits, before the data are binned. Raises RecipeError."""
    groups = declared(SelectionTraits, selection).groups
    if isinstance(selection, RandomGroups) and groups == "feature" and selection.t > n_columns:
        warnings.warn(f"learners: {selection.t} are asked for, and there are {n_columns} features.", stacklevel=2)
    if isinstance(groups, tuple):
        partition(groups, n_columns)
    if isinstance(selection, WeightedGroups):
        selection.check(n_columns)
    if not isinstance(selection, RandomLearners):
        return
    if not is_stump(limits):
        raise RecipeError(not_enumerable(limits, n_columns, integer("max_bins", max_bins, 2) - 1))
    if isinstance(selection.t, Integral) and selection.t >= MOST_PAIRS_PER_FEATURE * n_columns:
        warnings.warn(
            f"learners: {selection.t} pairs of {n_columns} features are about all of the features; RandomGroups(t) "
            "draws from the same at less cost.",
            stacklevel=2,
        )
