"""Requirements of feature costs on the other pieces of a recipe: trees whose splits are searched, in one order."""

from __future__ import annotations

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.execution import DataParallel, Serial
from gpuboost.langevin import Langevin


def findings(recipe: Pieces) -> tuple[Finding, ...]:
    """Findings; () without costs."""
    langevin, execution = recipe.langevin, recipe.execution
    if recipe.growth.limits.costs is None:
        return ()
    if recipe.base_learner is not None:
        why = "costs are of the splits of trees, and base_learner is none. Use base_learner=None."
    elif langevin.random_from is not None:
        why = "shapes drawn at random (random_from) search no split. Use random_from=None."
    elif not isinstance(execution, (Serial, DataParallel)):
        why = (
            f"{execution!r} builds trees before those of earlier rounds are known, and these decide which features are "
            "paid for. Use execution=None."
        )
    elif isinstance(langevin, Langevin):
        why = (
            "the theorem of Langevin boosting is for shapes drawn by the gradient, and costs depend on earlier rounds. "
            "Use feature_costs=None."
        )
        return (Finding("unproven", f"feature_costs: {why}"),)
    else:
        return (Finding("heuristic", "feature_costs: no rate is known of trees whose splits must pay for themselves."),)
    return (Finding("refused", f"feature_costs: {why}"),)
