"""Findings of theory about Langevin boosting combined with the other pieces of a recipe.

Its theorem (SGLB, section 4) requires unbiased gradients whose error is bounded, leaves that average over all of their
rows, a split criterion that does not depend on the size of the gradients, a Lipschitz and smooth loss, and its own
order of steps. A recipe that lacks one of them is refused if its stationary distribution would differ; otherwise it
must be requested with ``allow_unproven``.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.execution import Execution, is_sequential
from gpuboost.langevin import Langevin, TemperatureSchedule
from gpuboost.losses.protocol import Loss, LossTraits, has_fixed_objective, is_smoothed
from gpuboost.records import declared
from gpuboost.sampling import Sampling
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import ConstantStep, GradientStep, NewtonStep, Step, searches
from gpuboost.types import Limits


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings for all parts of the recipe that the theorem does not cover; none if it covers all."""
    langevin, loss, step = recipe.langevin, recipe.loss, recipe.step
    if not isinstance(langevin, Langevin):
        return
    limits, rounds = recipe.growth.limits, recipe.rounds
    yield from _of_step(step, loss)
    yield from _of_sampling(recipe.sampling, langevin, rounds)
    yield from _of_the_rest(limits, recipe.execution)
    yield from _of_policy(langevin, loss)
    yield from _of_stability(loss, step, recipe.learning_rate)
    yield from _of_schedule(langevin.schedule, rounds)
    yield from _of_noise_scale(langevin)
    yield from _of_random_shapes(langevin, limits, trees=recipe.base_learner is None)


def _of_step(step: Step, loss: Loss) -> Iterator[Finding]:
    if isinstance(step, (GradientStep, ConstantStep)):
        return
    if searches(step):
        yield Finding(
            "refused",
            f"step: Langevin boosting needs leaves whose noise does not choose their length; {step!r} searches the "
            "best value of each leaf. Use step='gradient'.",
        )
    elif not (isinstance(step, NewtonStep) and loss.smoothness == loss.strong_convexity):
        yield Finding(
            "unproven",
            "step: the theorem of Langevin boosting is for leaves that average the gradient; a step that divides by "
            f"the loss's own curvature, as {step!r} does, moves by another diffusion. Use step='gradient'.",
        )


def _of_sampling(sampling: Sampling, langevin: Langevin, rounds: int) -> Iterator[Finding]:
    traits = declared(SamplingTraits, sampling)
    unbiased, bounded = traits.unbiased, traits.bounded
    if bounded is False:
        yield Finding(
            "refused",
            f"sampling: Langevin boosting needs gradient noise bounded with probability one; {sampling!r} gives "
            "unbounded weights. Set its floor above 0.",
        )
    elif unbiased is False:
        yield Finding(
            "refused",
            f"sampling: Langevin boosting requires unbiased gradients; what {sampling!r} leaves out is not made up "
            "for. Use uniform sampling, or importance sampling with variance_control='leaf_refit'.",
        )
    elif unbiased is None or bounded is None:
        yield Finding(
            "unproven",
            f"sampling: it is not known of {sampling!r} that its sums are unbiased and its weights bounded; a policy "
            "says so by attributes `unbiased` and `bounded`.",
        )
    elif traits.follows_gradients:
        yield Finding(
            "heuristic",
            f"sampling: the noise that {sampling!r} adds depends on the scores, through the probabilities of the rows, "
            "and the stationary law is then another one. Use uniform sampling for draws from the posterior.",
        )
    elif traits.frozen_from is not None:
        yield _of_frozen(traits.frozen_from, langevin, rounds)


def _of_frozen(start: int, langevin: Langevin, rounds: int) -> Finding:
    if start >= rounds > 0:
        why = f"frozen_from={start} is no round of the {rounds}, so probabilities follow the scores to the end, and"
        return Finding("heuristic", f"sampling: {why} the stationary law is another one.")
    why = f"from round {start} on the probabilities of the rows are fixed, as SGLB (section 6.2) asks for"
    if langevin.noise_scale == "weight":
        return Finding("sound", f"sampling: {why}; burn-in begins there.")
    why += ", but noise of scale 1 / sqrt(p) does not hide gradients of size 1 / p: variances were measured below the"
    return Finding("heuristic", f"sampling: {why} law. Use gb.Langevin(noise_scale='weight').")


def _of_the_rest(limits: Limits, execution: Execution) -> Iterator[Finding]:
    if limits.min_split_gain > 0.0:
        yield Finding(
            "unproven",
            "min_split_gain: the choice of a tree's shape must not depend on the size of the gradients, as a least "
            f"gain of {limits.min_split_gain:g} makes it. Use min_split_gain=0.",
        )
    if not is_sequential(execution):
        yield Finding(
            "unproven",
            f"execution: noise and shrinkage assume the chain's own order; of stale gradients, as of {execution!r}, "
            "no theorem is known. Use execution=None.",
        )


def _of_policy(langevin: Langevin, loss: Loss) -> Iterator[Finding]:
    for enabled, name in ((langevin.structure_noise, "structure_noise"), (langevin.leaf_noise, "leaf_noise")):
        if not enabled:
            yield Finding("heuristic", f"{name} is off, and the law needs it.")
    if langevin.shrinkage == 0.0:
        yield Finding("heuristic", "without shrinkage there may be no stationary law to come to.")
    if is_smoothed(loss) and loss.scale_free:
        why = "scale_free takes a part of each list's gradient away, and what is left is the gradient of no fixed "
        yield Finding("heuristic", f"{why}objective; so the stationary law is not known. Use scale_free=False.")
    elif not has_fixed_objective(loss):
        why = f"{loss.name} has no fixed objective, as a pair's weight depends on where its documents stand; so there"
        yield Finding("heuristic", f"{why} is no stationary law.")
        return
    if declared(LossTraits, loss).lipschitz is None:
        known = "known to be " if loss.task == "any" else ""  # a custom loss does not say
        why = f"the gradient of {loss.name} is not {known}bounded, so the law rests on its growth at infinity"
        yield Finding("heuristic", f"{why} (dissipativity).")
    if loss.smoothness is None:
        yield Finding("heuristic", f"{loss.name} has no finite smoothness constant, which the theorem assumes.")


def _of_stability(loss: Loss, step: Step, rate: float) -> Iterator[Finding]:
    """Steps of a leaf are rate / c times the mean gradient: stable while rate / c times sup l'' is below 2."""
    if loss.smoothness is None or searches(step):
        return
    curvature = step.curvature(loss)
    if curvature is None:  # Newton steps; of a constant h these are constant steps
        curvature = loss.smoothness
    length = rate * loss.smoothness / curvature
    limit = 2.0 * curvature / loss.smoothness
    seen = f"learning_rate: at {rate:g} a step times the largest second derivative of {loss.name} is {length:.4g}"
    if length >= 2.0:
        why = f"{seen}; from 2 on steps are not stable, and the chain has another law, or none. "
        yield Finding(
            "unproven", f"{why}Use a learning_rate below {limit:.4g}, better below {limit / 2:.4g}.", warns=True
        )
    elif length >= 1.0:
        why = f"{seen}, so the variance of draws is too large, by a factor of about {1.0 / (1.0 - 0.5 * length):.3g}. "
        yield Finding("heuristic", f"{why}Use a learning_rate below {limit / 2:.4g}.")


def _of_schedule(schedule: object, rounds: int) -> Iterator[Finding]:
    if schedule is None:
        return
    if not isinstance(schedule, TemperatureSchedule):
        why = "the temperature is a user's function of the round; a law is known for a constant one only."
        yield Finding("heuristic", f"schedule: {why}")
        return
    constant = schedule.constant_from
    if constant is None or constant >= rounds:
        yield Finding("heuristic", f"schedule: {schedule.theory}, so no law of the last round is known.")
    elif constant > 0:
        why = f"the law is that of the constant temperature from round {constant} on, where burn-in begins"
        yield Finding("sound", f"schedule: {why}; {schedule.theory}.")


def _of_noise_scale(langevin: Langevin) -> Iterator[Finding]:
    if callable(langevin.noise_scale):
        why = "the theorem is for noise of standard deviation sqrt(h); the split search has a user's function."
        yield Finding("heuristic", f"noise_scale: {why}")


def _of_random_shapes(langevin: Langevin, limits: Limits, *, trees: bool) -> Iterator[Finding]:
    if langevin.random_from is None:
        return
    if not trees:
        yield Finding("refused", "random_from: shapes are those of trees; leave it out, or leave base_learner out.")
    if limits.min_samples_leaf > 1:
        yield Finding(
            "heuristic",
            f"min_samples_leaf={limits.min_samples_leaf} does not hold for trees whose shape is drawn at random.",
            warns=True,
        )
