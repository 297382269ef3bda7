"""Remote calls of shards: one message to every shard, one answer from each, in the order of their rows."""

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
    """A call of a shard's method, such as ``Shard.route``. An ``ObjectRef`` refers to an object that the shard keeps.

    The method is a function of a class, so it is sent by its name, and mypy checks its arguments. Its first results are
    kept under the numbers ``keep``, and only the others are the answer. Objects under ``drop`` are no longer needed.
    """

    method: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    keep: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()


class AnyShard(Protocol):
    """The methods that every kind of shard has."""

    def do(self, message: Message) -> Any:
        """Execute one call and return its answer. The entry point of all messages."""
        ...

    def abort(self) -> None:
        """Wake the threads that wait for this shard, since another one has failed."""
        ...

    def receive(self, *objects: Any) -> tuple[Kept, None]:
        """Keep an object of the driver: a loss, or this shard's part of an array."""
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
"""Makes a shard, in its own process or thread."""


class WorkerGroup(Protocol):
    """Workers, each with one shard. Messages of one driver arrive in order."""

    @property
    def size(self) -> int: ...

    def ask(self, messages: Sequence[Message]) -> list[Any]:
        """Send one message to each shard; return the answers. Raises a shard's error, or WorkerError if one is lost."""
        ...

    def tell(self, messages: Sequence[Message]) -> None:
        """Send without waiting for an answer; a shard's error is raised with the next answer."""
        ...

    def keep_first(self, size: int) -> None:
        """Release the shards from this number on: there are too few rows for them."""
        ...

    def rendezvous(self) -> Any:
        """A ``cuda.device.collective.Rendezvous`` of the shards, which can be pickled."""
        ...

    def stop(self) -> None:
        """Release the shards and the objects that they keep."""
        ...


class LocalWorkerGroup:
    """Shards in this process, each driven by a thread of its own."""

    def __init__(self, make: MakeShard, size: int) -> None:
        self._shards = [make() for _ in range(size)]
        self._pool = ThreadPool(size)

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

        self._pool.run(call)
        if failures:
            raise failures[0]
        return answers

    def tell(self, messages: Sequence[Message]) -> None:
        self.ask(messages)

    def keep_first(self, size: int) -> None:
        self._shards, self._pool = self._shards[:size], ThreadPool(size)

    def rendezvous(self) -> LocalRendezvous:
        return LocalRendezvous()

    def stop(self) -> None:
        self._shards = []
