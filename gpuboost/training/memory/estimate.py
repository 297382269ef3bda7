"""Memory and linked functions that a training needs of a GPU, found by running its driver with nothing computed."""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from gpuboost.backends.cuda.device.dry_run import CountedArray, DryRun
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.backends.protocol import Backend
from gpuboost.base_learners.best_of_families import BestOfFamilies
from gpuboost.base_learners.dry_run import DryRunOfFamilies
from gpuboost.boosting import boost
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.errors import DeviceError
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.execution.synchronous import synchronous
from gpuboost.losses.protocol import Loss, n_targets
from gpuboost.recipe import Recipe
from gpuboost.records import declared
from gpuboost.training.memory.breakdown import OF_ROWS, PURPOSES, TracedBackend
from gpuboost.training.memory.watched import WatchedRows, Watching
from gpuboost.types import Array, Cuts, Ensemble, TrainingSet

if TYPE_CHECKING:  # it imports kernels, which take a while
    from gpuboost.backends.cuda.codegen.functions import DeviceFunction

ROUNDS = 3  # of each sequence of trees and worker: after two rounds, all arrays of a training are allocated


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Device memory that a training requests, in bytes. CuPy rounds every array up to 512 bytes."""

    n_rows: int
    n_features: int
    breakdown: dict[str, int]  # by purpose

    @property
    def total(self) -> int:
        """Peak memory in bytes."""
        return sum(self.breakdown.values())

    @property
    def bytes_per_row(self) -> float:
        """Bytes of the arrays that grow with the rows, per row."""
        return sum(self.breakdown[purpose] for purpose in OF_ROWS) / self.n_rows

    def __str__(self) -> str:
        lines = [f"{self.n_rows:,} rows x {self.n_features:,} features: {_size(self.total)} on the device"]
        for purpose, size in self.breakdown.items():
            if size:
                lines.append(f"  {_size(size):>10}  {PURPOSES[purpose]}")
        return "\n".join([*lines, f"  {self.bytes_per_row:.1f} bytes a row"])


@dataclass(frozen=True, slots=True)
class Needs:
    """Memory and functions that the first rounds of a training need of a GPU."""

    memory: MemoryEstimate
    functions: tuple[DeviceFunction, ...]  # Python functions that kernels call


def check_room(device: str, recipe: Recipe, needed: MemoryEstimate) -> None:
    """Raise DeviceError, with the sizes, if the GPU has not enough free memory for the training."""
    fewer = "with fewer workers, " if declared(ExecutionTraits, recipe.execution).has_workers else ""
    gpu = open_gpu(device)
    free = gpu.free_memory
    if needed.total > free:
        gc.collect()  # a fit that was interrupted has its memory in a cycle, of its error's frames
        free = gpu.free_memory
    if needed.total > free:
        n = needed.n_rows
        raise DeviceError(
            f"device: {device} has {_size(free)} free, and the training takes {_size(needed.total)} "
            f"({needed.bytes_per_row:.0f} bytes for each of {n:,} rows; gpuboost.estimate_memory says for what). "
            f"Train on fewer rows or features, {fewer}with a smaller max_depth or max_bins, or on device='cpu'."
        )


def training_memory(
    recipe: Recipe, cuts: Cuts, runtime: DryRun, rows: RowMetadata, watching: Watching | None = None
) -> MemoryEstimate:
    """The memory that the driver allocates to train this recipe on the kept rows.

    Of the peak, which may have been before the training if ``runtime`` has been used.
    """
    return training_needs(recipe, cuts, runtime, rows, watching).memory


def training_needs(
    recipe: Recipe, cuts: Cuts, runtime: DryRun, rows: RowMetadata, watching: Watching | None = None
) -> Needs:
    """Memory and functions of the first ROUNDS rounds, by a dry run."""
    from gpuboost.backends.cuda.backend import Cuda

    n = rows.n_kept
    machine = Cuda(runtime)
    backend = TracedBackend(machine, runtime)
    bins = backend.quantise(CountedArray((n, cuts.n_columns), np.float32), cuts)
    with runtime.purpose("labels"):
        y = _target(runtime, n, recipe.loss)
        data = TrainingSet(bins, cuts, y, rows.real_weight, rows.multiplicity, rows.query_start)
    watch = WatchedRows(machine, runtime, recipe, cuts, watching or Watching())
    if isinstance(recipe.base_learner, BestOfFamilies):
        recipe = replace(recipe, base_learner=DryRunOfFamilies.of(recipe.base_learner.families))
    begin = Ensemble(np.zeros(recipe.loss.n_outputs), cuts)
    watch.begin(data, begin)
    rounds = ROUNDS * recipe.sequences * declared(ExecutionTraits, recipe.execution).workers
    few = replace(recipe, rounds=min(recipe.rounds, rounds), execution=synchronous(recipe.execution))
    boost(few, data, cast(Backend, backend), watch=watch, evaluate=watch.evaluate, resume=begin)
    machine.forget_rounds()
    return Needs(MemoryEstimate(n, cuts.n_features, backend.breakdown(data)), tuple(runtime.functions))


def _target(runtime: DryRun, n: int, loss: Loss) -> Array:
    targets = n_targets(loss)
    return runtime.empty(n if targets == 1 else (n, targets), np.float64)


def _size(n: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= factor:
            return f"{n / factor:.1f} {unit}"
    return f"{n} B"
