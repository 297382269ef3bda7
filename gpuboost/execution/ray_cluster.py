"""The options of Ray as an engine. The connection itself is ``ray_connection``; the actors are ``ray_engine``."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from gpuboost.errors import RecipeError
from gpuboost.execution.ray_connection import check_sendable
from gpuboost.execution.rules import count, positive
from gpuboost.records import dataclass

LEAST_STORE = 80 * 2**20  # bytes, less than which Ray refuses


@dataclass(frozen=True, slots=True)
class Ray:
    """The engine "ray": workers are actors on a Ray cluster.

    Parameters
    ----------
    address : str or None
        "host:port" of the cluster's head, or "auto" for one that this machine belongs to. None: the one that this
        process is connected to, or that the environment variable RAY_ADDRESS names; if there is none, Ray is started on
        this machine for the length of the fit, and listens on 127.0.0.1 only.
    cpus_per_worker : int
        Cores that Ray sets aside for each worker, and threads that it computes with.
    object_store_memory : int or None
        Bytes of shared memory for a Ray that is started here. None: as Ray sees fit.
    timeout : float
        Seconds within which the cluster must answer, and workers must have started.
    patience : float or None
        Seconds without an answer, after which a worker that was given something to do, or a shard, counts as lost.
        None: never.

    Raises
    ------
    RecipeError
        If Ray is not installed, or a parameter is out of its range.
    """

    address: str | None = None
    cpus_per_worker: int = 1
    object_store_memory: int | None = None
    timeout: float = 60.0
    patience: float | None = 600.0

    def __post_init__(self) -> None:
        if find_spec("ray") is None:
            raise RecipeError(
                "engine: 'ray' needs the package ray, which is not installed. pip install 'gpuboosting[ray]', or use "
                "engine='threads'."
            )
        address: Any = self.address
        if address is not None and not (isinstance(address, str) and address):
            raise RecipeError(f"address: must be None, 'auto' or 'host:port'; got {self.address!r}.")
        count("cpus_per_worker", self.cpus_per_worker, 1)
        if self.object_store_memory is not None:
            count("object_store_memory", self.object_store_memory, LEAST_STORE)
        positive("timeout", self.timeout)
        if self.patience is not None:
            positive("patience", self.patience)

    def with_timeout(self, seconds: float | None) -> Ray:
        """The same kind with ``patience`` of this many seconds."""
        return replace(self, patience=seconds)

    def check(self, fit: Any) -> None:
        """Refuse a fit that cannot be sent. Its data can; its recipe may hold functions and objects of the user."""
        check_sendable(fit)

    def start(self, fit: Any, machine: Any, workers: int) -> Any:
        """See ``engine.EngineKind``."""
        from gpuboost.execution.ray_engine import RayEngine

        return RayEngine(self, fit, machine, workers)
