"""Requirements of monotonic constraints on the other pieces of a recipe.

A tree is monotone if each leaf's value lies within the bounds that the splits above it set. So the recipe must grow
trees whose leaves have independent values and whose split search takes these bounds into account.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.langevin import Dynamics, Langevin
from gpuboost.losses.base import estimates_spread, of_output
from gpuboost.losses.protocol import Loss


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings; none if no feature is constrained."""
    if recipe.growth.limits.directions is not None:
        yield from _refused(recipe)
        yield from _held(recipe.langevin)


def _refused(recipe: Pieces) -> Iterator[Finding]:
    limits, loss = recipe.growth.limits, recipe.loss
    why = ""
    if recipe.base_learner is not None:
        why = "constraints are on the leaf values of trees, and base_learner is none. Use base_learner=None."
    elif of_output(loss, 0).n_outputs > 1:
        why = f"constraints are for one score a row, and loss {loss.name!r} has {loss.n_outputs}{_of_scores(loss)}"
    elif limits.symmetric:
        why = (
            "all nodes of a level of an oblivious tree share a split, and one whose values go against the order would "
            "forbid it to all. Use growth='depthwise' or 'leafwise'."
        )
    elif limits.signed:
        why = (
            "growth='sign_stump' takes one value with both signs, which no bounds are for. Use max_depth=1 with "
            "growth='depthwise'."
        )
    elif recipe.langevin.random_from is not None:
        why = "shapes drawn at random (random_from) do not look at the order of values. Use random_from=None."
    if why:
        yield Finding("refused", f"monotonic_cst: {why}")


def _of_scores(loss: Loss) -> str:
    """End of a sentence about the scores of the loss, with what to use instead."""
    if estimates_spread(loss):
        return ", of mean and spread. Use a loss of one score, such as 'squared_error' or 'quantile'."
    if loss.task == "multiclass":
        return ": what one class gains another loses. Use them for regression, ranking or two classes."
    return ". Use a loss of one score."


def _held(langevin: Dynamics) -> Iterator[Finding]:
    if isinstance(langevin, Langevin):
        yield Finding(
            "unproven",
            "monotonic_cst: leaf values are held to their order after the noise, so scores follow another law than "
            "that of Langevin boosting. Use monotonic_cst=None.",
        )
    else:
        why = "leaf values that are held to an order need not lower the training loss."
        yield Finding("heuristic", f"monotonic_cst: {why}")
