"""Cases whose rows are shared out to emulated GPUs, each driven by a thread of this process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from emulator import FakeCupy, Schedule, require_compiler
from emulator.nccl import World
from support.builders import Case

from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.sharded.gpu_shard import GpuShard
from gpuboost.backends.sharded.gpus import UNIT, ShardedGpus
from gpuboost.backends.sharded.shard_data import ShardData
from gpuboost.backends.sharded.worker_group import LocalWorkerGroup
from gpuboost.types import TrainingSet

ORDERS = ("forward", "reverse", "random")


def whole_stretches(n: int, shards: int) -> list[int]:
    """Where shards of n rows end: each has a stretch at least."""
    stretches = -(-n // UNIT)
    ends = [stretches * (i + 1) // shards * UNIT for i in range(shards - 1)]
    return [*ends, n]


def gpus(size: int, world: World | None) -> list[FakeCupy]:
    """Emulated devices, of which no two run threads in the same order or have as many multiprocessors."""
    require_compiler()
    made = [FakeCupy(Schedule(ORDERS[i % 3]), multiprocessors=3 + i) for i in range(size)]
    if world is not None:
        made = [world.give(one) for one in made]
    return made


def shards(count: int, world: World | None = None) -> ShardedGpus:
    """A backend of so many shards, which have no rows yet. Without a world, devices without NCCL."""
    waiting = iter(gpus(count, world))
    return ShardedGpus(LocalWorkerGroup(lambda: GpuShard(lambda: CupyRuntime(next(waiting))), count))


def hand_out(backend: ShardedGpus, case: Case, ends: Sequence[int], x: object = None) -> TrainingSet:
    """Give the shards the rows up to each of ``ends``. Returns the data set that is all of them."""
    data, x = case.data, case.x if x is None else x
    pieces = []
    for a, b in zip([0, *ends[:-1]], ends, strict=True):
        weight, times = (None if held is None else held[a:b] for held in (data.weight, data.multiplicity))
        pieces.append(ShardData(x[a:b], data.y[a:b], weight, times))
    sizes = np.diff([0, *ends]).tolist()
    return backend.place(pieces, data.cuts, data.y, data.weight, data.multiplicity, None, sizes)


def place(
    case: Case, ends: Sequence[int], world: World | None = None, x: object = None
) -> tuple[ShardedGpus, TrainingSet]:
    """A backend whose shards hold the rows up to each of ``ends``. Without a world, devices without NCCL."""
    backend = shards(len(ends), world)
    return backend, hand_out(backend, case, ends, x)
