"""CPU affinity of the thread pool: its threads stay off the processor of the thread that wakes them and also works.

Linux wakes a thread where it last ran, or beside the thread that woke it, unless it sees an idle processor. In a
virtual machine it mistakes a sleeping processor for one that the host has taken away, so both threads may share a
processor for good while another is idle: every piece of work then takes as long as on one thread. No thread is bound
to a single processor, and if the processor of a thread cannot be found out, nothing is done.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

UNKNOWN = -1
_here = threading.local()


def _teller() -> Callable[[], int]:
    """``sched_getcpu`` of glibc or musl; it takes less than a microsecond, and is called without releasing the GIL."""
    if sys.platform == "linux":
        try:
            return ctypes.PyDLL(None).sched_getcpu
        except (OSError, AttributeError):  # another C library
            pass
    return lambda: UNKNOWN


processor: Callable[[], int] = _teller()
"""The number of the processor that the caller is on just now, or UNKNOWN."""


def allowed() -> frozenset[int]:
    """Processors that the calling thread may run on, apart from ``keep_off``; empty if they are not known."""
    processors: frozenset[int] | None = getattr(_here, "allowed", None)
    if processors is not None:
        return processors
    return frozenset(os.sched_getaffinity(0)) if sys.platform == "linux" else frozenset()


def inherit(processors: frozenset[int]) -> None:
    """Set the value of ``allowed`` for the calling thread, whose affinity ``keep_off`` will change."""
    _here.allowed = processors


def keep_off(threads: Sequence[int], taken: int) -> None:
    """Let these threads (native numbers) run on the caller's processors other than ``taken``, if they suffice."""
    if sys.platform != "linux" or taken == UNKNOWN:
        return
    free = allowed() - {taken}
    if len(free) >= len(threads):  # else some have to share one with the caller
        let_run_on(threads, free)


def let_run_on(threads: Sequence[int], processors: frozenset[int]) -> None:
    """Set the affinity of threads, if the system allows it; some sandboxes do not."""
    if sys.platform == "linux" and processors:
        with suppress(OSError):
            for thread in threads:
                os.sched_setaffinity(thread, processors)
