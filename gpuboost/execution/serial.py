"""One worker, in the caller's thread: every tree is fitted to the newest gradient."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from gpuboost.backends.protocol import Backend
from gpuboost.execution.messages import Answer, BuildTrees
from gpuboost.execution.protocol import Arrival, Past, Tickets, Workers
from gpuboost.records import dataclass
from gpuboost.types import Built


@dataclass(frozen=True, slots=True)
class Serial:
    """Staleness 0."""

    @contextmanager
    def open(self, fit: BuildTrees, backend: Backend, past: Past) -> Iterator[Workers]:
        yield _OneWorker(fit, backend, past)


class _OneWorker:
    __slots__ = ("_answer", "_backend", "_fit", "_start", "_tickets", "_version")

    def __init__(self, fit: BuildTrees, backend: Backend, past: Past) -> None:
        self._fit, self._backend, self._tickets = fit, backend, Tickets(past)
        self._answer: Answer | None = None
        self._version = past.rounds
        self._start = perf_counter()

    def publish(self, version: int, answer: Answer) -> None:
        for _ in range(self._version + 1, version):  # rounds that the machine repeated since the last one
            self._tickets.take()
        self._version, self._answer = version, answer

    def receive(self) -> Arrival:
        answer, self._answer = self._answer, None  # it holds the gradients, which the next round has no room for
        assert answer is not None, "receive() before the first publish()"
        ticket, version, began = self._tickets.take(), self._version, perf_counter() - self._start
        target, sample = answer(ticket)
        structures = self._fit(self._backend, target, ticket)
        now = perf_counter() - self._start
        line = Built(ticket, 0, version, version, began=began, built=now, ended=now)
        return Arrival(structures, target, sample, version, 1.0, (line,))
