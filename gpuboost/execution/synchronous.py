"""A synchronous engine without threads: the caller builds each pull at once, and results come back in order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from gpuboost.execution.asynchronous import Asynchronous
from gpuboost.execution.machines import BackendFactory
from gpuboost.execution.messages import BuildTrees, Pull, Push
from gpuboost.execution.protocol import Execution, ExecutionTraits
from gpuboost.execution.rules import Rules
from gpuboost.records import declared


@dataclass(frozen=True, slots=True)
class Synchronous:
    """See ``EngineKind``. ``shared``: the workers use one backend by turns."""

    shared: bool = False
    in_process: ClassVar[bool] = True

    def check(self, fit: BuildTrees) -> None:
        """Accept every fit: nothing is sent."""

    def start(self, fit: BuildTrees, machine: BackendFactory, workers: int) -> SynchronousEngine:
        return SynchronousEngine(fit, machine, workers, self.shared)


class SynchronousEngine:
    """See ``Engine``. It has no clock."""

    def __init__(self, fit: BuildTrees, machine: BackendFactory, workers: int, shared: bool) -> None:
        new_slot = machine.slots()
        first = new_slot()
        self._fit = fit
        self._slots = [first, *(first.sibling() if shared else new_slot() for _ in range(workers - 1))]
        self._done: deque[Push] = deque()

    def submit(self, worker: int, pull: Pull) -> Pull:
        slot, fit = self._slots[worker], self._fit
        target, sample = slot.copy_target(pull.target, pull.sample)
        structures = slot.build(lambda machine: fit(machine, target, pull.ticket))
        self._done.append(Push(worker, pull.ticket, structures))
        return replace(pull, target=target, sample=sample)

    def wait(self) -> Push:
        return self._done.popleft()

    def replace(self, worker: int) -> bool:
        """No replacement: an exception of a build is raised by ``submit``."""
        return False

    def now(self) -> float:
        return 0.0

    def stop(self) -> None:
        self._done.clear()


def synchronous(execution: Execution) -> Execution:
    """The same execution with as many trees and backends, in one thread; itself if it has no workers."""
    how: Any = execution
    if not declared(ExecutionTraits, how).has_workers:
        return execution
    if isinstance(how, Asynchronous):
        return replace(how, engine=Synchronous(), address=None, timeout="auto")
    rules = {field.name: getattr(how, field.name) for field in fields(Rules) if hasattr(how, field.name)}
    return Asynchronous(**rules, engine=Synchronous(shared=True))
