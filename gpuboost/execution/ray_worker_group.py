"""Shards as actors of a Ray cluster: each holds its rows, and answers the driver through the object store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuboost._version import __version__
from gpuboost.backends.sharded.shard_data import ShardData, ShardSource
from gpuboost.backends.sharded.worker_group import MakeShard, Message
from gpuboost.errors import DeviceError, GpuBoostError, WorkerError
from gpuboost.execution.ray_connection import Connection, no_room, plain, shared_view
from gpuboost.execution.ray_rendezvous import RayRendezvous, RendezvousActor

if TYPE_CHECKING:
    from gpuboost.execution.ray_cluster import Ray

KEPT = ("y", "weight", "multiplicity", "query_start")  # of ShardData
NO_ROOM = no_room("execution", "each shard's rows until they are binned, and histograms")
TOLD = 256  # messages without a wait, before the next one is waited for


class ShardLostError(WorkerError):
    """A shard is no longer there, and with it its rows."""


class ShardActor:
    """The actor."""

    def __init__(self, make: MakeShard) -> None:
        self._shard = make()

    def version(self) -> str:
        return __version__

    def do(self, message: Message) -> Any:
        return self._shard.do(_received(message))


def _received(message: Message) -> Message:
    return replace(message, args=tuple(map(_usable, message.args)))


def _usable(argument: Any) -> Any:
    """The argument with arrays in the object store's memory seen as ordinary ones; nothing of it outlives a source."""
    if isinstance(argument, ShardData | partial):  # a ShardSource
        return partial(_with_own_labels, argument)
    if isinstance(argument, tuple) and argument and isinstance(argument[0], Message):
        return tuple(map(_received, argument))
    return shared_view(argument)


def _with_own_labels(source: ShardSource) -> ShardData:
    """The rows, of which nothing that is kept lies in the object store's memory; features are binned and forgotten."""
    data = source()
    copies = {name: np.array(array) for name in KEPT if (array := getattr(data, name)) is not None}
    return replace(data, x=shared_view(data.x), **copies)


class RayWorkerGroup:
    """See ``sharded.worker_group.WorkerGroup``. gpus: that each shard has for itself."""

    def __init__(self, kind: Ray, size: int, make: MakeShard, gpus: int = 0) -> None:
        self._connection = Connection(kind, size * kind.cpus_per_worker)
        self._ray = self._connection.ray
        self._told: list[Any] = []
        self._actors: list[Any] = []
        self._rendezvous: list[Any] = []
        try:
            self._connection.check_gpus(size * gpus)
            self._actors = self._connection.start_actors(ShardActor, size, make, gpus=gpus)
            self._connection.greet(self._actors)
        except BaseException:
            self.stop()
            raise

    @property
    def size(self) -> int:
        return len(self._actors)

    def ask(self, messages: Sequence[Message]) -> list[Any]:
        asked = self._send(messages)
        told, self._told = self._told, []
        return self._received([*told, *asked])[len(told) :]

    def tell(self, messages: Sequence[Message]) -> None:
        self._told = [*self._told, *self._send(messages)]
        if len(self._told) >= TOLD:
            told, self._told = self._told, []
            self._received(told)

    def keep_first(self, size: int) -> None:
        self._connection.dismiss(self._actors[size:])
        self._actors = self._actors[:size]

    def rendezvous(self) -> RayRendezvous:
        actor = self._ray.remote(num_cpus=0, max_restarts=0)(RendezvousActor).remote()
        self._rendezvous.append(actor)
        return RayRendezvous(actor)

    def stop(self) -> None:
        self._connection.dismiss([*self._actors, *self._rendezvous])
        self._actors, self._rendezvous, self._told = [], [], []
        self._connection.close()

    def _send(self, messages: Sequence[Message]) -> list[Any]:
        try:
            return [actor.do.remote(message) for actor, message in zip(self._actors, messages, strict=True)]
        except self._connection.full as error:
            raise DeviceError(NO_ROOM) from error

    def _received(self, answers: list[Any]) -> list[Any]:
        errors, timeout = self._ray.exceptions, self._connection.kind.patience
        try:
            received: list[Any] = self._ray.get(answers, timeout=timeout)
        except self._connection.full as error:  # here, or with a shard
            raise DeviceError(NO_ROOM) from error
        except errors.GetTimeoutError as error:
            raise ShardLostError(
                f"execution: a shard gave no answer for {timeout:g} s, and counts as lost, with its rows. If what it "
                "does takes that long, as reading its files may, raise gb.Ray(patience=)."
            ) from error
        except errors.RayTaskError as error:
            if isinstance(error.cause, GpuBoostError):
                raise error.cause from error
            raise WorkerError(f"execution: a shard failed:\n{plain(error)}") from error
        except errors.RayError as error:
            raise ShardLostError(f"execution: a shard was lost, and with it its rows: {error}") from error
        return received
