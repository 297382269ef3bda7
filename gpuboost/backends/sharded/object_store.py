"""The objects that a shard keeps for the driver."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from gpuboost.backends.sharded.worker_group import Message, ObjectRef
from gpuboost.types import Gradients, Sample, Target


class ObjectStore:
    """Objects by number. The driver decides which are kept, and for how long."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def call(self, shard: Any, message: Message) -> Any:
        """Call a method of the shard, keep the results that the call names, and return the others."""
        for number in message.drop:
            self._objects.pop(number, None)
        kwargs = {name: self._resolved(value) for name, value in message.kwargs.items()}
        result = message.method(shard, *map(self._resolved, message.args), **kwargs)
        if not message.keep:
            return result
        kept, answer = result
        self._objects.update(zip(message.keep, kept, strict=True))
        return answer

    def _resolved(self, argument: Any) -> Any:
        """The argument with objects in place of their references, also within records."""
        if isinstance(argument, ObjectRef):
            return self._objects[argument.number]
        if isinstance(argument, tuple) and any(isinstance(entry, ObjectRef) for entry in argument):
            return tuple(map(self._resolved, argument))
        if isinstance(argument, (Gradients, Sample, Target)):
            parts = {field.name: getattr(argument, field.name) for field in fields(argument)}
            resolved = {
                name: self._resolved(part)
                for name, part in parts.items()
                if isinstance(part, ObjectRef) or is_dataclass(part)
            }
            return replace(argument, **resolved)
        return argument
