"""Requirements of ``reg_alpha``, ``max_delta_step`` and ``path_smooth`` on the other pieces of a recipe."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.langevin import Dynamics, Langevin
from gpuboost.steps import Step, searches
from gpuboost.types import Limits


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings; none without the three."""
    limits = recipe.growth.limits
    if limits.regularised and recipe.base_learner is None:
        yield from _refused(limits, recipe.step)
        yield from _of_langevin(limits, recipe.langevin)


def _refused(limits: Limits, step: Step) -> Iterator[Finding]:
    name = _name(limits)
    if limits.signed:
        why = "growth='sign_stump' takes one value with both signs. Use max_depth=1 with growth='depthwise'."
        yield Finding("refused", f"{name}: {why}")
    elif searches(step):
        why = f"{step!r} looks for the length of a step, whatever it is held to. Use step='newton' or 'gradient'."
        yield Finding("refused", f"{name}: {why}")


def _of_langevin(limits: Limits, langevin: Dynamics) -> Iterator[Finding]:
    if isinstance(langevin, Langevin):
        near = "to the leaves beside them" if _name(limits) == "path_smooth" else "to 0"
        why = f"the theorem of Langevin boosting is for leaves that average the gradient, and these are nearer {near}. "
        yield Finding("unproven", f"{_name(limits)}: {why}Use reg_alpha=0, max_delta_step=0 and path_smooth=0.")


def _name(limits: Limits) -> str:
    penalties = {"reg_alpha": limits.reg_alpha, "max_delta_step": limits.max_delta_step}
    return next((name for name, value in penalties.items() if value > 0.0), "path_smooth")
