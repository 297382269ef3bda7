"""Requirements of interaction constraints on the other pieces of a recipe: trees whose splits are searched."""

from __future__ import annotations

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces


def findings(recipe: Pieces) -> tuple[Finding, ...]:
    """Findings; () if any columns may interact."""
    if recipe.growth.limits.interactions is None:
        return ()
    if recipe.base_learner is not None:
        why = "sets of columns are for the splits of trees, and base_learner is none. Use base_learner=None."
    elif recipe.langevin.random_from is not None:
        why = "shapes drawn at random (random_from) take any feature at every node. Use random_from=None."
    else:
        return ()
    return (Finding("refused", f"interaction_cst: {why}"),)
