"""Queue of calls to shards that need no decision of the driver, sent once a round, and handles of their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from gpuboost.backends.sharded.arrays import Driver
from gpuboost.backends.sharded.worker_group import Kept, Message
from gpuboost.types import FittedTree

P = ParamSpec("P")
Answer = TypeVar("Answer")


@dataclass(slots=True)
class CommandQueue:
    """``RemoteCalls`` in one message, which is sent at the end of a round or when an answer is needed.

    ``run``: the method of the shards that executes several messages.
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
        """Send the calls in the queue."""
        if self.queue:
            self.driver.workers.tell(self._taken())

    def _add(self, message: Message) -> None:
        self.queue.append(message)
        if not self.is_open:
            self.send()

    def _taken(self) -> list[Message]:
        """The calls in the queue as one message for each shard."""
        messages, self.queue = tuple(self.queue), []
        return [Message(self.run, (messages,))] * self.driver.workers.size


@dataclass(frozen=True, slots=True, eq=False)
class RemoteStructure:
    """Handle of a ``Structure`` that the shards hold."""

    ref: Any  # Distributed
    output: int
    version: int
    trees: list[RemoteTree] = field(default_factory=list)  # those made of it, and of what shares its nodes


@dataclass(slots=True, eq=False)
class RemoteTree:
    """Handle of a ``FittedTree`` that the shards hold, in the loop and in ``Progress.trees``."""

    ref: Any  # Distributed, or None once it has been fetched
    output: int
    version: int
    host: FittedTree | None = None
    together: list[RemoteTree] = field(default_factory=list)  # fetched in one message, so that they share their nodes

    @property
    def fetched(self) -> FittedTree:
        """The tree, once it has been collected."""
        assert self.host is not None
        return self.host
