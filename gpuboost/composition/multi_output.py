"""Requirements of one tree for all outputs on the other pieces of a recipe: growth that is searched."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboost.arguments import is_one_of
from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.learners import RandomLearners
from gpuboost.learners.selection import SelectionTraits
from gpuboost.multi_output import OneTree
from gpuboost.records import declared
from gpuboost.types import Limits


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings; none with a tree for each output."""
    if isinstance(recipe.multi_output, OneTree):
        for why in (*_of_limits(recipe.growth.limits), *_of_pieces(recipe)):
            yield Finding("refused", f"multi_output: {why}")


def _of_limits(limits: Limits) -> Iterator[str]:
    if limits.growth not in ("depthwise", "leafwise"):
        yield (
            f"growth={limits.growth!r} is searched for one output; one tree for all of them grows depth-wise or "
            "leaf-wise. Use growth='depthwise' or 'leafwise'."
        )
    asked = {
        "monotonic_cst": limits.directions is not None,
        "interaction_cst": limits.interactions is not None,
        "reg_alpha": limits.reg_alpha > 0.0,
        "max_delta_step": limits.max_delta_step > 0.0,
        "forced_splits": limits.forced is not None,
        "feature_costs": limits.costs is not None,
        "path_smooth": limits.path_smooth > 0.0,
        "random_strength": limits.random_strength > 0.0,
        "extra_trees": limits.extra_trees,
    }
    for name, is_set in asked.items():
        if is_set:
            yield (
                f"the search for one tree of all outputs does not look at {name}. Leave it out, or use "
                "multi_output='one_tree_per_output'."
            )


def _of_pieces(recipe: Pieces) -> Iterator[str]:
    learners, each = recipe.learners, "Use multi_output='one_tree_per_output'."
    if recipe.base_learner is not None:
        yield f"base learners other than trees are fitted to one output. {each}"
    if isinstance(learners, RandomLearners) or is_one_of(declared(SelectionTraits, learners).groups, ("root",)):
        yield f"{learners!r} draws cuts of one output's tree. Draw features, as learners=0.5 does, or {_lower(each)}"
    if recipe.langevin.random_from is not None:
        yield f"shapes drawn at random (random_from) are drawn for each output. {each}"


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]
