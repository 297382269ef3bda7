"""The rules of composition: each says what some pieces of a recipe require of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuboost.composition import (
    array_loss,
    averaging,
    base_learner,
    encoding,
    execution,
    feature_costs,
    forced_splits,
    interactions,
    langevin,
    learners,
    learning_rate,
    monotone,
    multi_output,
    regularisation,
    sampling,
)
from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.errors import RecipeError, UnprovenError
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.records import dataclass, declared


@dataclass(frozen=True, slots=True)
class Permission:
    """Permission of the user to run a composition that no theorem covers."""

    is_given: Callable[[Pieces], bool]
    how: str  # the argument that gives it


BY_LANGEVIN = Permission(lambda recipe: recipe.langevin.allow_unproven, "gb.Langevin(allow_unproven=True)")
BY_EXECUTION = Permission(
    lambda recipe: declared(ExecutionTraits, recipe.execution).allow_unproven,
    "gb.Asynchronous(..., allow_unproven=True)",
)


@dataclass(frozen=True, slots=True)
class CompositionRule:
    """A rule of composition."""

    findings: Callable[[Pieces], Iterable[Finding]]
    permission: Permission | None = None  # for what is unproven; None: the piece is requested by its name


RULES = (
    CompositionRule(sampling.findings),
    CompositionRule(langevin.findings, BY_LANGEVIN),
    CompositionRule(base_learner.findings),
    CompositionRule(execution.findings, BY_EXECUTION),
    CompositionRule(learners.findings),
    CompositionRule(monotone.findings, BY_LANGEVIN),
    CompositionRule(interactions.findings),
    CompositionRule(regularisation.findings, BY_LANGEVIN),
    CompositionRule(encoding.findings),
    CompositionRule(forced_splits.findings),
    CompositionRule(feature_costs.findings, BY_LANGEVIN),
    CompositionRule(learning_rate.findings),
    CompositionRule(multi_output.findings),
    CompositionRule(averaging.findings),
    CompositionRule(array_loss.findings),
    CompositionRule(lambda recipe: recipe.inert),
)
"""The rules, in the order of their findings: the first that refuses a recipe is the one whose reason is told."""


def findings(recipe: Pieces) -> tuple[Finding, ...]:
    """Requirements of the pieces that other pieces do not meet."""
    return tuple(finding for rule in RULES for finding in rule.findings(recipe))


def check(recipe: Pieces) -> None:
    """Check that the pieces go together, and that permission is given for what is unproven.

    Raises:
        RecipeError: if a rule refuses the recipe.
        UnprovenError: if no theorem covers it, and permission for it is not given.
    """
    found = [(finding, rule.permission) for rule in RULES for finding in rule.findings(recipe)]
    for finding, _ in found:
        if finding.kind == "refused":
            raise RecipeError(finding.why)
    for finding, permission in found:
        if finding.kind == "unproven" and permission is not None and not permission.is_given(recipe):
            raise UnprovenError(f"{finding.why} To run it nevertheless: {permission.how}.")
