"""Requirements of interaction constraints on the other pieces of a recipe: trees whose splits are searched."""

from __future__ import annotations

from gpuboost.composition.findings import Finding
from gpuboost.langevin import Dynamics
from gpuboost.types import Limits


def interaction_findings(limits: Limits, langevin: Dynamics, *, trees: bool) -> tuple[Finding, ...]:
    """Findings; () if any columns may interact. trees: True if the base learner is trees."""
    if limits.interactions is None:
        return ()
    if not trees:
        why = "sets of columns are for the splits of trees, and base_learner is none. Use base_learner=None."
    elif langevin.random_from is not None:
        why = "shapes drawn at random (random_from) take any feature at every node. Use random_from=None."
    else:
        return ()
    return (Finding("refused", f"interaction_cst: {why}"),)
