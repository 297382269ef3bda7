"""Requirements of losses of arrays, and of losses that the host computes, on the other pieces of a recipe."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboost.composition.findings import Finding
from gpuboost.execution import DataParallel, Execution
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.protocol import Loss, is_on_host
from gpuboost.records import declared
from gpuboost.sampling import Sampling
from gpuboost.sampling.protocol import SamplingTraits


def array_loss_findings(loss: Loss, sampling: Sampling, execution: Execution) -> tuple[Finding, ...]:
    """Findings; () for other losses."""
    if is_on_host(loss):
        return tuple(_of_host(loss, sampling, execution))
    return tuple(_refused(loss, sampling, execution)) if is_of_arrays(loss) else ()


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
