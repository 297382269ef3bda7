"""One tree at a time, by machines that hold some of the rows each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from gpuboost.arguments import is_one_of
from gpuboost.backends.protocol import CPU_SHARDS, Backend, Capabilities
from gpuboost.errors import RecipeError
from gpuboost.execution.messages import BuildTrees
from gpuboost.execution.protocol import Past, Workers
from gpuboost.execution.ray_cluster import Ray
from gpuboost.execution.rules import count
from gpuboost.execution.serial import Serial
from gpuboost.records import dataclass

if TYPE_CHECKING:  # it imports kernels, which take a while
    from gpuboost.backends.sharded.backend import Sharded
    from gpuboost.backends.sharded.gpus import ShardedGpus
    from gpuboost.backends.sharded.worker_group import WorkerGroup


@dataclass(frozen=True, slots=True)
class DataParallel:
    """Synchronous data-parallel training: the rows are shared out, and histograms of integers are added up.

    The model has the bytes of ``execution=None``, for any number of shards: what the shards add up are integers and
    maxima, which have no order, and the few sums of real numbers are cut at joints of the library's fixed order.

    Parameters
    ----------
    shards : int
        Workers that the rows are shared out to. No more than there are rows (or queries, of a ranking) are used.
    engine : "threads", "ray" or Ray
        What they run on: threads of this process, actors of a Ray cluster, or ``gb.Ray(...)`` with options of its own.
    address : str or None
        For "ray": see ``gb.Ray``.
    threads_per_shard : int
        What each computes with, on CPUs. With ``device="cuda"`` each has a GPU, and Ray is asked for one each; what
        they add up goes by NCCL where CuPy has it, else through the host's memory (``fit_report_.device_reason`` says
        which).

    Raises
    ------
    RecipeError
        If a parameter is out of its range, or Ray is needed and not installed.
    """

    offers: ClassVar[Capabilities] = CPU_SHARDS  # of the machine, wherever its shards compute

    shards: int
    engine: Any = "threads"
    address: str | None = None
    threads_per_shard: int = 1

    def __post_init__(self) -> None:
        count("shards", self.shards, 1)
        count("threads_per_shard", self.threads_per_shard, 1)
        named = is_one_of(self.engine, ("threads", "ray"))
        if not named and not isinstance(self.engine, Ray):
            raise RecipeError(f"engine: must be 'threads', 'ray' or gb.Ray(...); got {self.engine!r}.")
        if self.engine != "ray" and self.address is not None:
            raise RecipeError(f"address: it is for engine='ray'; got {self.address!r} with engine={self.engine!r}.")
        self._ray()

    def _ray(self) -> Ray | None:
        if isinstance(self.engine, Ray):
            return replace(self.engine, cpus_per_worker=self.threads_per_shard)
        return Ray(self.address, self.threads_per_shard) if self.engine == "ray" else None

    def open(self, fit: BuildTrees, backend: Backend, past: Past) -> AbstractContextManager[Workers]:
        """One tree at a time, as ``Serial``; the shards are parts of the backend (``machine``)."""
        return Serial().open(fit, backend, past)

    def check(self, recipe: Any) -> None:
        """Refuse a recipe of which a part cannot be sent. Raises RecipeError."""
        kind = self._ray()
        if kind is not None:
            kind.check(recipe)

    @contextmanager
    def machine(self, threads: int, *, on_gpus: bool = False) -> Iterator[Sharded | ShardedGpus]:
        """The backend made of the shards. threads: of the driver; on_gpus: True: shards compute on GPUs.

        Raises:
            DeviceError: if they cannot be started, or one is lost.
        """
        from gpuboost.backends.sharded.backend import Sharded
        from gpuboost.backends.sharded.gpus import ShardedGpus

        workers = self._workers(on_gpus)
        try:
            yield ShardedGpus(workers, threads) if on_gpus else Sharded(workers, threads)
        finally:
            workers.stop()

    def _workers(self, on_gpus: bool) -> WorkerGroup:
        from gpuboost.backends.sharded.gpu_shard import GpuShard, first_gpu, gpus_in_turn
        from gpuboost.backends.sharded.shard import Shard
        from gpuboost.backends.sharded.worker_group import LocalWorkerGroup
        from gpuboost.execution.ray_worker_group import RayWorkerGroup

        kind, cpu = self._ray(), partial(Shard, self.threads_per_shard)
        if kind is not None:
            return RayWorkerGroup(
                kind, self.shards, partial(GpuShard, first_gpu) if on_gpus else cpu, gpus=int(on_gpus)
            )
        gpus = gpus_in_turn() if on_gpus else iter(())
        return LocalWorkerGroup((lambda: GpuShard(next(gpus))) if on_gpus else cpu, self.shards)
