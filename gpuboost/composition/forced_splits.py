"""Requirements of forced splits on the other pieces of a recipe: trees that search every column in each node."""

from __future__ import annotations

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.learners import AllLearners


def findings(recipe: Pieces) -> tuple[Finding, ...]:
    """Findings; () without forced splits."""
    limits, learners = recipe.growth.limits, recipe.learners
    if limits.forced is None:
        return ()
    if recipe.base_learner is not None:
        why = "splits are of trees, and base_learner is none. Use base_learner=None."
    elif recipe.langevin.random_from is not None:
        why = "shapes drawn at random (random_from) search no split. Use random_from=None."
    elif limits.growth not in ("depthwise", "leafwise"):
        why = f"growth={limits.growth!r} has one split for several nodes. Use growth='depthwise' or 'leafwise'."
    elif not isinstance(learners, AllLearners):
        why = f"{learners!r} draws columns, and that of a forced split may not be among them. Use learners=None."
    elif limits.extra_trees:
        why = "extra_trees draws the cuts that compete, and a forced one may not be among them. Use extra_trees=False."
    elif limits.interactions is not None:
        why = "interaction_cst may forbid a forced column on its path. Use interaction_cst=None."
    else:
        return (Finding("heuristic", "forced_splits: no rate is known of trees that begin with given splits."),)
    return (Finding("refused", f"forced_splits: {why}"),)
