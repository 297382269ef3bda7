"""One worker, in the caller's thread: every tree is fitted to the newest gradient."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from gpuboost.execution.protocol import Fit, Workers
from gpuboost.types import Structure, Target


@dataclass(frozen=True, slots=True)
class Serial:
    """Staleness 0."""

    @contextmanager
    def open(self, fit: Fit) -> Iterator[Workers]:
        yield _OneWorker(fit)


class _OneWorker:
    __slots__ = ("_fit", "_target", "_tickets")

    def __init__(self, fit: Fit) -> None:
        self._fit, self._tickets = fit, count()
        self._target: Target | None = None

    def publish(self, target: Target) -> None:
        self._target = target

    def receive(self) -> tuple[Structure, ...]:
        assert self._target is not None, "receive() before the first publish()"
        return self._fit(self._target, next(self._tickets))
