"""Checks of a recipe against its data, before a fit: custom losses, splits that cannot be made, unused parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.queries import query_start
from gpuboost.errors import RecipeError
from gpuboost.losses.custom import Custom
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.distribution import LEAST_SPREAD, GaussianNLL
from gpuboost.losses.protocol import Loss
from gpuboost.losses.residual import SquaredError
from gpuboost.losses.start_values import OPTIMUM
from gpuboost.recipe import Recipe
from gpuboost.training.constraints.by_column import ByColumn
from gpuboost.training.init_model import Start

LEAST_GRADIENT = 1e-37
"""Differences of targets below which float32 gradients lose digits, and then are 0"""


def warn_of_light_weights(recipe: Recipe, weight: NDArray[np.float64] | None, n_rows: int) -> None:
    """Warn if the curvature of all rows together is less than two leaves need, or the rows are fewer.

    weight: (n,) of the training rows, or None. Few rows are a usual case, as is a weight that sums to 1: a leaf needs a
    curvature of ``min_child_weight``, which is that of one row of weight 1 (docs/decisions/0005).
    """
    curvature = recipe.step.curvature(recipe.loss)
    bound = recipe.loss.smoothness if curvature is None else curvature
    searched = recipe.base_learner is None and recipe.langevin.random_from != 0
    rows_that_count = n_rows if weight is None else np.count_nonzero(weight)
    if not searched or recipe.rounds == 0 or rows_that_count < 2:
        return
    fewest = recipe.growth.limits.min_samples_leaf
    if 2 * fewest > rows_that_count:
        warnings.warn(
            f"min_samples_leaf: there are {rows_that_count} rows, and two leaves need {2 * fewest} (min_samples_leaf="
            f"{fewest}): no tree will have a split. Lower min_samples_leaf.",
            stacklevel=2,
        )
        return
    if bound is None:
        return
    least, total = recipe.growth.limits.min_child_weight, float(n_rows if weight is None else weight.sum())
    if total * bound >= 2.0 * least:
        return
    if weight is None:
        rows, advice = f"min_child_weight: there are {n_rows} rows", "Lower min_child_weight"
    else:
        rows = f"sample_weight: the weights sum to {total:.3g}"
        advice = "Scale the weights to a mean of 1, or lower min_child_weight"
    warnings.warn(
        f"{rows}, so all rows together have a curvature of at most {total * bound:.3g}, and two leaves need "
        f"{2.0 * least:.3g} (min_child_weight={least:g}): no tree will have a split. {advice}.",
        stacklevel=2,
    )


def warn_of_small_target(loss: Loss, y: NDArray[np.float64]) -> None:
    """Warn if the target varies too little for the loss: gradients are float32, and learned spreads have a lower bound.

    y: (n,) or (n, k).
    """
    if not isinstance(loss, (SquaredError, GaussianNLL)):
        return
    least = LEAST_SPREAD if isinstance(loss, GaussianNLL) else LEAST_GRADIENT
    some = y[: 2**10]
    if np.max(some) - np.min(some) > least:
        return
    varies_by = float(np.max(y) - np.min(y))
    if 0.0 < varies_by <= least:
        warnings.warn(
            f"y: it varies by {varies_by:.3g}, and loss {loss.name!r} learns little of less than {least:.0e}. Multiply "
            "y by a constant, and divide predictions by it.",
            stacklevel=2,
        )


def check_custom_loss(recipe: Recipe, y: NDArray[np.float64], group: NDArray[Any] | None = None) -> None:
    """Raise RecipeError if the functions of a custom loss contradict each other. y: (n,) targets; group: queries."""
    if is_of_arrays(recipe.loss):
        recipe.loss.check_functions(y, None if group is None else query_start(group))
    if isinstance(recipe.loss, Custom):
        from gpuboost.backends.python_functions import registered

        for function in recipe.loss.functions:  # which may be jitted and call plain functions, even in this check
            registered(function)
        recipe.loss.check_functions(y, uses_hessian=recipe.step.curvature(recipe.loss) is None)


def check_of_metrics(loss: Loss, names: Sequence[str], *, watched: bool) -> None:
    """Raise RecipeError if eval sets are to be judged by a loss of arrays whose value is not known."""
    if watched and "loss" in names and is_of_arrays(loss) and loss.functions.value is None:
        raise RecipeError(
            f"eval_metric: {loss!r} has derivatives and no value to judge rows by. Name a metric, or give "
            "gb.losses.custom_arrays(value=...)."
        )


def warn_of_unused_start(recipe: Recipe, continued: Mapping[str, Any]) -> None:
    """Warn if ``start`` is not that of the model to continue, whose parameters are ``continued``."""
    if recipe.start_at not in (OPTIMUM, continued.get("start", OPTIMUM)):
        warnings.warn(
            f"start: {recipe.start_at!r} has no effect, as the model to continue has a start of its own.",
            stacklevel=2,
        )


def warn_of_free_trees(constraints: ByColumn, start: Start) -> None:
    """Warn if the trees of the model to continue are not held to the constraints of this fit."""
    names = ("monotonic_cst", "interaction_cst")
    before = ByColumn.of({name: start.params.get(name) for name in names}, start.columns)
    held = before.directions or (0,) * start.columns.n_features
    monotone = all(now in (0, then) for now, then in zip(constraints.directions or (), held, strict=False))
    separate = constraints.interactions in (None, before.interactions)
    for name, kept in zip(names, (monotone, separate), strict=True):
        if start.ensemble.n_rounds and not kept:
            warnings.warn(
                f"{name}: the {start.ensemble.n_rounds} rounds of the model to continue were fitted with "
                f"{name}={start.params.get(name)!r}, so predictions need not follow the constraint; only new trees do. "
                "Begin anew if they have to.",
                stacklevel=2,
            )
