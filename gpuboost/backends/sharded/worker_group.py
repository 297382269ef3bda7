"""Calls of shards by their driver: one message to every shard, one answer from each, in the order of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.sharded.rendezvous import LocalRendezvous
from gpuboost.types import Array

Kept: TypeAlias = tuple[Any, ...]
"""The results of a shard's method that stay with the shard"""


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """The number under which every shard keeps an object, such as its own rows of an array."""

    number: int


@dataclass(frozen=True, slots=True)
class Message:
    """A call of a shard's method: ``Shard.route``, say. An ``ObjectRef`` stands for what the shard keeps.

    The method is a function of a class, so it is sent by its name, and mypy knows its arguments. The results that it
    returns first are kept under ``keep``, and only the rest is the answer. What was kept under ``drop`` is no longer
    needed.
    """

    method: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    keep: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()


class AnyShard(Protocol):
    """The methods of every shard, whatever it computes with. Its class has others besides."""

    def do(self, message: Message) -> Any:
        """Carry out one call, and return its answer. All messages come through here."""
        ...

    def abort(self) -> None:
        """Wake who waits for this shard, since another one has failed."""
        ...

    def receive(self, *objects: Any) -> tuple[Kept, None]:
        """Keep what is sent: a loss, or this shard's part of an array."""
        ...

    def fetch(self, kept: Any) -> Any:
        """An object that the shard keeps, for the driver."""
        ...

    def begin(self, bias: Array) -> tuple[Kept, None]:
        """Keep scores that are all equal to the bias."""
        ...

    def show(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        """See ``Backend.scores``."""
        ...


MakeShard: TypeAlias = Callable[[], AnyShard]
"""Makes a shard, where it is to live."""


class WorkerGroup(Protocol):
    """Workers with a shard each. Messages of one driver arrive in order."""

    @property
    def size(self) -> int: ...

    def ask(self, messages: Sequence[Message]) -> list[Any]:
        """One message for each shard; the answers. Raises what a shard raised, or WorkerError if one is lost."""
        ...

    def tell(self, messages: Sequence[Message]) -> None:
        """The same without waiting for an answer; what a shard raises comes with the next one."""
        ...

    def narrow(self, size: int) -> None:
        """Let all but the first so many shards go: there are too few rows for them."""
        ...

    def rendezvous(self) -> Any:
        """A ``cuda.device.collective.Rendezvous`` of the shards, which can be sent to them."""
        ...

    def stop(self) -> None:
        """Let the shards go, and what they keep."""
        ...


class LocalWorkerGroup:
    """Shards in this process, each driven by a thread of its own."""

    def __init__(self, make: MakeShard, size: int) -> None:
        self._shards = [make() for _ in range(size)]
        self._team = ThreadPool(size)

    @property
    def size(self) -> int:
        return len(self._shards)

    def ask(self, messages: Sequence[Message]) -> list[Any]:
        answers: list[Any] = [None] * self.size
        failures: list[BaseException] = []

        def call(part: int) -> None:
            try:
                answers[part] = self._shards[part].do(messages[part])
            except BaseException as error:
                failures.append(error)
                for shard in self._shards:  # those that wait for this one
                    shard.abort()

        self._team.run(call)
        if failures:
            raise failures[0]
        return answers

    def tell(self, messages: Sequence[Message]) -> None:
        self.ask(messages)

    def narrow(self, size: int) -> None:
        self._shards, self._team = self._shards[:size], ThreadPool(size)

    def rendezvous(self) -> LocalRendezvous:
        return LocalRendezvous()

    def stop(self) -> None:
        self._shards = []
