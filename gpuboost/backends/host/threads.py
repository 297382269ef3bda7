"""A team of threads for kernels that run without the GIL.

numba's own parallel loops are not used: their default layer dies when two Python threads call them at once, and they
spin or fork where a library must not. Here the caller does part 0 itself and wakes the others through locks; an
uncontended hand-over costs some microseconds, and nothing spins. What another has not begun when the caller is done, it
does as well: where other processes keep all processors busy, that is sooner than waiting for one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias
from weakref import finalize

from gpuboost.backends.host.affinity import UNKNOWN, allowed, inherit, keep_off, let_run_on, processor

Part: TypeAlias = Callable[[int], object]
PATIENCE = 0.0005  # seconds that a member may be later than its caller before it is taken for one held up


class ThreadPool:
    """``run(work)`` calls ``work(part)`` for part 0 .. size - 1 at once and returns when all are done."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"threads: a team needs at least 1; got {size!r}.")
        self.size = size
        self._idle: list[_Members] = []

    def run(self, work: Part) -> None:
        """Raise the exception of a part, once all parts have ended."""
        if self.size == 1:
            work(0)
            return
        try:  # Taken for as long as they work: who comes meanwhile, or after an interrupt of a wait, has others.
            members = self._idle.pop()
        except IndexError:
            members = self._recruit()
        members.make_way()
        for member in members:
            member.start(work)
        failure: BaseException | None = None
        try:
            work(0)
        except BaseException as error:  # also KeyboardInterrupt: the others must be waited for
            failure = error
        for member in members:
            failure = member.finish() or failure
        members.on_time()
        self._idle.append(members)
        if failure is not None:
            raise failure

    def worth(self, size: int, per_thread: int) -> int:
        """Number of threads to wake for work of that size, if each is to have at least ``per_thread`` of it."""
        return 1 if self.size == 1 else max(1, min(self.size, size // per_thread))

    def run_parts(self, parts: int, work: Part) -> None:
        """``work(part)`` for part 0 .. parts - 1, at most ``size`` of them; one part wakes no thread."""
        if parts == 1:
            work(0)
        else:
            self.run(lambda part: work(part) if part < parts else None)

    def _recruit(self) -> _Members:
        members = _Members(self.size)
        finalize(self, _dismiss, list(members))
        return members


class _Members(list["_Member"]):
    """Those who work together with one caller at a time."""

    def __init__(self, size: int) -> None:
        processors = allowed()
        super().__init__(_Member(part, processors) for part in range(1, size))
        self._off = UNKNOWN

    def make_way(self) -> None:
        """Have them run on other processors than the caller, who seldom changes his."""
        here = processor()
        if here != self._off:
            keep_off([member.thread for member in self], here)
            self._off = here

    def on_time(self) -> None:
        """Notice who was let run anywhere because it was late."""
        if any(member.late for member in self):
            self._off = UNKNOWN


class _Member:
    """One daemon thread, asleep on a lock between two pieces of work."""

    def __init__(self, part: int, processors: frozenset[int]) -> None:
        self._part, self._processors = part, processors
        self._work: list[Part | None] = []  # one piece at most; who takes it out does it
        self._failure: BaseException | None = None
        self.late = False
        self._go, self._done = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._done.acquire()
        thread = threading.Thread(target=self._live, name=f"gpuboost-{part}", daemon=True)
        thread.start()  # returns when it runs, and has its number
        self.thread = thread.native_id or 0

    def start(self, work: Part | None) -> None:
        self._work.append(work)
        if self._go.locked():  # else it was told already, of work that was taken from it, and has not woken up since
            self._go.release()

    def finish(self) -> BaseException | None:
        """Wait for it; or, if it has not begun, as another process has its processor, do its part here."""
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
        self.late = not self._done.acquire(timeout=PATIENCE)
        if self.late:  # It had no more to do than its caller, whose processor is free now.
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
            except IndexError:  # its caller was quicker
                continue
            if work is None:
                return
            try:
                work(self._part)
            except BaseException as error:  # handed to the caller, who raises it
                self._failure = error
            work = None
            self._done.release()


def _dismiss(members: list[_Member]) -> None:
    for member in members:
        member.start(None)


def share(total: int, part: int, parts: int) -> tuple[int, int]:
    """The part'th of ``parts`` equal stretches of range(total)."""
    return total * part // parts, total * (part + 1) // parts
