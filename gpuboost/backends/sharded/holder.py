"""The end of the conversation that keeps arrays for the driver, whatever it computes with."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from gpuboost.backends.sharded.crew import Held, Message
from gpuboost.types import Gradients, Sample, Target


class Holder:
    """``do`` is the only method that messages come through. What it holds for the driver goes by numbers."""

    def __init__(self) -> None:
        self._held: dict[int, Any] = {}

    def do(self, message: Message) -> Any:
        """Run a method, keep what is to be kept, and answer the rest."""
        for number in message.drop:
            self._held.pop(number, None)
        found = getattr(self, message.method)(*map(self._here, message.args))
        if not message.keep:
            return found
        kept, answer = found
        self._held.update(zip(message.keep, kept, strict=True))
        return answer

    def abort(self) -> None:
        """Let go who waits for this shard."""

    def receive(self, *given: Any) -> tuple[tuple[Any, ...], None]:
        """Hold what is sent: a loss, or this shard's part of an array."""
        return given, None

    def fetch(self, held: Any) -> Any:
        """What is held, for the driver."""
        return held

    def _here(self, given: Any) -> Any:
        """The argument with what is held here in place of its numbers, in records too."""
        if isinstance(given, Held):
            return self._held[given.number]
        if isinstance(given, tuple) and any(isinstance(one, Held) for one in given):
            return tuple(map(self._here, given))
        if isinstance(given, (Gradients, Sample, Target)):
            parts = {field.name: getattr(given, field.name) for field in fields(given)}
            here = {
                name: self._here(part) for name, part in parts.items() if isinstance(part, Held) or is_dataclass(part)
            }
            return replace(given, **here)
        return given
