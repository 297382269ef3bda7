"""Verdict on a recipe before it runs, and report of a fit after it."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from gpuboost.composition.averaging import NO_DESCENT
from gpuboost.composition.findings import Kind, worst
from gpuboost.errors import InputError, RecipeError, UnprovenError
from gpuboost.execution import SEQUENTIAL, Log
from gpuboost.growth import SignStump
from gpuboost.langevin import Langevin, NoNoise
from gpuboost.learners import AllLearners
from gpuboost.losses.base import of_output
from gpuboost.losses.protocol import Loss, has_fixed_objective, is_drawn
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass, restored
from gpuboost.reports.edge import EdgeReport
from gpuboost.reports.sampling import SamplingReport
from gpuboost.reports.step_sizes import StepSizes
from gpuboost.sampling import EveryRow, UniformSampling
from gpuboost.steps import LineSearchStep, NewtonStep, QuantileStep, automatic
from gpuboost.theory import Guarantee


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on a composition.

    ``sound``: a theorem applies. ``heuristic``: none does, but it works in practice. ``unproven``: none does, and it
    must be requested. ``refused``: it cannot run.

    ``alternative``, of ``check()``: the parameters that make the composition sound, none of which can be left out, for
    ``set_params``. {} if it is sound; None if none were found, and of a fit.
    """

    kind: Kind
    reasons: tuple[str, ...]
    alternative: dict[str, Any] | None = field(default=None, compare=False)

    __setstate__ = restored

    def __str__(self) -> str:
        return f"{self.kind}: {' '.join(self.reasons)}"


@dataclass(frozen=True, slots=True)
class FitReport:
    """Facts of a finished fit."""

    device: str
    device_reason: str
    threads: int
    rows: int  # of the training data, without rows of weight 0
    features: int
    rounds: int  # run, those after the best one included
    rounds_kept: int
    seconds: dict[str, float]  # "prepare": input to bins; "train": all rounds, evaluation included
    seed: int
    verdict: Verdict
    sampling: SamplingReport | None = None  # None if every tree saw every row
    edges: EdgeReport | None = None  # None if the descent lemma does not apply, or gradients were on a device
    log: Log | None = None  # the worker of each tree, and the version of its gradients
    steps: StepSizes | None = None  # certificate that every round lowered the training loss, by the size of its steps
    guarantee: Guarantee | None = None  # of the kept rounds; ``guarantee_`` of the estimator
    rounds_before: int = 0  # of the model that ``init_model`` continued; ``rounds_kept`` counts them too
    rounds_without_split: int = 0  # of ``rounds``: every tree is a single leaf, or no base learner lowered the loss
    shows_verdict: bool = True  # False if no piece of theory was asked for; the text then leaves the verdict out

    __setstate__ = restored

    def __str__(self) -> str:
        earlier = f" after {self.rounds_before} earlier ones" if self.rounds_before else ""
        empty = f"; {self.rounds_without_split} found no split" if self.rounds_without_split else ""
        times = ", ".join(f"{name} {value:.2f} s" for name, value in self.seconds.items())
        parts = [
            f"{self.rounds} rounds{earlier} ({self.rounds_kept} kept{empty}) on {self.rows} rows x "
            f"{self.features} features; {self.device}, {self.threads} threads; {times}"
        ]
        parts += [str(part) for part in (self.sampling, self.edges, self.steps) if part is not None]
        parts += [str(self.log)] if self.log is not None and self.log.workers > 1 else []
        parts += [str(self.verdict)] if self.shows_verdict else []
        return "; ".join(parts)


LAW = (
    "as learning_rate goes to 0, scores follow a Langevin diffusion; after a while they are draws from "
    "exp(-beta (mean loss + gamma / 2 |P^-1/2 F|^2)) (SGLB, theorem 1)."
)


NO_OBJECTIVE = "a pair's weight depends on where its documents stand, so there is no fixed objective that could fall."
ESTIMATED = "gradients are random estimates, so a round may raise the training loss; small steps lower its mean."


def verdict(recipe: Recipe, *, stops_early: bool = False, foreign_start: int = 0) -> Verdict:
    """Verdict on a recipe: on the stationary law if it has Langevin noise, else on the descent of the training loss.

    foreign_start: rounds of a continued model that is no chain of this recipe and these data; 0 if there is none.
    """
    if not isinstance(recipe.langevin, Langevin):
        return _sampled(recipe, _of_rounds(recipe))
    findings = recipe.findings
    reasons = tuple(finding.why for finding in findings)
    kind = worst(findings)
    if stops_early:
        reasons += ("early stopping picks the best iterate, which is not a draw from the stationary law.",)
        kind = "heuristic" if kind == "sound" else kind
    if foreign_start:
        reasons += (
            f"init_model: its {foreign_start} rounds are no chain of this recipe and these data, so this chain begins "
            "with the next one, and draws are taken from there on.",
        )
        kind = "heuristic" if kind == "sound" else kind
    return Verdict(kind, reasons or (LAW,))


def asks_for_theory(recipe: Recipe) -> bool:
    """False for what every library of boosted trees does: all features, rows drawn evenly or not, usual steps."""
    usual = (
        isinstance(recipe.langevin, NoNoise),
        isinstance(recipe.sampling, (EveryRow, UniformSampling)),
        isinstance(recipe.learners, AllLearners),
        isinstance(recipe.step, NewtonStep) or recipe.step == automatic(recipe.loss),
        isinstance(recipe.execution, SEQUENTIAL),
        recipe.base_learner is None,
        not isinstance(recipe.growth, SignStump),
    )
    return not all(usual)


def _sampled(recipe: Recipe, of_all_rows: Verdict) -> Verdict:
    """The verdict with row or feature sampling, or stale gradients: no descent guarantee without exact leaves."""
    findings = tuple(finding for finding in recipe.findings if finding.of_training)
    if not findings:
        return of_all_rows
    kind, reasons = worst(findings), tuple(finding.why for finding in findings)
    if kind == "sound":
        return Verdict(of_all_rows.kind, (*of_all_rows.reasons, *reasons))
    return Verdict(kind, reasons + (of_all_rows.reasons if of_all_rows.kind != "sound" else ()))


def _exact_step(recipe: Recipe) -> str:
    """The minimum that the step rule finds exactly, as text; empty if none."""
    quantile = of_output(recipe.loss, 0).leaf_quantile
    if quantile is not None and recipe.loss.convex and isinstance(recipe.step, QuantileStep):
        trees = recipe.base_learner is None
        return "leaves are exact minimisers" if trees else "a line search on all rows finds the least"
    if isinstance(recipe.step, LineSearchStep):
        return "a line search on all rows finds the least"
    return ""


def _of_sequences(recipe: Recipe) -> Verdict:
    """Verdict on the mean of several sequences of trees."""
    why = f"the model is the mean of {recipe.sequences} sequences of trees; each lowers a training loss of its own."
    return Verdict("heuristic", (why,))


def _of_rounds(recipe: Recipe) -> Verdict:
    """Verdict on the training loss after each round of trees."""
    if recipe.averages:
        return Verdict("heuristic", (NO_DESCENT,))
    return descent(recipe) if recipe.sequences == 1 else _of_sequences(recipe)


def constant_curvature(recipe: Recipe) -> float | None:
    """c of the step, the curvature of a row that leaf values are divided by; None if it changes from row to row.

    If h is the same for all rows, a Newton step is one of constant curvature.
    """
    loss, curvature = recipe.loss, recipe.step.curvature(recipe.loss)
    if curvature is None and loss.smoothness == loss.strong_convexity:
        return loss.smoothness
    return curvature


def descent(recipe: Recipe) -> Verdict:
    """Verdict on the descent of the training loss.

    A tree's exact leaf values on all rows are -G / (D + lambda) with D = c n, c the step's curvature. By the descent
    lemma the sum of a sigma-smooth loss falls by at least ``eps (1 - eps sigma / (2 c)) G^2 / (c n)`` in each leaf,
    whatever shape the tree has, so neither row nor feature sampling can make it rise while eps sigma <= 2 c. A leaf
    that is the exact minimiser of a convex loss, scaled by eps <= 1, cannot make it rise either.
    """
    loss, rate = recipe.loss, recipe.learning_rate
    exact = _exact_step(recipe)
    if exact:
        return _of_exact_step(loss, rate, exact)
    curvature = constant_curvature(recipe)
    if is_drawn(loss) or not has_fixed_objective(loss):
        return Verdict("heuristic", (ESTIMATED if is_drawn(loss) else NO_OBJECTIVE,))
    if curvature is None:
        why = "no theorem says before the fit that Newton steps lower the training loss: curvature may change."
        return Verdict("heuristic", (why,))
    if loss.smoothness is None:
        return Verdict(
            "heuristic", (f"{loss.name} has no finite smoothness constant, so the training loss could rise.",)
        )
    if rate * loss.smoothness > 2.0 * curvature:
        bound = 2.0 * curvature / loss.smoothness
        why = f"learning_rate {rate:g} is above {bound:g}, from where on the training loss could rise."
        return Verdict("heuristic", (why,))
    return Verdict(
        "sound", (f"the training loss never rises: {loss.name} is {loss.smoothness:g}-smooth (descent lemma).",)
    )


def _of_exact_step(loss: Loss, rate: float, exact: str) -> Verdict:
    """Verdict on steps of ``rate`` times the exact step; up to twice the exact step lowers a quadratic loss."""
    if rate <= 1.0:
        return Verdict("sound", (f"the training loss never rises: {exact} of a convex loss.",))
    if loss.smoothness is not None and loss.smoothness == loss.strong_convexity and rate <= 2.0:
        why = f"the training loss never rises: {exact} of a quadratic loss, and learning_rate {rate:g} is at most 2."
        return Verdict("sound", (why,))
    why = f"learning_rate {rate:g} goes beyond the minimum along a tree, so the training loss could rise."
    return Verdict("heuristic", (why,))


def refused(error: InputError | RecipeError) -> Verdict:
    """Verdict on a recipe that raised ``error``."""
    return Verdict("unproven" if isinstance(error, UnprovenError) else "refused", (str(error),))
