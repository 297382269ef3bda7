"""A simulated cluster: the real algorithm on a simulated clock.

Trees are really built, each on the gradients that its worker would have seen, and come in when they would have. So a
thousand workers can be studied on one core, the same every time, and the model is the one that such a cluster makes.
"""

from __future__ import annotations

import heapq
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from time import thread_time
from typing import Any, ClassVar

from gpuboost.backends.protocol import Backend
from gpuboost.backends.workers import WorkerSlot
from gpuboost.errors import DeviceError, RecipeError
from gpuboost.execution.machines import BackendFactory
from gpuboost.execution.messages import BuildTrees, Failure, Pull, Push
from gpuboost.execution.protocol import Past, Workers
from gpuboost.execution.rules import Rules, positive
from gpuboost.execution.server import serve
from gpuboost.execution.times import time, uniform
from gpuboost.keys import Key, Stream
from gpuboost.types import Structure

MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class SimulatedWorkers(Rules):
    """``Asynchronous`` on a simulated cluster. The log, and with it staleness and speed-up, is in simulated seconds.

    With times that are given, a simulation is the same every time, to the last bit of the model. With measured ones
    they are those of this machine, and the order in which trees come in may differ from run to run.

    Parameters
    ----------
    workers, leaf_values, sample_at, staleness, max_staleness, damping, max_failures, allow_unproven
        As for ``Asynchronous``.
    build_time : "measured", seconds, or a distribution of ``gb.times``
        T_b: time in which a worker builds one round's trees. "measured": the time here, on one core; with
        ``device="cuda"`` times have to be given.
    server_time : "measured", seconds, or a distribution
        T_s: how long the server is busy with one round. It does one thing at a time.
    network : seconds, or a distribution
        How long a message is under way, in each direction.
    failures : float
        Probability that a worker dies while it builds a tree. A fresh one takes its place at once; such failures are
        in the log, and are not counted for ``max_failures``.
    speeds : tuple of numbers, or None
        How fast each worker is, 1 being usual.
    seed : int
        Seed of the times and failures; the model's own random numbers are those of ``random_state``.

    Raises
    ------
    RecipeError
        If a parameter is out of its range.
    """

    build_time: Any = MEASURED
    server_time: Any = MEASURED
    network: Any = 0.0
    failures: float = 0.0
    speeds: tuple[float, ...] | None = None
    seed: int = field(default=0, kw_only=True)
    in_process: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Rules.__post_init__(self)
        for name in ("build_time", "server_time"):
            if not isinstance(getattr(self, name), str) or getattr(self, name) != MEASURED:
                time(name, getattr(self, name))
        time("network", self.network)
        if positive("failures", self.failures, or_zero=True) >= 1.0:
            raise RecipeError(f"failures: a probability below 1 lets some worker finish; got {self.failures!r}.")
        if self.speeds is not None:
            speeds: object = self.speeds
            if not (isinstance(speeds, (list, tuple)) and len(speeds) == self.workers):
                raise RecipeError(
                    f"speeds: must be one number for each of {self.workers} workers; got {self.speeds!r}."
                )
            object.__setattr__(self, "speeds", tuple(positive("speeds", speed) for speed in self.speeds))

    @property
    def simulated(self) -> bool:
        return True

    def open(self, fit: BuildTrees, backend: Backend, past: Past) -> AbstractContextManager[Workers]:
        """Raises DeviceError if times are to be measured on a GPU."""
        for name in ("build_time", "server_time"):
            if backend.name.startswith("cuda") and isinstance(getattr(self, name), str):
                raise DeviceError(
                    f"{name}: what is measured is a core's time, and {backend.name} does the work; got {MEASURED!r}. "
                    "Give seconds, or a distribution of gb.times, or use device='cpu'."
                )
        return serve(self, self, fit, backend, past)

    def check(self, fit: BuildTrees) -> None:
        """Do nothing: no message is sent."""

    def start(self, fit: BuildTrees, machine: BackendFactory, workers: int) -> SimulatedEngine:
        return SimulatedEngine(self, fit, machine.slots()())


@dataclass(frozen=True, slots=True)
class _Coming:
    """A push that is on its way to the server."""

    worker: int
    pull: Pull
    seconds: float  # of building
    structures: tuple[Structure, ...] | None  # None until ``wait`` returns them
    fails: bool


class SimulatedEngine:
    """An event-driven simulation; see ``engine.Engine``."""

    def __init__(self, rules: SimulatedWorkers, fit: BuildTrees, slot: WorkerSlot) -> None:
        self._rules, self._fit = rules, fit
        self._slots = [slot, *(slot.sibling() for _ in range(int(rules.workers) - 1))]
        self._root = Key.root(rules.seed)
        self._clock = 0.0
        self._busy: float | None = None  # time of the server not yet on the clock, or the start of its measurement
        self._coming: list[tuple[float, int, _Coming]] = []  # a heap: when, in order of departure
        self._numbers = count()

    def submit(self, worker: int, pull: Pull) -> Pull:
        self._charge()
        target, sample = self._slots[worker].copy_target(pull.target, pull.sample)
        pull = replace(pull, target=target, sample=sample)
        number = next(self._numbers)
        structures, seconds = self._build(worker, pull, number)
        fails = uniform(self._root / Stream.FAILS / number) < self._rules.failures
        if fails:
            seconds *= uniform(self._root / Stream.HOW_FAR_IT_CAME / number)
        there = self._draw(self._rules.network, Stream.NETWORK_THERE, number)
        back = self._draw(self._rules.network, Stream.NETWORK_BACK, number)
        coming = _Coming(worker, pull, seconds, structures, fails)
        heapq.heappush(self._coming, (self._clock + there + seconds + back, number, coming))
        self._resume()
        return pull

    def wait(self) -> Push | Failure:
        self._charge()
        when, number, coming = heapq.heappop(self._coming)
        self._clock = max(self._clock, when)
        ticket = coming.pull.ticket
        if coming.fails:
            return Failure(coming.worker, ticket, "a failure of the simulation", expected=True)
        structures = coming.structures or self._built(coming.worker, coming.pull)
        server_time = self._rules.server_time
        self._busy = thread_time() if server_time == MEASURED else self._draw(server_time, Stream.SERVER, number)
        return Push(coming.worker, ticket, structures, coming.seconds)

    def replace(self, worker: int) -> bool:
        return True

    def now(self) -> float:
        return self._clock

    def stop(self) -> None:
        self._coming.clear()
        with suppress(Exception):  # what ended the fit is the one to see
            self._slots[0].close()

    def _built(self, worker: int, pull: Pull) -> tuple[Structure, ...]:
        return self._slots[worker].build(lambda machine: self._fit(machine, pull.target, pull.ticket))

    def _build(self, worker: int, pull: Pull, number: int) -> tuple[tuple[Structure, ...] | None, float]:
        """The trees, if their time is to be measured, and the seconds to build them.

        With times that are given, ``wait`` builds the trees, and those of failed workers are never built.
        """
        speed = 1.0 if self._rules.speeds is None else self._rules.speeds[worker]
        if self._rules.build_time != MEASURED:
            return None, self._draw(self._rules.build_time, Stream.BUILD, number) / speed
        began = thread_time()
        structures = self._built(worker, pull)
        return structures, (thread_time() - began) / speed

    def _draw(self, duration: Any, name: Stream, number: int) -> float:
        return time(name, duration).seconds(self._root / name / number)

    def _charge(self) -> None:
        """Advance the clock by the server's time."""
        if self._busy is not None:
            measured = self._rules.server_time == MEASURED
            self._clock += thread_time() - self._busy if measured else self._busy
            self._busy = None

    def _resume(self) -> None:
        """Measure the server's time from here on, if it is measured; a given time was charged for the whole round."""
        if self._rules.server_time == MEASURED:
            self._busy = thread_time()
