"""Checks of a recipe against its data, before a fit: custom losses, and weights too small for any split."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from gpuboost.losses.custom import Custom
from gpuboost.recipe import Recipe


def warn_of_light_weights(recipe: Recipe, weight: NDArray[np.float64] | None) -> None:
    """Warn if the curvature of all rows together is less than two leaves need.

    weight: (n,) of the training rows. Weights that sum to 1, as probabilities do, are the usual case: a leaf needs a
    curvature of ``min_child_weight``, which is that of one row of weight 1 (docs/decisions/0005).
    """
    curvature = recipe.step.curvature(recipe.loss)
    bound = recipe.loss.smoothness if curvature is None else curvature
    if weight is None or bound is None or recipe.base_learner is not None or recipe.rounds == 0:
        return
    least, total = recipe.growth.limits.min_child_weight, float(weight.sum())
    if total * bound >= 2.0 * least or np.count_nonzero(weight) < 2:
        return
    warnings.warn(
        f"sample_weight: the weights sum to {total:.3g}, so all rows together have a curvature of at most "
        f"{total * bound:.3g}, and two leaves need {2.0 * least:.3g} (min_child_weight={least:g}): no tree will have a "
        "split. Scale the weights to a mean of 1, or lower min_child_weight.",
        stacklevel=2,
    )


def check_custom_loss(recipe: Recipe, y: NDArray[np.float64]) -> None:
    """Raise RecipeError if the functions of a custom loss contradict each other; y: (n,) targets."""
    if isinstance(recipe.loss, Custom):
        recipe.loss.check_functions(y, uses_hessian=recipe.step.curvature(recipe.loss) is None)
