"""Memos of one entry: keyed by object identity, or by a method of the entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

Memoised = TypeVar("Memoised")


class Serves(Protocol):
    """A value that was made of some arguments, and may serve for others."""

    def serves(self, *given: Any) -> bool:
        """True if ``make(*given)`` would be an equal value."""
        ...


Serving = TypeVar("Serving", bound=Serves)


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


class ServingMemo(Generic[Serving]):
    """The last value of ``make(*given)``, made again unless it ``serves`` what is given."""

    def __init__(self) -> None:
        self._last: Serving | None = None

    def of(self, make: Callable[..., Serving], *given: Any) -> Serving:
        """``make(*given)``, or its last value."""
        last = self._last
        if last is None or not last.serves(*given):
            last = self._last = make(*given)
        return last
