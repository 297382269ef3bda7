"""Streams of the emulated device: queues that know nothing of each other but by events.

A stream runs when it must: when the host waits for it, or another stream that runs waits for an event of it; or, where
it is in a hurry, as soon as something is queued. Either way a stream that should have waited for another one, and did
not, sees memory as it was before, or after, and a test sees other bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from emulator.arrays import FakeCudaError
from emulator.memory import Allocation

if TYPE_CHECKING:
    from emulator.fake_cupy import FakeCupy

Work = Callable[[], None]

FIRST_HANDLE = 7


class Event:
    """A place in a stream's queue. ``cp.cuda.Event``, of which there is no timing here."""

    def __init__(self) -> None:
        self._stream: Stream | None = None
        self._place = 0

    def record(self, stream: Stream) -> None:
        if stream.recording is not None:
            raise FakeCudaError("cudaErrorStreamCaptureUnsupported: an event of a capture, which is none of the stream")
        self._stream, self._place = stream, stream.queued

    def synchronize(self) -> None:
        """The host waits for it."""
        if self._stream is not None and self._stream.recording is not None:
            raise FakeCudaError("cudaErrorStreamCaptureUnsupported: Event.synchronize during a capture")
        self.reach()

    def reach(self) -> None:
        """Run its stream up to it. One that was never recorded is nothing to wait for, as in CUDA."""
        if self._stream is not None:
            self._stream.run(self._place)


class Stream:
    """``cp.cuda.Stream``. Number 0 is the legacy stream, which nothing here waits for either."""

    def __init__(self, cp: FakeCupy, number: int, hurries: bool, non_blocking: bool = False) -> None:
        self._cp, self._non_blocking, self._hurries = cp, non_blocking, hurries
        self.ptr = FIRST_HANDLE + number
        self.recording: list[Node] | None = None
        self.queued, self._done = 0, 0
        self._queue: deque[Work] = deque()

    def __enter__(self) -> Stream:
        self._cp.current.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._cp.current.pop()

    def enqueue(self, work: Work) -> None:
        self._queue.append(work)
        self.queued += 1
        if self._hurries:
            self.run()

    def run(self, place: int | None = None) -> None:
        """All that is queued, or what was when so many had been. By one thread of the host at a time."""
        with self._cp.running:
            place = self.queued if place is None else place
            while self._done < place:
                work = self._queue.popleft()
                self._done += 1
                work()

    def synchronize(self) -> None:
        self._cp.synchronise(self, "Stream.synchronize")

    def record(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        if self.recording is not None:
            raise FakeCudaError("cudaErrorStreamCaptureIsolation: a capture waits for what is outside of it")
        self.enqueue(event.reach)

    def begin_capture(self) -> None:
        if self.recording is not None:
            raise FakeCudaError("cudaErrorIllegalState: a capture was begun while capturing")
        if not self._non_blocking:
            raise FakeCudaError("cudaErrorStreamCaptureUnsupported: the legacy stream cannot be captured")
        self.recording = []

    def end_capture(self) -> Graph:
        recorded, self.recording = self.recording, None
        return Graph(self._cp, recorded or [])


class Node:
    """One launch, memset or copy of a graph, and the arrays it needs alive."""

    def __init__(self, kind: str, work: Work, allocations: Sequence[Allocation]) -> None:
        self.kind, self.work, self._allocations = kind, work, [ref(one) for one in allocations]

    def alive(self) -> bool:
        return all(one() is not None for one in self._allocations)


class Graph:
    """``cp.cuda.Graph``"""

    def __init__(self, cp: FakeCupy, nodes: list[Node]) -> None:
        self._cp, self.nodes = cp, nodes

    def launch(self, stream: Any = None) -> None:
        stream = self._cp.stream if stream is None else stream
        if stream.recording is not None:
            raise FakeCudaError("a graph cannot be launched while capturing")
        self._cp.note("graph")
        self._cp.note("graph nodes", len(self.nodes))
        for node in self.nodes:
            if not node.alive():
                raise FakeCudaError(f"the graph's {node.kind} uses an array that was freed after the capture")
            stream.enqueue(node.work)
