"""Memo of one entry, keyed by object identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Memoised = TypeVar("Memoised")


class Memo(Generic[Memoised]):
    """The last value of ``make(key, *rest)``, made again if ``key`` is another object, even an equal one.

    ``rest`` is determined by ``key`` and is not compared.
    """

    def __init__(self, make: Callable[..., Memoised]) -> None:
        self._make = make
        self._entry: tuple[Any, Memoised] | None = None

    def of(self, key: Any, *rest: Any) -> Memoised:
        """``make(key, *rest)``, or its last value."""
        entry = self._entry  # read once: another thread may replace it meanwhile
        if entry is None or entry[0] is not key:
            entry = self._entry = key, self._make(key, *rest)
        return entry[1]
