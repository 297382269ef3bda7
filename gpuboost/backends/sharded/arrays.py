"""Arrays of the driver that are not there: their rows lie with the shards."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import count
from typing import Any
from weakref import finalize

from gpuboost.backends.sharded.crew import Crew, Held, Message
from gpuboost.types import Gradients, Sample, Target, TrainingSet

RECORDS = (Gradients, Sample, Target)


class Distributed:
    """An array of rows, each shard holding its own. What is no longer referred to here is dropped there."""

    __slots__ = ("__weakref__", "held", "shape", "sizes")

    def __init__(self, number: int, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        self.held = Held(number)
        self.shape = shape
        self.sizes = sizes  # rows of each shard

    def __repr__(self) -> str:
        return f"Distributed{self.shape}"


@dataclass(slots=True)
class Driver:
    """The driver's end of the conversation: numbers of arrays, and which of them are still needed."""

    crew: Crew
    numbers: count[int] = field(default_factory=count)
    dropped: deque[int] = field(default_factory=deque)

    def ask(self, method: str, *args: Any) -> list[Any]:
        """The answers of all shards to the same question, in the order of their rows."""
        return self.crew.ask([self._message(method, args, ())] * self.crew.size)

    def tell(self, method: str, *args: Any) -> None:
        self.crew.tell([self._message(method, args, ())] * self.crew.size)

    def ask_each(self, method: str, each: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The same where every shard is asked something else."""
        dropped = self._take_dropped()
        messages = [Message(method, tuple(map(sent, args)), (), dropped) for args in each]
        return self.crew.ask(messages)

    def keep(self, arrays: int, method: str, *args: Any) -> tuple[int, ...]:
        """Have the shards hold so many results of a method, of which nobody waits for an answer."""
        numbers = self._new(arrays)
        self.crew.tell([self._message(method, args, numbers)] * self.crew.size)
        return numbers

    def ask_and_keep(self, arrays: int, method: str, *args: Any) -> tuple[tuple[int, ...], list[Any]]:
        """The same with answers."""
        numbers = self._new(arrays)
        return numbers, self.crew.ask([self._message(method, args, numbers)] * self.crew.size)

    def ask_each_and_keep(
        self, arrays: int, method: str, each: Sequence[tuple[Any, ...]]
    ) -> tuple[tuple[int, ...], list[Any]]:
        """The same where every shard is asked something else."""
        numbers, dropped = self._new(arrays), self._take_dropped()
        messages = [Message(method, tuple(map(sent, args)), numbers, dropped) for args in each]
        return numbers, self.crew.ask(messages)

    def array(self, number: int, shape: tuple[int, ...], sizes: tuple[int, ...]) -> Distributed:
        """A handle on what the shards hold under that number, for as long as somebody has it."""
        made = Distributed(number, shape, sizes)
        finalize(made, self.dropped.append, number)
        return made

    def _new(self, arrays: int) -> tuple[int, ...]:
        return tuple(next(self.numbers) for _ in range(arrays))

    def _message(self, method: str, args: tuple[Any, ...], keep: tuple[int, ...]) -> Message:
        return Message(method, tuple(map(sent, args)), keep, self._take_dropped())

    def _take_dropped(self) -> tuple[int, ...]:
        taken = []
        while self.dropped:
            taken.append(self.dropped.popleft())
        return tuple(taken)


def sent(given: Any) -> Any:
    """The argument as a shard is to get it: numbers in place of arrays that it holds."""
    if isinstance(given, Distributed):
        return given.held
    if isinstance(given, tuple):
        return tuple(map(sent, given))
    if isinstance(given, RECORDS):
        parts = {one.name: getattr(given, one.name) for one in fields(given)}
        return replace(given, **{name: sent(part) for name, part in parts.items() if _travels(part)})
    return given


def _travels(part: Any) -> bool:
    return isinstance(part, Distributed) or is_dataclass(part)


def is_distributed(data: TrainingSet) -> bool:
    """Whether the shards hold these rows; those of an eval set are the driver's own."""
    return isinstance(getattr(data.bins, "rows", None), Distributed)
