"""Fits on the CPU at the same time: each in a thread, with a share of the processors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gpuboost.records import dataclass
from gpuboost.watch.cancellation import Cancellation

T = TypeVar("T")

LEAST_CELLS = 100_000
"""Values of X below which a fit is in Python most of the time, where threads wait for each other, unless its rounds are
repeated by a kernel."""

MOST_ROWS = 1 << 18
"""Rows above which a fit keeps all processors busy, and needs memory for itself."""


@dataclass(frozen=True, slots=True)
class Share:
    """The processors of one of several fits, and the event that stops it when another one fails."""

    n_jobs: int
    stopped: threading.Event | None = None  # None: no other fit runs

    @property
    def callbacks(self) -> tuple[Cancellation, ...]:
        """The watchers that end the fit once the event is set."""
        return () if self.stopped is None else (Cancellation(self.stopped),)


def each_with_a_share(works: Sequence[Callable[[Share], T]], n_jobs: int, workers: int) -> list[T]:
    """The results of fits, so many at the same time, with even shares of the threads; of one worker, in turn.

    An error of one fit, or an interrupt, stops the others.
    """
    workers = min(workers, len(works))
    if workers < 2:
        return [work(Share(n_jobs)) for work in works]
    stopped = threading.Event()

    def run(work: Callable[[Share], T]) -> T:
        try:
            return work(Share(max(n_jobs // workers, 1), stopped))
        except BaseException:
            stopped.set()
            raise

    pool = ThreadPoolExecutor(workers, thread_name_prefix="gpuboost-fit")
    try:
        begun = [pool.submit(run, work) for work in works]
        return [future.result() for future in begun]
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)
