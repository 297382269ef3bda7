"""Handles of arrays whose rows are held by the shards, and the calls that create them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import count
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import finalize

from gpuboost.backends.sharded.worker_group import Kept, Message, ObjectRef, WorkerGroup
from gpuboost.types import Gradients, Sample, Target, TrainingSet

RECORDS = (Gradients, Sample, Target)

P = ParamSpec("P")
Answer = TypeVar("Answer")


class Distributed:
    """Handle of an array of rows, of which each shard holds its part. The shards drop it when the handle is freed."""

    __slots__ = ("__weakref__", "ref", "shape", "sizes")

    def __init__(self, number: int, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        self.ref = ObjectRef(number)
        self.shape = shape
        self.sizes = sizes  # rows of each shard

    def __repr__(self) -> str:
        return f"Distributed{self.shape}"


class RemoteCalls(Protocol):
    """Calls of one method of all shards, with equal arguments. A ``Distributed`` argument becomes each shard's rows."""

    def ask(self, method: Callable[Concatenate[Any, P], Answer], *args: P.args, **kwargs: P.kwargs) -> list[Answer]:
        """Call the method and return the answers of all shards, in the order of their rows."""
        ...

    def tell(self, method: Callable[Concatenate[Any, P], Any], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call the method without waiting for an answer."""
        ...

    def keep(
        self, arrays: int, method: Callable[Concatenate[Any, P], tuple[Kept, Any]], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[int, ...]:
        """Call the method without waiting; return the numbers under which the shards keep so many of its results."""
        ...


@dataclass(slots=True)
class Driver:
    """``RemoteCalls`` that are sent immediately. It numbers the arrays and tracks which are still referenced."""

    workers: WorkerGroup
    numbers: count[int] = field(default_factory=count)
    dropped: deque[int] = field(default_factory=deque)

    def ask(self, method: Callable[Concatenate[Any, P], Answer], *args: P.args, **kwargs: P.kwargs) -> list[Answer]:
        """See ``RemoteCalls``."""
        return self.workers.ask([self.message(method, args, kwargs)] * self.workers.size)

    def tell(self, method: Callable[Concatenate[Any, P], Any], *args: P.args, **kwargs: P.kwargs) -> None:
        """See ``RemoteCalls``."""
        self.workers.tell([self.message(method, args, kwargs)] * self.workers.size)

    def keep(
        self, arrays: int, method: Callable[Concatenate[Any, P], tuple[Kept, Any]], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[int, ...]:
        """See ``RemoteCalls``."""
        numbers = self.new_numbers(arrays)
        self.workers.tell([self.message(method, args, kwargs, numbers)] * self.workers.size)
        return numbers

    def ask_and_keep(
        self, arrays: int, method: Callable[Concatenate[Any, P], tuple[Kept, Answer]], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[tuple[int, ...], list[Answer]]:
        """``keep``, with the answers of the shards."""
        numbers = self.new_numbers(arrays)
        return numbers, self.workers.ask([self.message(method, args, kwargs, numbers)] * self.workers.size)

    def ask_each(self, method: Callable[..., Answer], each: Sequence[tuple[Any, ...]]) -> list[Answer]:
        """``ask`` with other arguments for every shard."""
        return self.workers.ask(self._messages(method, each, ()))

    def ask_each_and_keep(
        self, arrays: int, method: Callable[..., tuple[Kept, Answer]], each: Sequence[tuple[Any, ...]]
    ) -> tuple[tuple[int, ...], list[Answer]]:
        """``ask_and_keep`` with other arguments for every shard."""
        numbers = self.new_numbers(arrays)
        return numbers, self.workers.ask(self._messages(method, each, numbers))

    def array(self, number: int, shape: tuple[int, ...], sizes: tuple[int, ...]) -> Distributed:
        """A handle of the shards' arrays of that number, which they drop when the handle is freed."""
        handle = Distributed(number, shape, sizes)
        finalize(handle, self.dropped.append, number)
        return handle

    def new_numbers(self, arrays: int) -> tuple[int, ...]:
        return tuple(next(self.numbers) for _ in range(arrays))

    def message(
        self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], keep: tuple[int, ...] = ()
    ) -> Message:
        """A message for all shards, with the numbers of the arrays to drop."""
        named = {name: sent(value) for name, value in kwargs.items()}
        return Message(method, tuple(map(sent, args)), named, keep, self._take_dropped())

    def _messages(
        self, method: Callable[..., Any], each: Sequence[tuple[Any, ...]], keep: tuple[int, ...]
    ) -> list[Message]:
        dropped = self._take_dropped()
        return [Message(method, tuple(map(sent, args)), {}, keep, dropped) for args in each]

    def _take_dropped(self) -> tuple[int, ...]:
        taken = []
        while self.dropped:
            taken.append(self.dropped.popleft())
        return tuple(taken)


def sent(argument: Any) -> Any:
    """The argument as it is sent to a shard: references in place of arrays that the shard holds."""
    if isinstance(argument, Distributed):
        return argument.ref
    if isinstance(argument, tuple):
        return tuple(map(sent, argument))
    if isinstance(argument, RECORDS):
        parts = {entry.name: getattr(argument, entry.name) for entry in fields(argument)}
        return replace(argument, **{name: sent(part) for name, part in parts.items() if _travels(part)})
    return argument


def _travels(part: Any) -> bool:
    return isinstance(part, Distributed) or is_dataclass(part)


def is_distributed(data: TrainingSet) -> bool:
    """True if the shards hold these rows; the rows of an eval set are held by the driver."""
    return isinstance(getattr(data.bins, "rows", None), Distributed)
