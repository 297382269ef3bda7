"""Memo of one entry, keyed by object identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")


class Memo(Generic[Made]):
    """``make(of, *rest)`` is called again when ``of`` is another object, be it an equal one. The rest goes with it."""

    def __init__(self, make: Callable[..., Made]) -> None:
        self._make = make
        self._last: tuple[Any, Made] | None = None

    def of(self, of: Any, *rest: Any) -> Made:
        last = self._last  # read once: other threads may ask about others meanwhile
        if last is None or last[0] is not of:
            last = self._last = of, self._make(of, *rest)
        return last[1]
