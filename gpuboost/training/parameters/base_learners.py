"""Resolution of ``base_learner=`` to a base learner."""

from __future__ import annotations

import inspect
from copy import deepcopy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

from gpuboost.base_learners import BaseLearner
from gpuboost.base_learners.best_of_families import BestOfFamilies
from gpuboost.base_learners.estimator import AnyEstimator
from gpuboost.errors import RecipeError, shown
from gpuboost.learners.families.protocol import Column, Family
from gpuboost.public import FAMILIES, loaded
from gpuboost.recipe import Recipe
from gpuboost.sampling import ImportanceSampling, Sampling

RULE = "None (trees), a family of gb.learners such as Spline(), a list of families, or a regressor with fit and predict"


def base_learner(value: Any, sampling: Sampling) -> BaseLearner | None:
    """The base learner that the parameter stands for; None for trees.

    value: None, families of ``gb.learners`` (one or a list), or a regressor with scikit-learn's interface.

    Raises
    ------
    RecipeError
        If value is none of these.
    """
    if value is None:
        return None
    listed = value if isinstance(value, (list, tuple)) else [value]
    if listed and all(isinstance(learner, Family) for learner in listed):
        return BestOfFamilies(tuple(listed))
    if isinstance(value, type) or not all(callable(getattr(value, name, None)) for name in ("fit", "predict")):
        raise RecipeError(f"base_learner: must be {RULE}; got {shown(value)}.")
    from sklearn.base import clone, is_classifier

    if hasattr(value, "__sklearn_tags__") and is_classifier(value):
        raise RecipeError(
            f"base_learner: gradients are numbers, so a regressor fits them; got the classifier {value!r}. Use the "
            "regressor of its kind; the loss makes classes of the scores."
        )
    copied = clone if hasattr(value, "get_params") else deepcopy
    weighted = takes_weights(value)
    return AnyEstimator(value, copied, weighted, not weighted and _cancels(sampling))


def not_on_gpus(value: Any) -> str | None:
    """The part of ``base_learner`` that has no GPU implementation, as text for the error; None if there is none."""
    listed = value if isinstance(value, (list, tuple)) else [value]
    others = (learner for learner in listed if not (isinstance(learner, Family) and learner.on_gpu))
    return None if value is None else next(map(shown, others), None)


def families_on_gpus() -> str:
    """Names of the families that a GPU can fit, for messages."""
    return ", ".join(family.__name__ for family in map(loaded, FAMILIES) if family.on_gpu)


def takes_weights(estimator: Any) -> bool:
    """True if its ``fit`` has a parameter ``sample_weight``; False for a pipeline, whose ``fit`` has none."""
    try:
        return "sample_weight" in inspect.signature(estimator.fit).parameters
    except (TypeError, ValueError):
        return False


def _cancels(sampling: Sampling) -> bool:
    """True if h / p can be one number for all rows: p is in proportion to h, and not bounded from below.

    ``UnclippedSampling`` keeps p from being clipped at 1.
    """
    if not isinstance(sampling, ImportanceSampling):
        return False
    return (
        sampling.score == "hessian" and sampling.least == 0.0 and sampling.factor is None and sampling.follows_gradients
    )


def with_numbers(recipe: Recipe, names: tuple[str, ...] | None) -> Recipe:
    """The recipe with column names in families replaced by column numbers.

    Raises
    ------
    RecipeError
        If there is no such column.
    """
    if not isinstance(recipe.base_learner, BestOfFamilies):
        return recipe

    def number(family: Family, column: Column) -> int:
        if isinstance(column, Integral):
            return int(column)
        if names is None or column not in names:
            known = "X has no names" if names is None else f"X has {', '.join(names)}"
            raise RecipeError(f"base_learner: {family!r} names column {column!r}; {known}.")
        return names.index(column)

    families = tuple(family.numbered(partial(number, family)) for family in recipe.base_learner.families)
    return replace(recipe, base_learner=replace(recipe.base_learner, families=families))
