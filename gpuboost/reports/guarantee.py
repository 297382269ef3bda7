"""The strongest statement of ``gpuboost.theory`` whose assumptions a recipe meets."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboost.composition.learners import is_stump
from gpuboost.execution import is_sequential
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomGroup, RandomGroups, RandomLearners
from gpuboost.losses.protocol import is_list_loss
from gpuboost.recipe import Recipe
from gpuboost.records import declared
from gpuboost.reports.report import LAW, verdict
from gpuboost.sampling import EveryRow
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import LineSearchStep, searches
from gpuboost.theory import Guarantee

THEOREMS = (AllLearners, RandomLearners, RandomGroup, RandomGroups)
"""Selection rules of the theorems: types 0 to 3."""


def guarantee_of(recipe: Recipe, *, stops_early: bool = False) -> Guarantee:
    """Guarantee on the training loss, or on the distribution of a chain from which no round was picked by its score."""
    if isinstance(recipe.langevin, Langevin):
        result = verdict(recipe, stops_early=stops_early)
        if result.kind == "sound":
            return Guarantee("stationary law", LAW)
        return Guarantee("none", "none: the law of this chain is not known.", missing=result.reasons)
    step = _step(recipe)
    if step is None:
        return Guarantee(
            "none",
            "none: no theorem says before the fit that the training loss falls.",
            missing=verdict(recipe).reasons,
        )
    missing = tuple(why for lacks, why in _needs(recipe) if lacks)
    return _descent(recipe, step, missing) if missing else _rate(recipe, step)


def _descent(recipe: Recipe, step: float, missing: tuple[str, ...]) -> Guarantee:
    loss, sigma = recipe.loss, recipe.loss.smoothness
    used = f"{loss.name} is convex" if sigma is None else f"{loss.name} is {sigma:g}-smooth"
    return Guarantee("monotone descent", "the training loss never rises.", (used,), missing, sigma, nu=step)


def _rate(recipe: Recipe, step: float) -> Guarantee:
    """Rate for stumps, if all other conditions of the theorems hold."""
    loss, sigma, mu = recipe.loss, recipe.loss.smoothness or 0.0, recipe.loss.strong_convexity
    share = 2.0 * step - step * step
    used = f"{loss.name} is {sigma:g}-smooth", "the best stump of those drawn is found", "leaves are exact on all rows"
    if mu > 0.0:
        text = f"E(L - L*) shrinks by 1 - {share * mu / sigma:.4g} Xi a round (RGBM, theorem 4.1)."
        return Guarantee("linear rate", text, (*used, f"{mu:g}-strongly convex"), (), sigma, mu, step)
    if loss.convex and getattr(loss, "bounded_level_sets", False) and share > 0.0:
        text = f"E(L - L*) <= {2.0 * sigma / share:.4g} Dist^2 / rounds (RGBM, theorem 4.2)."
        return Guarantee("sublinear rate", text, (*used, "convex, level sets bounded"), (), sigma, 0.0, step)
    why = f"{loss.name} is neither strongly convex nor of bounded level sets, so neither theorem applies."
    return _descent(recipe, step, (why,))


def _step(recipe: Recipe) -> float | None:
    """nu, the step in units of 1 / sigma, if no round can raise the training loss; else None."""
    loss, rate = recipe.loss, recipe.learning_rate
    if verdict(recipe).kind not in ("sound", "heuristic") or is_list_loss(loss):
        return None
    if recipe.growth.limits.directions is not None:
        return None
    if declared(SamplingTraits, recipe.sampling).variance_control != "leaf_refit" or recipe.stale_leaves:
        return None
    if searches(recipe.step) and loss.convex:
        return rate if rate <= 1.0 else None
    curvature = recipe.step.curvature(loss)
    if curvature is None and loss.smoothness is not None and loss.smoothness == loss.strong_convexity:
        curvature = loss.smoothness
    if curvature is None or loss.smoothness is None or rate * loss.smoothness > 2.0 * curvature:
        return None
    return rate * loss.smoothness / curvature


def _needs(recipe: Recipe) -> Iterator[tuple[bool, str]]:
    """The other conditions of a rate: (True if it is violated, reason) for each."""
    limits, step, loss, trees = recipe.growth.limits, recipe.step, recipe.loss, recipe.base_learner is None
    yield not trees, "how near a base learner comes to the gradient is known when it has been fitted, and not before."
    yield not isinstance(recipe.learners, THEOREMS), f"no rate is known of {recipe.learners!r}."
    several = trees and not is_stump(limits)
    yield several, "trees with several splits are grown greedily, and need not be the best of those drawn."
    every_row = isinstance(recipe.sampling, EveryRow)
    yield not every_row, "the best learner of a sample of rows need not be the best of all rows."
    serial = is_sequential(recipe.execution)
    yield not serial, "the best learner for an old gradient need not be the best for the new one."
    bent = limits.reg_lambda > 0.0 or limits.min_split_gain > 0.0 or limits.min_samples_leaf > 1
    yield trees and bent, "reg_lambda, min_split_gain or min_samples_leaf keep the best learner from being taken."
    partial = isinstance(step, LineSearchStep) and (step.per == "leaf" or recipe.learning_rate != 1.0)
    yield partial, "a line search has the rates of a full step per tree, with learning_rate=1."
    yield loss.n_outputs > 1, "the theorems are for one score a row."
    yield loss.smoothness is None, f"{loss.name} has no finite smoothness constant."
