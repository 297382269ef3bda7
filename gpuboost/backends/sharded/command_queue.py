"""Calls of shards that decide for themselves, sent a round at a time, and handles on what they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from gpuboost.backends.sharded.arrays import Driver
from gpuboost.backends.sharded.worker_group import Kept, Message
from gpuboost.types import Tree

P = ParamSpec("P")
Answer = TypeVar("Answer")


@dataclass(slots=True)
class CommandQueue:
    """``RemoteCalls`` in one message: those of a round are sent when it ends, or when an answer is waited for.

    ``run``: the method of the shards that carries out several messages.
    """

    driver: Driver
    run: Callable[..., Any]
    queue: list[Message] = field(default_factory=list)
    is_open: bool = False

    def ask(self, method: Callable[Concatenate[Any, P], Answer], *args: P.args, **kwargs: P.kwargs) -> list[Answer]:
        """See ``RemoteCalls``."""
        self.queue.append(self.driver.message(method, args, kwargs))
        return self.driver.workers.ask(self._taken())

    def tell(self, method: Callable[Concatenate[Any, P], Any], *args: P.args, **kwargs: P.kwargs) -> None:
        """See ``RemoteCalls``."""
        self._add(self.driver.message(method, args, kwargs))

    def keep(
        self, arrays: int, method: Callable[Concatenate[Any, P], tuple[Kept, Any]], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[int, ...]:
        """See ``RemoteCalls``."""
        numbers = self.driver.new_numbers(arrays)
        self._add(self.driver.message(method, args, kwargs, numbers))
        return numbers

    def send(self) -> None:
        """Send what is in the queue."""
        if self.queue:
            self.driver.workers.tell(self._taken())

    def _add(self, message: Message) -> None:
        self.queue.append(message)
        if not self.is_open:
            self.send()

    def _taken(self) -> list[Message]:
        """All of the queue as one message for each shard."""
        messages, self.queue = tuple(self.queue), []
        return [Message(self.run, (messages,))] * self.driver.workers.size


@dataclass(frozen=True, slots=True, eq=False)
class RemoteStructure:
    """Stands for a Structure."""

    ref: Any  # Distributed
    output: int
    version: int


@dataclass(slots=True, eq=False)
class RemoteTree:
    """Stands for a Tree, in the loop and in ``Progress.trees``."""

    ref: Any  # Distributed, or None once it has been fetched
    output: int
    version: int
    host: Tree | None = None

    @property
    def fetched(self) -> Tree:
        """What it stands for, when it has been fetched."""
        assert self.host is not None
        return self.host
