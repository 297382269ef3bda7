"""The strongest statement of ``gpuboost.theory`` whose assumptions a run met. It is made once, when a fit ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import frexp

from gpuboost.composition.learners import is_stump
from gpuboost.execution import is_sequential
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomGroup, RandomGroups, RandomLearners
from gpuboost.losses.protocol import LossTraits, is_list_loss
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass, declared
from gpuboost.reports.constants import of_rate
from gpuboost.reports.report import LAW, Verdict, constant_curvature, verdict
from gpuboost.reports.step_sizes import StepSizes
from gpuboost.sampling import EveryRow, UniformSampling
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import LineSearchStep, searches
from gpuboost.theory import Guarantee
from gpuboost.theory.guarantee import GuaranteeKind, TheoremConstant
from gpuboost.types import TrainingSet

THEOREMS = (AllLearners, RandomLearners, RandomGroup, RandomGroups)
"""Selection rules of the theorems: types 0 to 3."""

EXACT_WEIGHTS = 2.0**14
"""Ratio of two row weights up to which sums of integers hold both; see ``backends.numerics.fixed_point``."""

NOT_KNOWN = Guarantee("not known", "not known: the model file holds no guarantee.")


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts of a run that its guarantee depends on, and that its recipe does not have."""

    categorical: bool = False  # True: some column is categorical
    least_weight: float = 1.0  # of the training rows
    largest_weight: float = 1.0
    stops_early: bool = False
    foreign_start: int = 0  # rounds of a model continued as a Langevin chain that it is no part of
    steps: StepSizes | None = None  # certificate of the rounds that were run
    law: tuple[TheoremConstant, ...] = ()  # constants of the stationary law

    @classmethod
    def of(
        cls,
        data: TrainingSet,
        *,
        stops_early: bool = False,
        foreign_start: int = 0,
        law: tuple[TheoremConstant, ...] = (),
    ) -> RunFacts:
        """The facts that the training rows give, and others."""
        weight = data.multiplicity if data.weight is None else data.weight
        least, largest = (1.0, 1.0) if weight is None else (float(weight.min()), float(weight.max()))
        return cls(bool(data.cuts.is_categorical.any()), least, largest, stops_early, foreign_start, law=law)


def guarantee_of(recipe: Recipe, run: RunFacts) -> Guarantee:
    """Guarantee on the training loss, or on the distribution of a chain from which no round was picked by its score."""
    result = verdict(recipe, stops_early=run.stops_early, foreign_start=run.foreign_start)
    if isinstance(recipe.langevin, Langevin):
        if result.kind == "sound":
            return Guarantee("stationary law", LAW, constants=run.law)
        return Guarantee("none", "none: the law of this chain is not known.", missing=_reasons(recipe, result))
    step = _step(recipe, result)
    if step is None and run.steps is not None:
        return _certified(recipe, run.steps)
    if step is None:
        nothing = "none: no theorem says before the fit that the training loss falls."
        return Guarantee("none", nothing, missing=_reasons(recipe, result))
    missing = tuple(why for lacks, why in _needs(recipe, run) if lacks)
    return _descent(recipe, step, missing) if missing else _rate(recipe, step, run)


def _reasons(recipe: Recipe, result: Verdict) -> tuple[str, ...]:
    """The reasons of a verdict, in words that are the same for a run and for its replay."""
    return tuple(why.replace(repr(recipe.execution), "several workers") for why in result.reasons)


def _certified(recipe: Recipe, steps: StepSizes) -> Guarantee:
    """Descent by the sizes of the steps that were taken."""
    used = (
        f"the third derivative of {recipe.loss.name} is at most {steps.change:g} times the second",
        f"every step was short enough to lower the loss; nearest to its limit: {steps.largest:.4g} of {steps.safe:.4g}",
    )
    statement = "the training loss never rose: every round fell, by the size of its steps."
    return Guarantee("monotone descent", statement, used, ("no rate is known of Newton steps.",))


def _descent(recipe: Recipe, step: float, missing: tuple[str, ...]) -> Guarantee:
    loss, sigma = recipe.loss, recipe.loss.smoothness
    used = f"{loss.name} is convex" if sigma is None else f"{loss.name} is {sigma:g}-smooth"
    return Guarantee("monotone descent", "the training loss never rises.", (used,), missing, sigma, nu=step)


def _rate(recipe: Recipe, step: float, run: RunFacts) -> Guarantee:
    """Rate for stumps, if all other conditions of the theorems hold."""
    loss, sigma, mu = recipe.loss, recipe.loss.smoothness or 0.0, recipe.loss.strong_convexity
    share = 2.0 * step - step * step
    used: tuple[str, ...] = (
        f"{loss.name} is {sigma:g}-smooth",
        "the best stump of those drawn is found",
        "leaves are exact on all rows",
    )
    weighted = run.largest_weight > run.least_weight
    known = of_rate(loss, step, weighted=weighted)
    if weighted:
        used += ("L is the weighted loss, and Xi that of the weighted rows: sign_stumps(X, sample_weight=)",)
    if mu > 0.0 and share > 0.0:
        text = f"E(L - L*) shrinks by 1 - {share * mu / sigma:.4g} Xi a round (RGBM, theorem 4.1)."
        used += (f"{mu:g}-strongly convex",)
        return Guarantee("linear rate", text, used, (), sigma, mu, step, constants=known)
    if share > 0.0:
        text = f"E(L - L*) <= {2.0 * sigma / share:.4g} Dist^2 / rounds (RGBM, theorem 4.2)."
        used += ("convex, level sets bounded",)
        return Guarantee("sublinear rate", text, used, (), sigma, 0.0, step, constants=known)
    return _descent(recipe, step, (f"a step of {step:g} / sigma, twice the best one, need not lower the loss.",))


def _step(recipe: Recipe, result: Verdict) -> float | None:
    """nu, the step in units of 1 / sigma, if no round can raise the training loss; else None."""
    loss, rate = recipe.loss, recipe.learning_rate
    if result.kind not in ("sound", "heuristic") or is_list_loss(loss) or recipe.sequences > 1 or recipe.averages:
        return None
    if recipe.growth.limits.bounded:
        return None
    stale = recipe.stale_leaves and not (is_sequential(recipe.execution) and _uses_all_rows(recipe))
    if declared(SamplingTraits, recipe.sampling).variance_control != "leaf_refit" or stale:
        return None
    if searches(recipe.step) and loss.convex:
        return rate if rate <= 1.0 else None
    curvature = constant_curvature(recipe)
    if curvature is None or loss.smoothness is None or rate * loss.smoothness > 2.0 * curvature:
        return None
    return rate * loss.smoothness / curvature


def _uses_all_rows(recipe: Recipe) -> bool:
    sampling = recipe.sampling
    return isinstance(sampling, EveryRow) or (isinstance(sampling, UniformSampling) and sampling.rate == 1.0)


def _needs(recipe: Recipe, run: RunFacts) -> Iterator[tuple[bool, str]]:
    """The other conditions of a rate: (True if it is violated, reason) for each."""
    limits, step, loss, trees = recipe.growth.limits, recipe.step, recipe.loss, recipe.base_learner is None
    yield not trees, "how near a base learner comes to the gradient is known when it has been fitted, and not before."
    yield not isinstance(recipe.learners, THEOREMS), f"no rate is known of {recipe.learners!r}."
    several = trees and not is_stump(limits)
    yield several, "trees with several splits are grown greedily, and need not be the best of those drawn."
    yield not _uses_all_rows(recipe), "the best learner of a sample of rows need not be the best of all rows."
    yield (
        not is_sequential(recipe.execution),
        "the best learner for an old gradient need not be the best for the new one.",
    )
    if trees:
        yield from _of_search(recipe, run)
    partial = isinstance(step, LineSearchStep) and (step.per == "leaf" or recipe.learning_rate != 1.0)
    yield partial, "a line search has the rates of a full step per tree, with learning_rate=1."
    yield bool(recipe.rates), "the rates are for one learning_rate in all rounds."
    yield loss.n_outputs > 1, "the theorems are for one score a row."
    yield loss.smoothness is None, f"{loss.name} has no finite smoothness constant."
    strong = loss.strong_convexity > 0.0 or (loss.convex and declared(LossTraits, loss).bounded_level_sets)
    unbounded = f"{loss.name} is neither strongly convex nor of bounded level sets, so neither theorem applies."
    yield loss.smoothness is not None and not strong, unbounded


def _of_search(recipe: Recipe, run: RunFacts) -> Iterator[tuple[bool, str]]:
    """Conditions under which the split search is the argmax over the drawn stumps (RGBM, algorithm 3)."""
    limits = recipe.growth.limits
    bent = limits.reg_lambda > 0.0 or limits.min_split_gain > 0.0 or limits.min_samples_leaf > 1
    yield bent, "reg_lambda, min_split_gain or min_samples_leaf keep the best learner from being taken."
    lightest = _lightest_leaf(recipe, run)
    why = f"min_child_weight={limits.min_child_weight:g} is above the curvature of a row, at least {lightest:.4g}, so "
    yield limits.min_child_weight > lightest, f"{why}leaves of few rows are left out. Use min_child_weight=0."
    noisy = limits.random_strength > 0.0
    yield noisy, "random_strength puts noise on the gains, so the best learner need not be the one that is taken."
    yield limits.extra_trees, "extra_trees draws the cuts, and no rate is known of such a draw of learners."
    yield limits.forced is not None, "forced_splits choose the first splits, whatever they gain."
    yield (
        limits.costs is not None,
        "feature_costs let splits pay for themselves, so the best learner need not be taken.",
    )
    yield run.categorical, "categorical splits are held back: not every set of categories competes, nor by its gain."
    spread = run.largest_weight > EXACT_WEIGHTS * run.least_weight
    yield spread, f"row weights that differ by a factor above {EXACT_WEIGHTS:g} are rounded in the search."


def _lightest_leaf(recipe: Recipe, run: RunFacts) -> float:
    """Least curvature of a leaf of one row, in the integers of the search."""
    curvature = recipe.step.curvature(recipe.loss) or recipe.loss.smoothness or 0.0
    least, largest = curvature * run.least_weight, curvature * run.largest_weight
    unit = 2.0 ** (frexp(largest)[1] - 15)  # integers have 15 bits or more
    return least if (least / unit).is_integer() else max(0.0, least - unit)


RATES = "linear rate", "sublinear rate"
DESCENT = (*RATES, "monotone descent")
"""Kinds of statements on the training loss, the strongest first."""


def of_whole_run(before: Guarantee, now: Guarantee) -> Guarantee:
    """Guarantee of a resumed fit: ``now``, made for all of its rounds, or a weaker one made at the checkpoint.

    They differ if the workers do, which a fit may change when it is resumed.
    """
    strength = {kind: -i for i, kind in enumerate((*DESCENT, "stationary law", "none", "not known"))}
    if strength[before.kind] >= strength[now.kind]:
        return now
    return replace(before, rounds=now.rounds, parts=())


def joined(earlier: tuple[Guarantee, ...], last: Guarantee) -> Guarantee:
    """Guarantee of a model from those of its fits: what holds for all rounds, and the text of each."""
    parts = (*earlier, last)
    if len(parts) == 1:
        return last
    kinds = {part.kind for part in parts}
    rounds = (parts[0].rounds[0], last.rounds[1]) if parts[0].rounds and last.rounds else None
    text = " ".join(_of_rounds(parts))
    if kinds == {"stationary law"}:
        return replace(last, rounds=rounds, parts=parts)
    if kinds <= set(DESCENT):
        used = "each fit is judged on its own training rows"
        lost = ("a rate counts from the first round of its own fit; see parts.",) if kinds & set(RATES) else ()
        return Guarantee("monotone descent", text, (used,), lost, rounds=rounds, parts=parts)
    missing = dict.fromkeys(why for part in parts for why in part.missing[:1] if part.kind not in DESCENT)
    kind: GuaranteeKind = "not known" if "not known" in kinds and kinds <= {"not known", *DESCENT} else "none"
    why = "not known of all rounds" if kind == "not known" else "none for all rounds together"
    return Guarantee(kind, f"{why}. {text}", (), tuple(missing), rounds=rounds, parts=parts)


def _of_rounds(parts: tuple[Guarantee, ...]) -> Iterator[str]:
    """The statement of each stretch of fits that are alike, and its rounds."""
    starts = [i for i, part in enumerate(parts) if i == 0 or part.statement != parts[i - 1].statement]
    for start, stop in zip(starts, [*starts[1:], len(parts)], strict=True):
        first, last = parts[start].rounds, parts[stop - 1].rounds
        where = f"rounds {first[0]} to {last[1]}" if first and last else "earlier rounds"
        fits = f" ({stop - start} fits)" if stop - start > 1 else ""
        yield f"{where[0].upper()}{where[1:]}{fits}: {parts[start].statement}"
