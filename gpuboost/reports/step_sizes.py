"""Certificate of descent after a fit, from the sizes of the Newton steps that were taken.

Newton steps have no bound before a fit, as the curvature h changes along a step. Let M bound that change: the third
derivative is at most M h, with M = 1 for the logistic loss. Then l(F + x) <= l + g x + h (e^u - 1 - u) / M^2 with
u = M |x|. A leaf's step is x = -eps G / (H + lambda), so the sum over its rows falls if (e^u - 1 - u) / u^2 <= 1 / eps.

For several scores a row, u is M times the range of the row's steps, and the sum over outputs of h d^2, times a factor
``joint_curvature``, bounds the curvature along all of them.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gpuboost.elementary import exp
from gpuboost.langevin import Langevin
from gpuboost.losses.base import facts_of
from gpuboost.losses.protocol import LossTraits
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass, declared
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import NewtonStep
from gpuboost.types import Ensemble

LARGEST = 40.0  # scores, and so steps, beyond are of no use
PASSES = 60


@dataclass(frozen=True, slots=True)
class StepSizes:
    """Every round lowered the training loss: no step was as long as the longest that lowers it for sure."""

    largest: float  # in the round nearest to its limit: the step of a row's score; of several scores, their range
    safe: float  # the limit of that round: steps up to this one lower the loss
    change: float  # M

    def __str__(self) -> str:
        return (
            f"every round fell, by the size of its steps (nearest to its limit: {self.largest:.4g} of {self.safe:.4g})"
        )


def step_sizes(recipe: Recipe, ensemble: Ensemble, first: int) -> StepSizes | None:
    """The certificate of the rounds from number ``first`` on, counted from 0; None if there is none.

    ensemble: the model of the fit, its trees in the host's memory.
    """
    change = _change(recipe)
    if change is None or ensemble.n_rounds <= first or recipe.sequences > 1 or recipe.averages:
        return None
    k, joint = ensemble.n_outputs, facts_of(recipe.loss).joint_curvature
    trees, rates = ensemble.trees[first * k :], np.array(ensemble.factors[first * k :: k]) * ensemble.scale
    values = np.concatenate([tree.value for tree in trees])
    starts = np.cumsum([0] + [len(tree.value) for tree in trees[:-1]])
    ups, downs = (np.maximum.reduceat(sign * values, starts).clip(min=0.0) for sign in (1.0, -1.0))
    ups, downs = (sizes.reshape(-1, k).max(axis=1) for sizes in (ups, downs))
    steps = rates * (ups + downs if k > 1 else np.maximum(ups, downs))
    longest = {rate: longest_safe_step(rate * joint) / change for rate in set(rates.tolist())}
    safe = np.array([longest[rate] for rate in rates.tolist()])
    if not (steps <= safe).all():
        return None
    worst = int(np.argmax(np.divide(steps, safe, out=np.zeros(len(steps)), where=safe > 0.0)))
    return StepSizes(float(steps[worst]), float(safe[worst]), change)


@cache
def longest_safe_step(rate: float) -> float:
    """The largest u with (e^u - 1 - u) / u^2 <= 1 / rate; 0 if the rate is 2 or more, and at most 40."""
    low, high = 0.0, LARGEST
    if rate >= 2.0:
        return 0.0
    for _ in range(PASSES):
        u = 0.5 * (low + high)
        low, high = (u, high) if rate * _remainder(u) <= 1.0 else (low, u)
    return low


def _remainder(u: float) -> float:
    """(e^u - 1 - u) / u^2, by its series where the difference would cancel."""
    return 0.5 + u / 6.0 + u * u / 24.0 if u < 1e-3 else (exp(u) - 1.0 - u) / (u * u)


def _change(recipe: Recipe) -> float | None:
    """M, if leaf values are the exact Newton steps of all rows at the newest scores; otherwise None."""
    if not isinstance(recipe.step, NewtonStep) or recipe.base_learner is not None or recipe.stale_leaves:
        return None
    if recipe.growth.limits.bounded or isinstance(recipe.langevin, Langevin):
        return None
    if declared(SamplingTraits, recipe.sampling).variance_control != "leaf_refit":
        return None
    return declared(LossTraits, recipe.loss).curvature_change
