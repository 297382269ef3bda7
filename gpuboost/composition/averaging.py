"""Requirements of a model that is the mean of its rounds on the other pieces of a recipe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.records import declared
from gpuboost.sampling.protocol import SamplingTraits

NO_DESCENT = "a mean of trees, each fitted at the start, is no descent: its training loss falls and rises."


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings about ``gb.Averaging``; none without it."""
    if recipe.averages:
        sampling = declared(SamplingTraits, recipe.sampling)
        for why in _refused(sampling, recipe.execution, recipe.permutations):
            yield Finding("refused", f"learning_rate: gb.Averaging() {why}")


def _refused(sampling: SamplingTraits, execution: Any, permutations: int) -> Iterator[str]:
    if sampling.variance_control in ("node", "previous_leaf") or sampling.frozen_from is not None:
        yield (
            "takes every gradient at the start, so those of an earlier round say nothing more. Use "
            "variance_control='leaf_refit' or 'none', and no frozen_from."
        )
    if declared(ExecutionTraits, execution).staleness == "damp":
        yield "makes a mean, in which no tree counts less for coming late. Use staleness='apply'."
    if permutations > 1:
        yield (
            "is one mean, and several permutations of target statistics are sequences of their own. Use "
            "categorical_encoding=gb.OrderedTargetStatistics(permutations=1)."
        )
