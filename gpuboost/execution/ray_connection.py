"""A connection to Ray: opened, checked and closed; actors on it; records sent without a copy; errors.


Only the core of Ray is used, placement of actors and its object store; neither Ray Train nor ray.util.collective.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuboost._version import __version__
from gpuboost.arguments import writable_view
from gpuboost.errors import DeviceError, RecipeError
from gpuboost.types import TrainingSet

if TYPE_CHECKING:
    from gpuboost.execution.ray_cluster import Ray

DEFAULT_PORT = 6379
LOOPBACK = "127.0.0.1"


class Connection:
    """A connection to Ray. ``close`` ends it if it was opened by this library.

    Raises
    ------
    DeviceError
        If nothing answers at the address within the time allowed, or Ray does not start.
    """

    def __init__(self, kind: Ray, cpus: int) -> None:
        import ray

        self.ray, self.kind = ray, kind
        # The store moves what it has no room for to the disk, so it is full only when the disk is.
        self.full = ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError
        self.ours = not ray.is_initialized()
        if not self.ours:
            return
        address = kind.address or os.environ.get("RAY_ADDRESS") or "local"
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        if address == "local":
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            memory = kind.object_store_memory
            started_with: dict[str, Any] = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": memory}
            started_with["_node_ip_address"] = LOOPBACK
        else:
            reach(address, kind.timeout)
            started_with = {}
        try:
            with only_local() if address == "local" else nullcontext():
                ray.init(address=address, **started_with, **quiet)
        except (ConnectionError, OSError, RuntimeError, ValueError, TimeoutError) as error:
            where = "on this machine" if address == "local" else f"at {address!r}"
            raise DeviceError(f"engine: Ray cannot be started or reached {where}: {error}") from error

    def start_actors(self, cls: type, size: int, *args: Any, gpus: int = 0) -> list[Any]:
        """Start ``size`` actors of a class without waiting for them. Ray does not restart one that dies.

        gpus: that each has for itself, as cuda:0 and on.
        """
        needs = {"num_cpus": self.kind.cpus_per_worker, "num_gpus": gpus}
        remote = self.ray.remote(**needs, max_restarts=0, max_task_retries=0)(cls)
        return [remote.remote(*args) for _ in range(size)]

    def check_gpus(self, wanted: int) -> None:
        """Raise DeviceError unless the cluster has this many."""
        there = int(self.ray.cluster_resources().get("GPU", 0.0))
        if there < wanted:
            raise DeviceError(
                f"device: each of {wanted} shards asks Ray for a GPU, and the cluster has {there}. Use fewer shards, "
                "or device='cpu'."
            )

    def greet(self, actors: Sequence[Any]) -> None:
        """Wait until all are there. Raises DeviceError if they are not in time, or run another version."""
        ready = [actor.version.remote() for actor in actors]
        done, waiting = self.ray.wait(ready, num_returns=len(ready), timeout=self.kind.timeout)
        if waiting:
            cpus = self.ray.cluster_resources().get("CPU", 0.0)
            raise DeviceError(
                f"engine: {len(done)} of {len(ready)} workers started within {self.kind.timeout:g} s; each asks for "
                f"{self.kind.cpus_per_worker} CPUs, and the cluster has {cpus:g}, free or not. Ask for fewer workers, "
                "or raise Ray(timeout=)."
            )
        try:
            versions = set(self.ray.get(done))
        except self.ray.exceptions.RayError as error:
            raise DeviceError(f"engine: a worker did not start: {error}") from error
        if versions != {__version__}:
            raise DeviceError(
                f"engine: gpuboost {__version__} is here, and {', '.join(sorted(versions))} with the workers. Install "
                "the same on every machine of the cluster."
            )

    def dismiss(self, actors: Sequence[Any]) -> None:
        """End these workers at once, if they have not ended yet."""
        for actor in actors:
            if self.ray.is_initialized():
                self.ray.kill(actor)

    def close(self) -> None:
        if self.ours and self.ray.is_initialized():
            self.ray.shutdown()


@contextmanager
def only_local() -> Iterator[None]:
    """Have a Ray that is started here listen on the loopback address only.

    Ray replaces that address by one that other machines reach, unless it is told that there are no clusters, as on
    macOS and Windows. A Ray without this setting starts as it would otherwise.
    """
    import ray

    constants: Any = getattr(ray._private, "ray_constants", None)
    before = getattr(constants, "ENABLE_RAY_CLUSTER", None)
    if before is None:
        yield
        return
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def reach(address: str, timeout: float) -> None:
    """Raise DeviceError unless something listens there. Ray itself would try for minutes, and end the process."""
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host:
        host, port = port, str(DEFAULT_PORT)
    if not port.isdecimal():
        raise DeviceError(f"address: must be 'auto' or 'host:port'; got {address!r}.")
    try:
        socket.create_connection((host, int(port)), timeout=timeout).close()
    except (OSError, OverflowError) as error:
        raise DeviceError(
            f"address: no Ray cluster answers at {address!r} within {timeout:g} s: {error}. Check host and port (that "
            "of `ray start --head`), firewalls, and that the head is running."
        ) from error


def no_room(argument: str, holds: str) -> str:
    """Message for a full object store."""
    return (
        f"{argument}: Ray's object store is full, and so is the disk that it moves objects to; it holds {holds}. Give "
        "it more memory (Ray(object_store_memory=), or --object-store-memory of `ray start`; in a container, more of "
        "/dev/shm), or more room in Ray's temporary folder."
    )


def check_sendable(record: Any) -> None:
    """Refuse a record whose parts, its data apart, cannot be pickled.

    Raises
    ------
    RecipeError
        Naming the part.
    """
    from ray import cloudpickle

    for field in fields(record) if is_dataclass(record) else ():
        part = getattr(record, field.name)
        if isinstance(part, TrainingSet):
            continue
        if is_dataclass(part) and not isinstance(part, type) and field.name == "recipe":
            check_sendable(part)
            continue
        try:
            cloudpickle.dumps(part)
        except Exception as error:
            raise RecipeError(
                f"{field.name}: workers of engine='ray' are sent it, and it cannot be pickled: {error}. Let it hold no "
                f"locks, files, connections or the like; got {type(part).__name__}."
            ) from error


def plain(error: BaseException) -> str:
    """A worker's traceback, without the colours that Ray gives it."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def shared_view(record: Any) -> Any:
    """The record with arrays in the object store's memory, marked read-only, seen as ordinary ones."""
    if isinstance(record, np.ndarray):
        return writable_view(record)
    if isinstance(record, tuple) and type(record) is tuple:
        return tuple(map(shared_view, record))
    if is_dataclass(record) and not isinstance(record, type) and type(record).__module__.startswith("gpuboost.types"):
        parts = {field.name: getattr(record, field.name) for field in fields(record) if field.init}
        changed = {name: seen for name, part in parts.items() if (seen := shared_view(part)) is not part}
        return replace(record, **changed) if changed else record
    return record
