"""A pool of threads for kernels that run without the GIL.

numba's own parallel loops are not used: their default layer aborts when two Python threads call them at once, and they
spin or fork where a library must not. Here the caller runs part 0 itself and wakes the workers through locks; an
uncontended hand-over costs some microseconds, and nothing spins. When the caller is done, it also runs the parts that
their workers have not begun: with all processors busy, that is faster than to wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias
from weakref import finalize

from gpuboost.backends.host.affinity import UNKNOWN, allowed, inherit, keep_off, let_run_on, processor

Task: TypeAlias = Callable[[int], object]
SMALL = 16_384  # rows below which waking another thread costs more than it saves
LATE_AFTER = 0.0005  # seconds after its caller's end until a worker counts as late


class ThreadPool:
    """``run(work)`` calls ``work(part)`` for part 0 .. size - 1 at once and returns when all are done."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"threads: a team needs at least 1; got {size!r}.")
        self.size = size
        self._idle: list[_WorkerGroup] = []

    def run(self, work: Task, parts: int | None = None) -> None:
        """Raise the exception of a part, once all parts have ended. parts: number of parts, 2 .. size; None: size."""
        if self.size == 1:
            work(0)
            return
        try:  # taken while they work: another caller, or one after an interrupted wait, gets other workers
            workers = self._idle.pop()
        except IndexError:
            workers = self._start_workers()
        workers.set_affinity()
        awake = workers if parts is None else workers[: parts - 1]
        for worker in awake:
            worker.start(work)
        failure: BaseException | None = None
        try:
            work(0)
        except BaseException as error:  # also KeyboardInterrupt: the others must be waited for
            failure = error
        for worker in awake:
            failure = worker.finish() or failure
        workers.check_lateness()
        self._idle.append(workers)
        if failure is not None:
            raise failure

    def n_parts(self, size: int, per_thread: int) -> int:
        """Number of threads for work of that size, such that each has at least ``per_thread`` of it."""
        return 1 if self.size == 1 else max(1, min(self.size, size // per_thread))

    def run_parts(self, parts: int, work: Task) -> None:
        """Call ``work(part)`` for part 0 .. parts - 1, parts <= ``size``; one part wakes no thread."""
        if parts == 1:
            work(0)
        else:
            self.run(work, parts)

    def _start_workers(self) -> _WorkerGroup:
        workers = _WorkerGroup(self.size)
        finalize(self, _stop_workers, list(workers))
        return workers


class RowShares:
    """Work on stretches of rows, on all threads of the pool if there are many rows."""

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool

    def by_rows(self, n_rows: int, work: Callable[[int, int], object], times: int = 1) -> None:
        """Call work(begin, end) on stretches of the rows, in parallel from ``times`` SMALL rows on."""
        if n_rows < times * SMALL or self._pool.size == 1:
            work(0, n_rows)
        else:
            self._pool.run(lambda part: work(*share(n_rows, part, self._pool.size)))

    def in_parts(self, n_rows: int, work: Callable[[int, int, int], object], times: int = 1) -> None:
        """``by_rows`` for work(part, begin, end), part below the number of threads."""
        if n_rows < times * SMALL or self._pool.size == 1:
            work(0, 0, n_rows)
        else:
            self._pool.run(lambda part: work(part, *share(n_rows, part, self._pool.size)))


class _WorkerGroup(list["_Worker"]):
    """The workers of one caller at a time."""

    def __init__(self, size: int) -> None:
        processors = allowed()
        super().__init__(_Worker(part, processors) for part in range(1, size))
        self._off = UNKNOWN

    def set_affinity(self) -> None:
        """Keep the workers off the caller's processor, which seldom changes."""
        here = processor()
        if here != self._off:
            keep_off([worker.thread for worker in self], here)
            self._off = here

    def check_lateness(self) -> None:
        """Discard the affinity if a worker was late, so that it may run on any processor."""
        if any(worker.late for worker in self):
            self._off = UNKNOWN


class _Worker:
    """One daemon thread, asleep on a lock between two pieces of work."""

    def __init__(self, part: int, processors: frozenset[int]) -> None:
        self._part, self._processors = part, processors
        self._work: list[Task | None] = []  # one piece at most, run by the thread that takes it out
        self._failure: BaseException | None = None
        self.late = False
        self._go, self._done = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._done.acquire()
        thread = threading.Thread(target=self._live, name=f"gpuboost-{part}", daemon=True)
        thread.start()  # returns when it runs, and has its number
        self.thread = thread.native_id or 0

    def start(self, work: Task | None) -> None:
        self._work.append(work)
        if self._go.locked():  # else it was released for earlier work that the caller took, and has not woken up since
            self._go.release()

    def finish(self) -> BaseException | None:
        """Wait for the worker; if it has not begun, because another process has its processor, run its part here."""
        self.late = False
        try:
            work = self._work.pop()
        except IndexError:
            return self._wait()
        try:
            if work is not None:
                work(self._part)
        except BaseException as error:
            return error
        return None

    def _wait(self) -> BaseException | None:
        self.late = not self._done.acquire(timeout=LATE_AFTER)
        if self.late:  # its part is no longer than its caller's, whose processor is free now
            let_run_on([self.thread], self._processors)
            self._done.acquire()
        failure, self._failure = self._failure, None
        return failure

    def _live(self) -> None:
        inherit(self._processors)
        while True:
            self._go.acquire()
            try:
                work = self._work.pop()
            except IndexError:  # its caller took the work
                continue
            if work is None:
                return
            try:
                work(self._part)
            except BaseException as error:  # handed to the caller, who raises it
                self._failure = error
            work = None
            self._done.release()


def _stop_workers(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.start(None)


def share(total: int, part: int, parts: int) -> tuple[int, int]:
    """The part'th of ``parts`` equal stretches of range(total)."""
    return total * part // parts, total * (part + 1) // parts
