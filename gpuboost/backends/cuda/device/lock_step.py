"""Several trainings on one GPU in lock-step: a launch of each becomes one launch for all of them.

Small data leave a GPU waiting: a round of 10,000 rows is some thirty launches that each take as long as one block.
Here each training runs in a thread of its own, on a stream of its own, as it would alone; but a graph of its round
waits until every other training has a graph to launch too. Then one graph does the work of all: where their graphs
agree in a launch up to its arguments, a joint launch takes its place (``joint_kernels``). Each training gets the bytes
that it gets alone, however much or little the others are like it.

The threads take turns: one goes on when another waits for the graphs of the others. Side by side they would wait for
Python's lock after each call of the driver, which on many cores takes longer than the calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, final

from gpuboost.backends.cuda.device.gpus import keep_runtime, open_gpu
from gpuboost.backends.cuda.device.joined import Segments, joined
from gpuboost.backends.cuda.device.launches import queue
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.errors import DeviceError

T = TypeVar("T")

KEPT = 64  # joint graphs
PATIENCE = 8  # rounds of a training without a graph, until the others no longer wait for it


@dataclass(slots=True, eq=False)
class _Graph:
    """The launches of one graph of some trainings. Captured when it is launched for the second time."""

    runtime: Runtime
    of_each: Sequence[Segments]  # training
    work: Callable[[], None] | None = None
    launched: bool = False
    captured: Callable[[], None] | None = None

    def launch(self) -> None:
        if self.work is None:
            self.work = partial(queue, joined(self.of_each, self.runtime), self.runtime)
        if self.launched and self.captured is None:
            self.captured = self.runtime.capture(self.work)
        self.launched = True
        (self.captured or self.work)()


@final
class Member:
    """One training of a ``LockStep``: ``runtime`` has its stream."""

    def __init__(self, lock_step: LockStep, runtime: Runtime, number: int) -> None:
        self._lock_step, self.runtime, self.number = lock_step, runtime, number
        self._rounds_without = 0
        self._takes_turns = False
        runtime.member = self

    def begin(self) -> None:
        """Wait for this thread's turn. It lasts until the training waits for the others, or ends."""
        self._lock_step.turns.acquire()
        self._takes_turns = True

    def end(self) -> None:
        """Let the others go on without this training."""
        self._lock_step.leave(self)
        self._end_turns()

    def graph(self, segments: Segments) -> Callable[[], None]:
        """The function that queues these launches, together with graphs of the other members."""
        graph = _Graph(self.runtime, [segments])

        def launch() -> None:
            self._rounds_without = 0
            self._lock_step.launch(self, graph)

        return launch

    def had_no_graph(self) -> None:
        """Take note of a round that was launched verb by verb. After some in a row the others stop to wait.

        Raises:
            DeviceError: as ``LockStep.launch``, if the trainings were stopped.
        """
        self._lock_step.check()
        self._rounds_without += 1
        if self._rounds_without == PATIENCE:
            self.end()

    def _end_turns(self) -> None:
        if self._takes_turns:
            self._takes_turns = False
            self._lock_step.turns.release()


@final
class LockStep:
    """Trainings in lock-step, each in a thread of its own.

    Args:
        runtime: runtime of the joint graphs.
        members: runtime of each training, on the same device.
    """

    def __init__(self, runtime: Runtime, members: Sequence[Runtime]) -> None:
        self._runtime = runtime
        self.members = tuple(Member(self, member_runtime, number) for number, member_runtime in enumerate(members))
        self._expected = set(self.members)
        self._ready: dict[Member, _Graph] = {}
        self._joint: dict[tuple[_Graph, ...], _Graph] = {}
        self.turns, self._launches = threading.Condition(), 0
        self._error: BaseException | None = None

    def launch(self, member: Member, graph: _Graph) -> None:
        """Queue a member's graph, as soon as every other member has one.

        Raises:
            DeviceError: in every member, if the launch of a joint graph failed, or the trainings were stopped.
        """
        with self.turns:
            self._expected.add(member)  # again, if the others had stopped to wait
            before = self._launches
            if self._error is None:
                self._ready[member] = graph
                self._launch_if_all()
                self.turns.wait_for(lambda: self._launches != before)
            self.check()

    def check(self) -> None:
        """Raise DeviceError if the trainings were stopped."""
        if self._error is not None:
            raise DeviceError("device: trainings in lock-step ended early, as one of them failed.") from self._error

    def leave(self, member: Member) -> None:
        """Stop to wait for this member."""
        with self.turns:
            self._expected.discard(member)
            self._launch_if_all()

    def stop(self, error: BaseException) -> None:
        """End every training at its next graph, because of this error."""
        self._error = error  # at once, though another training may have its turn
        with self.turns:
            self._go_on()

    def _launch_if_all(self) -> None:
        if not self._ready or not self._expected <= self._ready.keys():
            return
        try:
            self._launch_together([self._ready[member] for member in sorted(self._ready, key=lambda peer: peer.number)])
        except BaseException as error:
            self._error = error
        self._go_on()

    def _go_on(self) -> None:
        self._ready = {}
        self._launches += 1
        self.turns.notify_all()

    def _launch_together(self, graphs: list[_Graph]) -> None:
        if len(graphs) == 1:
            graphs[0].launch()
            return
        key = tuple(graphs)
        if key not in self._joint:
            if len(self._joint) == KEPT:
                self._runtime.wait()  # for those that may still be running
                self._joint = {}
            self._joint[key] = _Graph(self._runtime, [segments for graph in graphs for segments in graph.of_each])
        for graph in graphs:
            self._runtime.follow(graph.runtime.mark())
        self._joint[key].launch()
        end = self._runtime.mark()
        for graph in graphs:
            graph.runtime.follow(end)


def in_lock_step(works: Sequence[Callable[[], T]], device: str) -> list[T]:
    """The results of functions that train on this GPU ("cuda:N"), in lock-step.

    If one fails, the others end early, and its error is raised.
    """
    runtimes = [open_gpu(device).spawn() for _ in works]
    lock_step = LockStep(open_gpu(device).spawn(), runtimes)

    def run(number: int) -> T:
        keep_runtime(runtimes[number])  # this thread's
        member = lock_step.members[number]
        member.begin()
        try:
            return works[number]()
        finally:
            member.end()

    with ThreadPoolExecutor(len(works), thread_name_prefix="gpuboost-lock-step") as pool:
        futures = [pool.submit(run, number) for number in range(len(works))]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException as error:
            lock_step.stop(error)
            raise
        return [future.result() for future in futures]
