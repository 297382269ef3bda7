"""Workers as threads of this process: nothing is sent, and kernels run without the GIL, or on a stream for each."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import ClassVar, TypeAlias

from gpuboost.backends.workers import WorkerSlot
from gpuboost.execution.machines import BackendFactory
from gpuboost.execution.messages import BuildTrees, Failure, Pull, Push
from gpuboost.execution.timeout import timeout_message
from gpuboost.types import Structure

Reports: TypeAlias = "SimpleQueue[tuple[SimpleQueue[Pull | None], Push | Failure]]"
"""Reports of workers, each with the queue of its orders, by which replaced workers are recognised."""


@dataclass(frozen=True, slots=True)
class Threads:
    """The engine "threads". Each worker is one thread and computes with that thread alone.

    ``timeout``: seconds without an answer after which a worker counts as lost. None: never.
    """

    timeout: float | None = None
    in_process: ClassVar[bool] = True

    def check(self, fit: BuildTrees) -> None:
        """Accept every fit: a thread can call any function."""

    def start(self, fit: BuildTrees, machine: BackendFactory, workers: int) -> ThreadEngine:
        return ThreadEngine(fit, machine.slots(), workers, self.timeout)

    def with_timeout(self, seconds: float | None) -> Threads:
        return Threads(seconds)


class ThreadEngine:
    """Each worker has a slot: on a host all of one backend, on a GPU each with a stream of its own.

    A worker that exceeds the timeout is abandoned, as a thread cannot be interrupted; its late results are dropped.
    """

    def __init__(
        self, fit: BuildTrees, slots: Callable[[], WorkerSlot], workers: int, timeout: float | None = None
    ) -> None:
        self._fit, self._slots, self._timeout = fit, slots, timeout
        self._start = perf_counter()
        self._reports: Reports = SimpleQueue()
        slots_of_workers = [slots() for _ in range(workers)]  # all of them, before the first thread begins
        self._workers = [_Worker(worker, fit, slot, self._reports) for worker, slot in enumerate(slots_of_workers)]
        self._ordered: dict[int, tuple[float, int]] = {}  # of workers that build: since when, and the ticket

    def submit(self, worker: int, pull: Pull) -> Pull:
        target, sample = self._workers[worker].slot.copy_target(pull.target, pull.sample)
        copied = replace(pull, target=target, sample=sample)
        self._ordered[worker] = self.now(), pull.ticket
        self._workers[worker].orders.put(copied)
        return copied

    def wait(self) -> Push | Failure:
        while True:
            try:
                orders, report = self._reports.get(timeout=self._left())
            except Empty:
                return self._left_to_itself()
            ordered = self._ordered.get(report.worker)
            is_awaited = ordered is not None and ordered[1] == report.ticket
            if is_awaited and orders is self._workers[report.worker].orders:
                del self._ordered[report.worker]
                return report

    def replace(self, worker: int) -> bool:
        self._workers[worker].stop()
        self._workers[worker].slot.close()
        self._workers[worker] = _Worker(worker, self._fit, self._slots(), self._reports)
        return True

    def now(self) -> float:
        return perf_counter() - self._start

    def stop(self) -> None:
        """Wait for the trees that are being built, up to the timeout: a thread cannot be interrupted."""
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.join(self._timeout)
        for worker in self._workers:
            with suppress(Exception):  # what ended the fit is the one to see
                worker.slot.close()

    def _left(self) -> float | None:
        """Seconds until the first worker's timeout."""
        if self._timeout is None or not self._ordered:
            return None
        first = min(since for since, _ in self._ordered.values())
        return max(0.0, first + self._timeout - self.now())

    def _left_to_itself(self) -> Failure:
        """Failure of the worker that has not answered for the longest time."""
        worker = min(self._ordered, key=lambda number: self._ordered[number])
        _, ticket = self._ordered.pop(worker)
        why = f"{timeout_message(worker, self._timeout)} Its thread cannot be ended, and is left to itself."
        return Failure(worker, ticket, why)


class _Worker:
    """One daemon thread, asleep until there is an order."""

    def __init__(self, number: int, fit: BuildTrees, slot: WorkerSlot, reports: Reports) -> None:
        self.orders: SimpleQueue[Pull | None] = SimpleQueue()
        self.slot = slot
        live = (number, fit, slot, self.orders, reports)
        self._thread = threading.Thread(target=_live, args=live, name=f"gpuboost worker {number}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.orders.put(None)

    def join(self, timeout: float | None) -> None:
        self._thread.join(timeout)


def _live(number: int, fit: BuildTrees, slot: WorkerSlot, orders: SimpleQueue[Pull | None], reports: Reports) -> None:
    while (pull := orders.get()) is not None:
        began = perf_counter()
        try:
            structures = _built(fit, slot, pull)
        except BaseException as error:  # also SystemExit: every end of a worker is reported
            reports.put((orders, Failure(number, pull.ticket, traceback.format_exc(), error)))
            return
        reports.put((orders, Push(number, pull.ticket, structures, perf_counter() - began)))
        del structures, pull  # not to be kept alive by a worker that has nothing to do


def _built(fit: BuildTrees, slot: WorkerSlot, pull: Pull) -> tuple[Structure, ...]:
    return slot.build(lambda machine: fit(machine, pull.target, pull.ticket))
