"""What is known about a recipe before it runs, and about a fit after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpuboost.errors import RecipeError
from gpuboost.recipe import Recipe
from gpuboost.steps import QuantileStep


@dataclass(frozen=True, slots=True)
class Verdict:
    """``sound``: a theorem applies. ``heuristic``: none does, but it works in practice. ``refused``: it cannot run."""

    kind: Literal["sound", "heuristic", "refused"]
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {' '.join(self.reasons)}"


@dataclass(frozen=True, slots=True)
class FitReport:
    """How a fit went."""

    device: str
    device_reason: str
    threads: int
    rows: int  # trained on; rows of weight 0 are not
    features: int
    rounds: int  # run, those after the best one included
    rounds_kept: int
    seconds: dict[str, float]  # "prepare": input to bins; "train": all rounds, evaluation included
    seed: int
    verdict: Verdict

    def __str__(self) -> str:
        times = ", ".join(f"{name} {value:.2f} s" for name, value in self.seconds.items())
        return (
            f"{self.rounds} rounds ({self.rounds_kept} kept) on {self.rows} rows x {self.features} features; "
            f"{self.device}, {self.threads} threads; {times}; {self.verdict}"
        )


def verdict(recipe: Recipe) -> Verdict:
    """Whether the training loss can never rise.

    A tree's exact leaf values on all rows are -G / (D + lambda) with D = c n, c the step's curvature. By the descent
    lemma the loss of a sigma-smooth loss falls by at least ``eps (1 - eps sigma / (2 c)) G^2 / (c n)`` in each leaf,
    whatever shape the tree has, so neither row nor feature sampling can make it rise while eps sigma <= 2 c. A leaf
    that is the exact minimiser of a convex loss, scaled by eps <= 1, cannot make it rise either.
    """
    loss, rate = recipe.loss, recipe.learning_rate
    curvature = recipe.step.curvature(loss)
    if loss.leaf_quantile is not None and loss.convex and rate <= 1.0 and isinstance(recipe.step, QuantileStep):
        return Verdict("sound", ("the training loss never rises: leaves are exact minimisers of a convex loss.",))
    if curvature is None and loss.smoothness is not None and loss.smoothness == loss.strong_convexity:
        curvature = loss.smoothness  # h is constant: Newton is the constant step
    if curvature is None:
        why = "Newton steps have no bound on the change of curvature along a step, so the training loss could rise."
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


def refused(error: RecipeError) -> Verdict:
    """The verdict of a recipe that could not be put together."""
    return Verdict("refused", (str(error),))
