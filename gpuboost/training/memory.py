"""GPU memory that a training allocates, measured by running its driver with nothing computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost import components
from gpuboost.backends.cuda.device.dry_run import CountedArray, Rehearsal
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.backends.protocol import Backend
from gpuboost.base_learners.competition import Competition
from gpuboost.base_learners.on_paper import OnPaper
from gpuboost.boosting import boost
from gpuboost.data.queries import query_start
from gpuboost.data.weights import kept_rows, split_weights
from gpuboost.errors import DeviceError
from gpuboost.execution.in_turn import in_turn
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.recipe import Recipe
from gpuboost.records import declared
from gpuboost.training.memory_breakdown import OF_ROWS, PURPOSES, Labelled
from gpuboost.types import (
    Array,
    Cuts,
    Ensemble,
    Progress,
    TrainingSet,
)

if TYPE_CHECKING:  # it imports kernels, which take a while
    from gpuboost.backends.cuda.backend import Cuda

ROUNDS = 3  # after two, everything that a training holds is there


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes of device memory, to the byte what a training asks for. CuPy rounds every array up to 512 bytes."""

    n_rows: int
    n_features: int
    breakdown: dict[str, int]  # by purpose

    @property
    def total(self) -> int:
        """At the moment when it is the most."""
        return sum(self.breakdown.values())

    @property
    def bytes_per_row(self) -> float:
        """Of what grows with the rows."""
        return sum(self.breakdown[purpose] for purpose in OF_ROWS) / self.n_rows

    def __str__(self) -> str:
        lines = [f"{self.n_rows:,} rows x {self.n_features:,} features: {_size(self.total)} on the device"]
        for purpose, size in self.breakdown.items():
            if size:
                lines.append(f"  {_size(size):>10}  {PURPOSES[purpose]}")
        return "\n".join([*lines, f"  {self.bytes_per_row:.1f} bytes a row"])


def check_room(
    device: str, recipe: Recipe, n: int, cuts: Cuts, weight: NDArray[np.float64] | None, eval_rows: tuple[int, ...],
    group: NDArray[Any] | None = None,
) -> None:  # fmt: skip
    """Raise DeviceError, with the numbers, if the GPU has not enough free memory for the training."""
    runtime = open_gpu(device)
    kept = kept_rows(weight)
    if kept is not None and weight is not None:
        n, weight, group = len(kept), weight[kept], None if group is None else group[kept]
    lists = None if group is None else query_start(group)
    fewer = "with fewer workers, " if declared(ExecutionTraits, recipe.execution).has_workers else ""
    needed, free = rehearsed(recipe, n, cuts, runtime.sm_count, weight, eval_rows, lists), runtime.free_memory
    if needed.total > free:
        raise DeviceError(
            f"device: {device} has {_size(free)} free, and the training takes {_size(needed.total)} "
            f"({needed.bytes_per_row:.0f} bytes for each of {n:,} rows; gpuboost.estimate_memory says for what). "
            f"Train on fewer rows or features, {fewer}with a smaller max_depth or max_bins, or on device='cpu'."
        )


def rehearsed(
    recipe: Recipe,
    n: int,
    cuts: Cuts,
    sm_count: int,
    weight: NDArray[np.float64] | None = None,
    eval_rows: tuple[int, ...] = (),
    lists: NDArray[np.int64] | None = None,
) -> MemoryEstimate:
    """What the driver allocates for a training of this recipe on n rows cut like this; ``lists``: ``query_start``."""
    from gpuboost.backends.cuda.backend import Cuda

    runtime = Rehearsal(sm_count)
    machine = Cuda(runtime)
    backend = Labelled(machine, runtime)
    bins = backend.quantise(CountedArray((n, cuts.n_columns), np.float32), cuts)
    with runtime.purpose("labels"):
        data = TrainingSet(bins, cuts, runtime.empty(n, np.float64), *split_weights(weight), lists)
    with runtime.purpose("eval sets"):
        watched = [_watched(machine, runtime, rows, recipe.loss.n_outputs, cuts) for rows in eval_rows]

    def watch(progress: Progress) -> bool:
        with runtime.purpose("eval sets"):
            for rows, scores in watched:
                for one in progress.trees:
                    components.add(machine, scores, one, progress.factor, rows)
                if lists is None:  # what rankings are judged by is computed by the host
                    machine.loss_value(recipe.loss, scores, rows.y, None)
        return False

    if isinstance(recipe.base_learner, Competition):
        recipe = replace(recipe, base_learner=OnPaper(recipe.base_learner.families))
    begin = Ensemble(np.zeros(recipe.loss.n_outputs), cuts)
    few = replace(recipe, rounds=min(recipe.rounds, ROUNDS), execution=in_turn(recipe.execution))
    boost(few, data, cast(Backend, backend), watch=watch, resume=begin)
    return MemoryEstimate(n, cuts.n_features, backend.breakdown(data))


def _watched(machine: Cuda, runtime: Rehearsal, n: int, k: int, cuts: Cuts) -> tuple[TrainingSet, Array]:
    rows = TrainingSet(
        machine.quantise(CountedArray((n, cuts.n_columns), np.float32), cuts), cuts, runtime.empty(n, np.float64)
    )
    return rows, machine.start(rows, np.zeros(k))


def _size(n: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= factor:
            return f"{n / factor:.1f} {unit}"
    return f"{n} B"
