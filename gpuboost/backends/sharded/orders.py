"""The driver's end of a conversation with shards that decide for themselves: orders, and what stands for results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpuboost.backends.sharded.arrays import Distributed, Driver
from gpuboost.backends.sharded.crew import Message
from gpuboost.types import Tree


@dataclass(slots=True)
class Orders(Driver):
    """The same for all shards; those of a round go out together when it ends, or somebody waits for an answer."""

    queue: list[Message] = field(default_factory=list)
    is_open: bool = False

    def ask(self, method: str, *args: Any) -> list[Any]:
        self.queue.append(self._message(method, args, ()))
        messages, self.queue = tuple(self.queue), []
        return self.crew.ask([Message("run", (messages,))] * self.crew.size)

    def tell(self, method: str, *args: Any) -> None:
        self._add(self._message(method, args, ()))

    def keep(self, arrays: int, method: str, *args: Any) -> tuple[int, ...]:
        numbers = self._new(arrays)
        self._add(self._message(method, args, numbers))
        return numbers

    def send(self) -> None:
        """What was put off."""
        messages, self.queue = tuple(self.queue), []
        if messages:
            self.crew.tell([Message("run", (messages,))] * self.crew.size)

    def _add(self, message: Message) -> None:
        self.queue.append(message)
        if not self.is_open:
            self.send()


@dataclass(frozen=True, slots=True, eq=False)
class HeldStructure:
    """Stands for a Structure."""

    held: Distributed
    output: int
    version: int


@dataclass(slots=True, eq=False)
class HeldTree:
    """Stands for a Tree, in the loop and in ``Progress.trees``."""

    held: Distributed | None
    output: int
    version: int
    host: Tree | None = None

    @property
    def fetched(self) -> Tree:
        """What it stands for, when it has been fetched."""
        assert self.host is not None
        return self.host
