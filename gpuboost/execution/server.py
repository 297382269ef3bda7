"""The server: sends targets, receives trees, and handles stale trees and failed workers.

It is the same for every engine. It runs in the thread that called ``fit``; workers go on building while that thread
adds a tree to the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpuboost.backends.protocol import Backend
from gpuboost.errors import GpuBoostError, WorkerError
from gpuboost.execution.engine import Engine, EngineKind
from gpuboost.execution.machines import BackendFactory, refuse_gpu
from gpuboost.execution.messages import Answer, BuildTrees, Failure, Pull, Push
from gpuboost.execution.protocol import Arrival, Past, Tickets, Workers
from gpuboost.execution.rules import Rules
from gpuboost.types import Built


@contextmanager
def serve(rules: Rules, kind: EngineKind, fit: BuildTrees, backend: Backend, past: Past) -> Iterator[Workers]:
    """A server and its workers, from start to end.

    Raises:
        DeviceError: if the server's machine is a GPU and the workers are elsewhere, or the engine does not start.
        RecipeError: if the fit cannot be sent to workers.
    """
    refuse_gpu(backend, kind)
    kind.check(fit)
    engine = kind.start(fit, BackendFactory(backend), int(rules.workers))
    try:
        yield Server(rules, engine, past)
    finally:
        engine.stop()


@dataclass(frozen=True, slots=True)
class _UnderWay:
    pull: Pull
    began: float


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Trees that are done."""

    push: Push
    order: _UnderWay
    built: float


class Server:
    """See ``Workers``."""

    def __init__(self, rules: Rules, engine: Engine, past: Past) -> None:
        self._rules, self._engine, self._tickets = rules, engine, Tickets(past)
        self._idle = list(range(int(rules.workers)))
        self._under_way: dict[int, _UnderWay] = {}  # by worker
        self._waiting: list[_Waiting] = []  # in order of arrival; with bounded staleness only
        self._log: list[Built] = []
        self._failures = 0
        self._version = past.rounds
        self._answer: Answer | None = None

    def publish(self, version: int, answer: Answer) -> None:
        self._version, self._answer = version, answer
        self._hand_out()

    def receive(self) -> Arrival:
        while True:
            ready = self._next_ready()
            if ready is None:
                self._take_in(self._engine.wait())
                continue
            pull, rules = ready.order.pull, self._rules
            staleness = self._version - pull.version
            self._idle.append(ready.push.worker)
            if rules.is_too_late(staleness):
                self._note(ready, None, "dropped")
                self._hand_out()
                continue
            share = rules.share(staleness)
            self._note(ready, self._version, "applied", share)
            log, self._log = tuple(self._log), []
            leaves_at = self._version if rules.leaf_values == "server" else pull.version
            return Arrival(ready.push.structures, pull.target, pull.sample, leaves_at, share, log)

    def _hand_out(self) -> None:
        """Answer the pulls of idle workers, as many as may be under way."""
        assert self._answer is not None, "receive() before the first publish()"
        self._idle.sort()
        while self._idle and len(self._under_way) + len(self._waiting) < self._rules.in_flight:
            worker, ticket = self._idle.pop(0), self._tickets.take()
            target, sample = self._answer(ticket if self._rules.sample_at == "pull" else self._version)
            pull = self._engine.submit(worker, Pull(ticket, self._version, target, sample))
            self._under_way[worker] = _UnderWay(pull, self._engine.now())

    def _next_ready(self) -> _Waiting | None:
        """The first that may be added now."""
        for waiting in self._waiting:
            others = [other.order.pull.version for other in self._waiting if other is not waiting]
            others += [order.pull.version for order in self._under_way.values()]
            if self._rules.may_apply(self._version, others):
                self._waiting.remove(waiting)
                return waiting
        return None

    def _take_in(self, message: Push | Failure) -> None:
        order = self._under_way.get(message.worker)
        if order is None or order.pull.ticket != message.ticket:
            return  # a second answer to an order that is done
        del self._under_way[message.worker]
        if isinstance(message, Failure):
            self._make_good(message, order)
        else:
            self._waiting.append(_Waiting(message, order, order.began + message.seconds))

    def _make_good(self, failure: Failure, order: _UnderWay) -> None:
        """Warn of a failed worker and replace it."""
        pull, now = order.pull, self._engine.now()
        line = Built(pull.ticket, failure.worker, pull.version, None, 0.0, "failed", order.began, now, now)
        self._log.append(line)
        self._tickets.give_back(pull.ticket)
        if failure.expected:
            self._engine.replace(failure.worker)
            self._idle.append(failure.worker)
            self._hand_out()
            return
        self._failures += 1
        if isinstance(failure.error, GpuBoostError):
            raise failure.error  # about the data or the recipe: another worker would find the same
        what = f"worker {failure.worker} failed while it built tree {pull.ticket}"
        if self._failures > self._rules.max_failures:
            raise WorkerError(
                f"execution: {what}, and max_failures={self._rules.max_failures} of the {self._failures} failures are "
                f"made good. What it says:\n{failure.trace}"
            ) from failure.error
        if self._engine.replace(failure.worker):
            self._idle.append(failure.worker)
        elif not self._under_way and not self._idle and not self._waiting:
            raise WorkerError(f"execution: {what}, and no worker is left. What it says:\n{failure.trace}")
        warnings.warn(f"{what}; a fresh one takes its place. What it says:\n{failure.trace}", RuntimeWarning, 2)
        self._hand_out()

    def _note(self, ready: _Waiting, applied: int | None, outcome: str, share: float = 1.0) -> None:
        pull, now = ready.order.pull, self._engine.now()
        times = ready.order.began, ready.built, now
        self._log.append(Built(pull.ticket, ready.push.worker, pull.version, applied, share, outcome, *times))
