"""One tree at a time, by machines that hold some of the rows each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpuboost.errors import RecipeError
from gpuboost.execution.ray_cluster import Ray
from gpuboost.execution.rules import count
from gpuboost.execution.serial import Serial

if TYPE_CHECKING:  # it imports kernels, which take a while
    from gpuboost.backends.sharded.backend import Sharded


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
        What each computes with.

    Raises
    ------
    RecipeError
        If a parameter is out of its range, or Ray is needed and not installed.
    """

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
    def machine(self, threads: int) -> Iterator[Sharded]:
        """The machine that the shards are together. ``threads`` are the driver's own.

        Raises:
            DeviceError: if they cannot be started, or one is lost.
        """
        from gpuboost.backends.sharded.backend import Sharded
        from gpuboost.backends.sharded.crew import LocalCrew
        from gpuboost.backends.sharded.shard import Shard
        from gpuboost.execution.ray_crew import RayCrew

        kind = self._ray()
        crew = (
            LocalCrew(lambda: Shard(self.threads_per_shard), self.shards)
            if kind is None
            else RayCrew(kind, self.shards)
        )
        try:
            yield Sharded(crew, threads)
        finally:
            crew.stop()
