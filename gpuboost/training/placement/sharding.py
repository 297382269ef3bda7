"""Distribution of the training rows to the shards of a data-parallel fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.devices import Choice
from gpuboost.backends.protocol import GPU_SHARDS, Backend
from gpuboost.data.formats.parquet import ParquetRows
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.errors import DeviceError, RecipeError
from gpuboost.execution import DataParallel
from gpuboost.langevin import Langevin
from gpuboost.losses.protocol import is_list_loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow
from gpuboost.training.train import Job
from gpuboost.types import Cuts, TrainingSet

if TYPE_CHECKING:  # they import kernels, which take a while
    from gpuboost.backends.sharded.backend import Sharded
    from gpuboost.backends.sharded.gpus import ShardedGpus
    from gpuboost.backends.sharded.shard_data import ShardData, ShardSource

GPUS = "cuda"  # name of the choice; each shard's host selects the GPU
ON_GPUS = (
    "with device='cuda' shards of DataParallel grow trees of any growth, with any weights, categories and drawn "
    "features, from every row, for losses of single rows"
)
STRETCH = 4_096  # rows; boundaries at blocks of the fixed summation order save sending partial sums


def ends_of(n_rows: int, shards: int, lists: NDArray[np.int64] | None = None, *, whole: bool = False) -> list[int]:
    """End row of each shard: about equal sizes, whole queries, and whole blocks of ``STRETCH`` rows for many rows.

    There are fewer shards than requested if there are fewer rows or queries or, with ``whole``, fewer blocks.
    """
    if whole:
        stretches = -(-n_rows // STRETCH)
        shards = min(shards, stretches)
        return [stretches * (i + 1) // shards * STRETCH for i in range(shards - 1)] + [n_rows]
    if lists is not None:
        wanted = [n_rows * (i + 1) // shards for i in range(shards)]
        ends = lists[np.searchsorted(lists, wanted)]
        return [int(end) for end in np.unique(ends[ends > 0])]
    shards = min(shards, n_rows)
    unit = STRETCH if n_rows >= 4 * shards * STRETCH else 1
    return [n_rows * (i + 1) // shards // unit * unit for i in range(shards - 1)] + [n_rows]


def shared_out(
    backend: Sharded | ShardedGpus, x: Any, cuts: Cuts, y: NDArray[np.float64], rows: RowMetadata
) -> TrainingSet:
    """Send to each shard its part of the rows ``x`` (n, d), which are in local memory, without rows of weight 0."""
    from gpuboost.backends.sharded.shard_data import ShardData

    files = x if isinstance(x, ParquetRows) else None
    if files is not None:
        x = np.arange(len(y))  # for rows that stay in files, row numbers are sent
    x, y = rows.select(x), rows.select(y)
    weight, multiplicity, lists = rows.real_weight, rows.multiplicity, rows.query_start
    sources: list[ShardSource] = []
    ends = ends_of(len(y), backend.shards, lists, whole=backend.whole)
    for a, b in zip([0, *ends[:-1]], ends, strict=True):
        inside = None if lists is None else lists[(lists >= a) & (lists <= b)] - a
        own_weight = None if weight is None else weight[a:b]
        times = None if multiplicity is None else multiplicity[a:b]
        data = ShardData(x[a:b], y[a:b], own_weight, times, inside)
        sources.append(data if files is None else partial(_read, files, data))
    placed = backend.place(sources, cuts, y, weight, multiplicity, lists, np.diff([0, *ends]).tolist())
    return placed if rows.offset is None else replace(placed, offset=rows.kept_offset)


def _read(files: ParquetRows, numbered: ShardData) -> ShardData:
    """The data with row numbers replaced by the rows; called by the shard."""
    rows = numbered.x
    begin, end = int(rows[0]), int(rows[-1]) + 1
    return replace(numbered, x=files[begin:end] if end - begin == len(rows) else files[rows])


def shards_choice(params: Mapping[str, Any], place: str | None) -> Choice:
    """The device of the shards: the CPU of their machines or, with device="cuda", a GPU for each.

    Raises
    ------
    RecipeError, DeviceError
        If it contradicts the parameters, or the location of the data.
    """
    if place is not None or params["device"] not in ("auto", "cpu", "cuda"):
        seen = f"X is on {place}" if place is not None else f"got device={params['device']!r}"
        raise DeviceError(
            f"device: shards of DataParallel take rows from the host, and device='cuda' gives each a GPU; {seen}. Use "
            "device='cuda', 'cpu' or 'auto', and data on the host."
        )
    if params["device"] == "cuda":
        return Choice(GPUS, f"{params['execution']!r}: shards compute on GPUs")
    return Choice("cpu", f"{params['execution']!r}: shards compute on CPUs.")


@contextmanager
def on_its_machine(job: Job) -> Iterator[Job]:
    """The job itself or, for a data-parallel fit, the job on shards that exist while the context is open.

    Raises
    ------
    RecipeError, DeviceError
        If a part of the recipe cannot be sent, or the shards cannot be started.
    """
    execution = job.recipe.execution
    if not isinstance(execution, DataParallel):
        yield job
        return
    execution.check(job.recipe)
    on_gpus = job.choice.name == GPUS
    if on_gpus:
        check_for_gpus(job.recipe)
    with execution.machine(job.threads, on_gpus=on_gpus) as backend:
        choice = Choice(GPUS, f"{job.choice.why}; {backend.why}.") if on_gpus else job.choice
        yield replace(job, backend=cast(Backend, backend), choice=choice)


def check_for_gpus(recipe: Recipe) -> None:
    """Refuse recipes that shards on GPUs do not support.

    Raises
    ------
    RecipeError
        If a piece is not supported; the message names it, and the supported ones.
    """
    asked = (
        ("sampling", GPU_SHARDS.sampling, not isinstance(recipe.sampling, EveryRow), "sampled rows"),
        ("langevin", GPU_SHARDS.langevin, isinstance(recipe.langevin, Langevin), "Langevin boosting"),
        ("loss", GPU_SHARDS.list_losses, is_list_loss(recipe.loss), f"lists of queries ({recipe.loss.name})"),
    )
    if recipe.growth.limits.forced is not None:
        raise RecipeError("forced_splits: forced splits are made on the CPU. Use device='cpu', or forced_splits=None.")
    if recipe.growth.limits.costs is not None:
        raise RecipeError(
            "feature_costs: trees with feature costs are grown on the CPU. Use device='cpu', or feature_costs=None."
        )
    for name, offered, needed, what in asked:
        if needed and not offered:
            raise RecipeError(
                f"{name}: {ON_GPUS}; {what} only with device='cpu'. Use that, or execution=None, where one GPU does it."
            )
