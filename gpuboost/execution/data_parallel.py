"""One tree at a time, by machines that hold some of the rows each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from gpuboost.backends.capabilities import CPU_SHARDS, Capabilities
from gpuboost.errors import RecipeError
from gpuboost.execution.ray_cluster import Ray
from gpuboost.execution.rules import count
from gpuboost.execution.serial import Serial

if TYPE_CHECKING:  # it imports kernels, which take a while
    from gpuboost.backends.sharded.backend import Sharded
    from gpuboost.backends.sharded.crew import Crew
    from gpuboost.backends.sharded.gpus import ShardedGpus


@dataclass(frozen=True, slots=True)
class DataParallel(Serial):
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
        if self.engine not in ("threads", "ray") and not isinstance(self.engine, Ray):
            raise RecipeError(f"engine: must be 'threads', 'ray' or gb.Ray(...); got {self.engine!r}.")
        if self.engine != "ray" and self.address is not None:
            raise RecipeError(f"address: it is for engine='ray'; got {self.address!r} with engine={self.engine!r}.")
        self._ray()

    def _ray(self) -> Ray | None:
        if isinstance(self.engine, Ray):
            return replace(self.engine, cpus_per_worker=self.threads_per_shard)
        return Ray(self.address, self.threads_per_shard) if self.engine == "ray" else None

    def check(self, recipe: Any) -> None:
        """Refuse a recipe of which a part cannot be sent. Raises RecipeError."""
        kind = self._ray()
        if kind is not None:
            kind.check(recipe)

    @contextmanager
    def machine(self, threads: int, *, on_gpus: bool = False) -> Iterator[Sharded | ShardedGpus]:
        """The machine that the shards are together. ``threads`` are the driver's own; on_gpus: where shards compute.

        Raises:
            DeviceError: if they cannot be started, or one is lost.
        """
        from gpuboost.backends.sharded.backend import Sharded
        from gpuboost.backends.sharded.gpus import ShardedGpus

        crew = self._crew(on_gpus)
        try:
            yield ShardedGpus(crew, threads) if on_gpus else Sharded(crew, threads)
        finally:
            crew.stop()

    def _crew(self, on_gpus: bool) -> Crew:
        from gpuboost.backends.sharded.crew import LocalCrew
        from gpuboost.backends.sharded.gpu_shard import GpuShard, first_gpu, in_turn
        from gpuboost.backends.sharded.shard import Shard
        from gpuboost.execution.ray_crew import RayCrew

        kind, cpu = self._ray(), partial(Shard, self.threads_per_shard)
        if kind is not None:
            return RayCrew(kind, self.shards, partial(GpuShard, first_gpu) if on_gpus else cpu, gpus=int(on_gpus))
        gpus = in_turn() if on_gpus else iter(())
        return LocalCrew((lambda: GpuShard(next(gpus))) if on_gpus else cpu, self.shards)
