"""Requirements of losses of arrays, and of losses that the host computes, on the other pieces of a recipe."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.execution import DataParallel, Execution
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.protocol import Loss, is_on_host
from gpuboost.records import declared
from gpuboost.sampling import Sampling
from gpuboost.sampling.protocol import SamplingTraits


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings; none for other losses."""
    if is_on_host(recipe.loss):
        yield from _of_host(recipe.loss, recipe.sampling, recipe.execution)
    elif is_of_arrays(recipe.loss):
        yield from _refused(recipe.loss, recipe.sampling, recipe.execution)


def _of_host(loss: Loss, sampling: Sampling, execution: Execution) -> Iterator[Finding]:
    if isinstance(execution, DataParallel):
        yield Finding(
            "refused",
            f"execution: loss {loss.name!r} is computed by one host, of all rows, and shards of DataParallel hold "
            "parts of them. Use execution=None.",
        )
    if declared(SamplingTraits, sampling).score == "loss":
        yield Finding(
            "refused",
            f"sampling: the loss of a single row is not known of loss {loss.name!r}. Use score='mvs' or 'gradient'.",
        )


def _refused(loss: Loss, sampling: Sampling, execution: Execution) -> Iterator[Finding]:
    if isinstance(execution, DataParallel):
        yield Finding(
            "refused",
            f"execution: {loss!r} is one function of all rows, and shards of DataParallel hold parts of them. Use "
            "gb.losses.custom(...), whose functions are of one row, or execution=None.",
        )
    if declared(SamplingTraits, sampling).score == "loss":
        yield Finding(
            "refused",
            f"sampling: the loss of a single row is not known of {loss!r}, a function of all rows. Use score='mvs' or "
            "'gradient'.",
        )
