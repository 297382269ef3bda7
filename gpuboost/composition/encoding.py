"""Requirements of ordered target statistics on the other pieces of a recipe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuboost.base_learners import BaseLearner
from gpuboost.composition.findings import Finding
from gpuboost.execution import Execution
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.langevin import Dynamics, Langevin
from gpuboost.learners import Selection, WeightedGroups, WeightedNodes
from gpuboost.learners.selection import SelectionTraits
from gpuboost.records import declared
from gpuboost.sampling import Sampling
from gpuboost.sampling.protocol import SamplingTraits

ONE = "categorical_encoding=gb.OrderedTargetStatistics(permutations=1)"


def encoding_findings(
    permutations: int,
    sampling: Sampling,
    learners: Selection,
    langevin: Dynamics,
    execution: Execution,
    base_learner: BaseLearner | None,
) -> tuple[Finding, ...]:
    """Findings; () without statistics (permutations = 0)."""
    if not permutations:
        return ()
    reasons = list(_refused(learners, base_learner))
    if permutations > 1:
        reasons += _refused_of_several(sampling, langevin, execution)
    findings = tuple(Finding("refused", f"categorical_encoding: {why}") for why in reasons)
    why = "rows to predict have statistics of all training rows, and training rows those of the rows before them."
    return findings or (Finding("heuristic", f"categorical_encoding: {why}"),)


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
