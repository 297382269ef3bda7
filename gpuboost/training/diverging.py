"""Warnings for steps that are too long for the curvature of the loss: before a fit, and after one that diverged."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import OutsideTheoryWarning
from gpuboost.langevin import Langevin
from gpuboost.losses.custom import Custom
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.distribution import scaled_to_start
from gpuboost.losses.protocol import is_list_loss
from gpuboost.losses.start_values import OPTIMUM, start_value
from gpuboost.recipe import Recipe
from gpuboost.reports.report import descent
from gpuboost.steps import searches
from gpuboost.types import Array, Progress

LONGEST = 2.0  # times 1 / h: from here on a step along the gradient of a quadratic raises it (descent lemma)
ROUNDING = 1e-6  # relative difference of two losses that is not a rise
MOST_ROWS = 1_000  # the mean curvature is that of this many rows, evenly spaced


def warn_of_steep_loss(recipe: Recipe, y: NDArray[np.float64], weight: NDArray[np.float64] | None) -> None:
    """Warn if learning_rate times the mean curvature at the start value is 2 c or more, c being the step's curvature.

    Only for constant c and a loss without a smoothness constant: Poisson's curvature, for one, is the mean count.
    y, weight: (n,), weight None if all are 1.
    """
    loss, curvature = recipe.loss, recipe.step.curvature(recipe.loss)
    if curvature is None or searches(recipe.step) or loss.smoothness is not None or recipe.rounds == 0:
        return
    if not loss.has_curvature or is_list_loss(loss) or is_of_arrays(loss):
        return
    steepest = _mean_curvature(recipe, y, np.ones(len(y)) if weight is None else weight)
    if recipe.learning_rate * steepest < LONGEST * curvature:
        return
    warnings.warn(
        f"step: {recipe.step!r} with learning_rate={recipe.learning_rate:g} is too long for loss {loss.name!r}, whose "
        f"mean second derivative is {steepest:.3g} at the start value: from learning_rate="
        f"{LONGEST * curvature / steepest:.3g} on the training loss may rise without end. {_advice(recipe)}",
        OutsideTheoryWarning,
        stacklevel=2,
    )


def _advice(recipe: Recipe) -> str:
    others = "" if isinstance(recipe.langevin, Langevin) else ", or step='newton'"
    return f"Use a lower learning_rate{others}."


def _mean_curvature(recipe: Recipe, y: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """Largest mean of h over the rows, of all outputs."""
    loss, paper = recipe.loss, isinstance(recipe.langevin, Langevin) and recipe.langevin.paper
    start = start_value(0.0 if paper and recipe.start_at == OPTIMUM else recipe.start_at, loss, y, weight)
    loss = loss if isinstance(recipe.langevin, Langevin) else scaled_to_start(loss, start)
    rows = np.arange(0, len(y), max(1, len(y) // MOST_ROWS))
    h = np.zeros((len(rows), loss.n_outputs))
    for i, row in enumerate(rows.tolist()):
        if loss.n_outputs == 1:
            h[i, 0] = loss.derivatives(float(y[row]), float(start[0]), loss.parameter)[1]
        else:
            loss.row_derivatives(y[row], start, np.zeros(loss.n_outputs), h[i], loss.parameter)
    by = weight[rows]
    return float((h.T @ by).max() / by.sum()) if by.sum() > 0.0 else 0.0


def may_diverge(recipe: Recipe) -> bool:
    """True if the steps may be so long that the model is worse than its start value, and no noise explains it."""
    if isinstance(recipe.langevin, Langevin) or is_list_loss(recipe.loss) or recipe.rounds == 0:
        return False
    if is_of_arrays(recipe.loss) and recipe.loss.functions.value is None:
        return False
    if recipe.averages:
        return False
    long_steps = recipe.learning_rate > 1.0 or recipe.stale_leaves or recipe.step.curvature(recipe.loss) is not None
    long_steps = long_steps or isinstance(recipe.loss, Custom)  # whose curvature may be anything
    return long_steps and (recipe.stale_leaves or descent(recipe).kind != "sound")


@dataclass(slots=True)
class RiseCheck:
    """Comparison of the training loss before and after a fit; two passes over the rows."""

    mean_loss: Callable[[Array], float]  # of (k, n) scores
    before: float
    scores: Array | None = None

    def see(self, progress: Progress) -> None:
        self.scores = progress.scores

    def warn(self, recipe: Recipe) -> None:
        """Warn if the training loss ended above that of the scores that the fit began with."""
        after = self.before if self.scores is None else self.mean_loss(self.scores)
        if after - self.before <= ROUNDING * max(abs(self.before), abs(after)):
            return
        warnings.warn(
            f"learning_rate: the steps are too long: the training loss rose from {self.before:.6g} to {after:.6g} "
            f"with learning_rate={recipe.learning_rate:g} and {recipe.step!r}. Lower it, or use another step"
            f"{' or hessian of the loss' if isinstance(recipe.loss, Custom) else ''}.",
            OutsideTheoryWarning,
            stacklevel=2,
        )
