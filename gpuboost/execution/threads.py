"""Workers as threads of this process: nothing is sent, nothing is copied, and kernels run without the GIL."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter

from gpuboost.backends.protocol import Backend
from gpuboost.execution.messages import Failure, Fit, Machine, Pull, Push


@dataclass(frozen=True, slots=True)
class Threads:
    """The engine "threads". Each worker is one thread; what they compute with holds one more of its own for none."""

    def check(self, fit: Fit) -> None:
        """Whatever can be called can be called by a thread."""

    def start(self, fit: Fit, machine: Machine, workers: int) -> ThreadEngine:
        return ThreadEngine(fit, machine(), workers)


class ThreadEngine:
    """The workers share one machine, which any number of threads may use at once, and so what it knows of the data."""

    def __init__(self, fit: Fit, machine: Backend, workers: int) -> None:
        self._fit, self._machine = fit, machine
        self._start = perf_counter()
        self._reports: SimpleQueue[Push | Failure] = SimpleQueue()
        self._workers = [self._hire(worker) for worker in range(workers)]

    def submit(self, worker: int, pull: Pull) -> None:
        self._workers[worker].orders.put(pull)

    def wait(self) -> Push | Failure:
        return self._reports.get()

    def replace(self, worker: int) -> bool:
        self._workers[worker].stop()
        self._workers[worker] = self._hire(worker)
        return True

    def now(self) -> float:
        return perf_counter() - self._start

    def stop(self) -> None:
        """Waits for the trees that are being built: a thread cannot be interrupted."""
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.join()

    def _hire(self, worker: int) -> _Worker:
        return _Worker(worker, self._fit, self._machine, self._reports)


class _Worker:
    """One daemon thread, asleep until there is an order."""

    def __init__(self, number: int, fit: Fit, machine: Backend, reports: SimpleQueue[Push | Failure]) -> None:
        self.orders: SimpleQueue[Pull | None] = SimpleQueue()
        live = (number, fit, machine, self.orders, reports)
        self._thread = threading.Thread(target=_live, args=live, name=f"gpuboost worker {number}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.orders.put(None)

    def join(self) -> None:
        self._thread.join()


def _live(
    number: int, fit: Fit, machine: Backend, orders: SimpleQueue[Pull | None], reports: SimpleQueue[Push | Failure]
) -> None:
    while (pull := orders.get()) is not None:
        began = perf_counter()
        try:
            structures = fit(machine, pull.target, pull.ticket)
        except BaseException as error:  # also SystemExit: whatever ends a worker is reported
            reports.put(Failure(number, pull.ticket, traceback.format_exc(), error))
            return
        reports.put(Push(number, pull.ticket, structures, perf_counter() - began))
        del structures, pull  # not to be kept alive by a worker that has nothing to do
