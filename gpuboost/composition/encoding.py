"""Requirements of ordered target statistics on the other pieces of a recipe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuboost.base_learners import BaseLearner
from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.execution import Execution
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.langevin import Dynamics, Langevin
from gpuboost.learners import WeightedGroups, WeightedNodes
from gpuboost.learners.selection import SelectionTraits
from gpuboost.records import declared
from gpuboost.sampling.protocol import SamplingTraits

ONE = "categorical_encoding=gb.OrderedTargetStatistics(permutations=1)"


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings; none without statistics (permutations = 0)."""
    if not recipe.permutations:
        return
    reasons = list(_refused(recipe.learners, recipe.base_learner))
    if recipe.permutations > 1:
        reasons += _refused_of_several(recipe.sampling, recipe.langevin, recipe.execution)
    for why in reasons:
        yield Finding("refused", f"categorical_encoding: {why}")
    if not reasons:
        why = "rows to predict have statistics of all training rows, and training rows those of the rows before them."
        yield Finding("heuristic", f"categorical_encoding: {why}", of_training=False)


def _refused(learners: Any, base_learner: BaseLearner | None) -> Iterator[str]:
    if base_learner is not None:
        yield (
            "ordered target statistics are for trees, and base_learner is none. Use categorical_encoding='partition'."
        )
    if isinstance(learners, (WeightedGroups, WeightedNodes)) or isinstance(
        declared(SelectionTraits, learners).groups, tuple
    ):
        yield (
            f"learners={learners!r} has labels or weights of the columns of X, and statistics of combinations belong "
            "to several. Use a count or a share, or categorical_encoding='partition'."
        )
    if declared(SelectionTraits, learners).keeps_gains:
        yield (
            f"learners={learners!r} keeps a queue of gains, and columns of statistics change from round to round. Use "
            "CyclicGroups(t), or categorical_encoding='partition'."
        )


def _refused_of_several(sampling: Any, langevin: Dynamics, execution: Execution) -> Iterator[str]:
    if isinstance(langevin, Langevin):
        yield f"Langevin boosting is one chain, and the mean of several sequences of trees is none. Use {ONE}."
    if declared(ExecutionTraits, execution).has_workers:
        yield (
            f"{execution!r} builds trees on gradients of other rounds, and those of other permutations are not of "
            f"the same sequence. Use {ONE}."
        )
    traits = declared(SamplingTraits, sampling)
    if traits.frozen_from is not None:
        yield (
            f"frozen_from={traits.frozen_from} keeps the scores of a round, and the next round is of another sequence. "
            f"Use frozen_from=None, or {ONE}."
        )
    if traits.variance_control in ("node", "previous_leaf"):
        yield (
            f"{sampling!r} corrects gradients by those of the round before, and with several permutations that is a "
            f"round of another sequence. Use {ONE}."
        )
