"""How the driver and its shards talk: one message to all, one answer from each, in the order of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.sharded.meeting import LocalMeeting

MakeShard: TypeAlias = Callable[[], Any]
"""Makes a ``shard.Shard``, where it is to live."""


@dataclass(frozen=True, slots=True)
class Held:
    """An array of which every shard holds its own rows, under this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Message:
    """A method of ``Shard`` and its arguments; a ``Held`` among them stands for what the shard holds.

    What the method returns first is kept under ``keep``, and only the rest is the answer. What was kept under
    ``drop`` is no longer needed.
    """

    method: str
    args: tuple[Any, ...] = ()
    keep: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()


class Crew(Protocol):
    """Shards that are there. Messages of one driver arrive in order."""

    @property
    def size(self) -> int: ...

    def ask(self, messages: Sequence[Message]) -> list[Any]:
        """One message for each shard; the answers. Raises what a shard raised, or WorkerError if one is lost."""
        ...

    def tell(self, messages: Sequence[Message]) -> None:
        """The same where nobody waits for an answer; what a shard raises comes with the next one."""
        ...

    def narrow(self, size: int) -> None:
        """Let all but the first so many shards go: there are too few rows for them."""
        ...

    def meeting(self) -> Any:
        """A ``cuda.collective.Meeting`` of the shards, which can be sent to them."""
        ...

    def stop(self) -> None:
        """Let the shards go, and what they hold."""
        ...


class LocalCrew:
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

        def one(part: int) -> None:
            try:
                answers[part] = self._shards[part].do(messages[part])
            except BaseException as error:
                failures.append(error)
                for shard in self._shards:  # those that wait for this one
                    shard.abort()

        self._team.run(one)
        if failures:
            raise failures[0]
        return answers

    def tell(self, messages: Sequence[Message]) -> None:
        self.ask(messages)

    def narrow(self, size: int) -> None:
        self._shards, self._team = self._shards[:size], ThreadPool(size)

    def meeting(self) -> LocalMeeting:
        return LocalMeeting()

    def stop(self) -> None:
        self._shards = []
