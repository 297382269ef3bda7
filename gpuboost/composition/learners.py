"""Findings of theory about a selection rule combined with the other pieces of a recipe (RGBM, sections 1.2 and 4).

For stumps the best of the drawn learners is found, so the rates of types 0 to 3 hold. A deeper tree is grown greedily
and need not be the best one; its step still lowers the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log10
from typing import Any

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.langevin import Dynamics, Langevin
from gpuboost.learners import (
    CyclicGroups,
    RandomByLevel,
    RandomByNode,
    RandomLearners,
    SemiGreedyGroups,
    WeightedGroups,
    WeightedNodes,
)
from gpuboost.learners.selection import SelectionTraits
from gpuboost.records import declared
from gpuboost.steps import Step, StepTraits, searches
from gpuboost.types import Limits

MOST_PAIRS_PER_FEATURE = 4
"""Number of drawn pairs per feature above which nearly every feature is drawn."""


def is_stump(limits: Limits) -> bool:
    """True if a tree of these limits has at most one split."""
    return limits.max_depth == 1 or limits.max_leaves == 2


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings; none if the rule does not change the verdict on the recipe."""
    selection, limits, trees = recipe.learners, recipe.growth.limits, recipe.base_learner is None
    yield from _refused(selection, limits, trees)
    if limits.extra_trees and trees:
        yield from _of_extra_trees(selection)
    yield from _rates(selection, limits)
    yield from _of_sign_stumps(limits, recipe.step, recipe.langevin)
    yield from _of_random_shapes(selection, recipe.langevin)


def not_enumerable(limits: Limits, features: int, cuts: int) -> str:
    """Error message of type 1 for trees of these limits, given the numbers of features and of cuts per feature.

    A tree of depth D has up to 2^D - 1 splits, each by any feature and cut.
    """
    splits = min(2 ** min(limits.max_depth, 62), limits.max_leaves) - 1
    digits = splits * log10(max(features * cuts, 1))
    shape = f"depth-{limits.max_depth}" if 2 ** min(limits.max_depth, 62) <= limits.max_leaves else f"{splits}-split"
    return (
        f"learners: RandomLearners needs an enumerable set of weak learners; a {shape} tree on {features} features x "
        f"{cuts} cuts has about 10^{digits:.0f}. Use RandomGroups(t), or stumps: max_depth=1."
    )


def _refused(selection: Any, limits: Limits, trees: bool) -> Iterator[Finding]:
    if isinstance(selection, RandomLearners) and trees and not is_stump(limits):
        why = "RandomLearners needs an enumerable set of weak learners, and trees with several splits are too many. "
        yield Finding("refused", f"learners: {why}Use RandomGroups(t), or stumps: max_depth=1.")
    if _is_of_nodes(selection) and not trees:
        why = "draws cuts or features of nodes, and base_learner is no tree. Use RandomGroups(t)."
        yield Finding("refused", f"learners: {selection!r} {why}")
    elif _is_of_nodes(selection) and limits.symmetric and not _is_of_levels(selection):
        why = "treats one node unlike others, and all nodes of a level of an oblivious tree share a split."
        yield Finding("refused", f"learners: {selection!r} {why} Use growth='depthwise', or RandomGroups(t).")
    if isinstance(selection, SemiGreedyGroups) and not trees:
        why = "keeps the gains of splits, and base_learner has none. Use CyclicGroups(t)."
        yield Finding("refused", f"learners: {selection!r} {why}")
    if isinstance(selection, (CyclicGroups, SemiGreedyGroups)) and trees and not is_stump(limits):
        why = "a tree with several splits of one group at a time never joins features of two groups. "
        yield Finding("refused", f"learners: {selection!r} is for stumps: {why}Use RandomGroups(t), or max_depth=1.")


def _of_extra_trees(selection: Any) -> Iterator[Finding]:
    if isinstance(selection, RandomLearners) or declared(SelectionTraits, selection).groups == "root":
        why = "draws the cuts of the root, and so does extra_trees. Use RandomGroups(t), or extra_trees=False."
        yield Finding("refused", f"learners: {selection!r} {why}")
    yield Finding("heuristic", "extra_trees: no rate is known of a search among random cuts.")


def _is_of_nodes(selection: Any) -> bool:
    """True if the rule draws cuts, or features per node or level: ``Candidates.root`` or ``by_node``."""
    return (
        isinstance(selection, (RandomLearners, RandomByNode, RandomByLevel, WeightedNodes))
        or declared(SelectionTraits, selection).groups == "root"
    )


def _is_of_levels(selection: Any) -> bool:
    """True if all nodes of a level have the same features."""
    return isinstance(selection, RandomByLevel) or (isinstance(selection, WeightedNodes) and selection.by_level)


def _rates(selection: Any, limits: Limits) -> Iterator[Finding]:
    if isinstance(selection, (CyclicGroups, SemiGreedyGroups, WeightedGroups)) or (
        isinstance(selection, (RandomByNode, RandomByLevel, WeightedNodes)) and not is_stump(limits)
    ):
        yield Finding("heuristic", f"learners: no rate is known of {selection!r}.")


def _of_sign_stumps(limits: Limits, step: Step, langevin: Dynamics) -> Iterator[Finding]:
    if limits.signed and searches(step) and declared(StepTraits, step).per == "leaf":
        why = f"growth: 'sign_stump' has one value, and {step!r} looks for one in each leaf. "
        yield Finding("refused", f"{why}Use max_depth=1, or step='line_search'.")
    if limits.signed and isinstance(langevin, Langevin):
        why = "Langevin boosting needs leaves with noise of their own, and those of growth='sign_stump' share a value. "
        yield Finding("refused", f"growth: {why}Use max_depth=1.")


def _of_random_shapes(selection: Any, langevin: Dynamics) -> Iterator[Finding]:
    if langevin.random_from is not None and isinstance(selection, SemiGreedyGroups):
        why = "takes the group of the largest gain, and random shapes have none. Leave it out, or use CyclicGroups(t)."
        yield Finding("refused", f"random_from: {selection!r} {why}")
    if langevin.random_from is not None and _is_of_nodes(selection):
        why = "draws cuts or features of nodes, and random shapes take any cut of a tree's features at every node. "
        yield Finding("refused", f"random_from: {selection!r} {why}Leave it out, or use RandomGroups(t).")
