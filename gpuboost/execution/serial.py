"""One worker, in the caller's thread: every tree is fitted to the newest gradient."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from gpuboost.backends.protocol import Backend
from gpuboost.execution.protocol import Fit, Workers
from gpuboost.types import Structure, Target


@dataclass(frozen=True, slots=True)
class Serial:
    """Staleness 0."""

    @contextmanager
    def open(self, fit: Fit, backend: Backend) -> Iterator[Workers]:
        yield _OneWorker(fit, backend)


class _OneWorker:
    __slots__ = ("_backend", "_fit", "_target", "_tickets")

    def __init__(self, fit: Fit, backend: Backend) -> None:
        self._fit, self._backend, self._tickets = fit, backend, count()
        self._target: Target | None = None

    def publish(self, target: Target) -> None:
        self._target = target

    def receive(self) -> tuple[Structure, ...]:
        assert self._target is not None, "receive() before the first publish()"
        return self._fit(self._backend, self._target, next(self._tickets))
