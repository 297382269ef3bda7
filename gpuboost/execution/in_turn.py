"""An engine without threads: what is submitted is built at once, by the caller, and comes back in that order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from gpuboost.execution.asynchronous import Asynchronous
from gpuboost.execution.machines import Machine
from gpuboost.execution.messages import Fit, Pull, Push
from gpuboost.execution.protocol import Execution, ExecutionTraits
from gpuboost.execution.rules import Rules
from gpuboost.records import declared


@dataclass(frozen=True, slots=True)
class InTurn:
    """See ``EngineKind``. ``shared``: the workers take turns with one machine."""

    shared: bool = False
    in_process: ClassVar[bool] = True

    def check(self, fit: Fit) -> None:
        """Nothing is sent anywhere."""

    def start(self, fit: Fit, machine: Machine, workers: int) -> InTurnEngine:
        return InTurnEngine(fit, machine, workers, self.shared)


class InTurnEngine:
    """See ``Engine``. It has no clock."""

    def __init__(self, fit: Fit, machine: Machine, workers: int, shared: bool) -> None:
        hire = machine.benches()
        first = hire()
        self._fit = fit
        self._benches = [first, *(first.beside() if shared else hire() for _ in range(workers - 1))]
        self._done: deque[Push] = deque()

    def submit(self, worker: int, pull: Pull) -> Pull:
        bench, fit = self._benches[worker], self._fit
        target, sample = bench.lend(pull.target, pull.sample)
        structures = bench.build(lambda machine: fit(machine, target, pull.ticket))
        self._done.append(Push(worker, pull.ticket, structures))
        return replace(pull, target=target, sample=sample)

    def wait(self) -> Push:
        return self._done.popleft()

    def replace(self, worker: int) -> bool:
        """What raises here raises through ``submit``."""
        return False

    def now(self) -> float:
        return 0.0

    def stop(self) -> None:
        self._done.clear()


def in_turn(execution: Execution) -> Execution:
    """The same with as many trees under way, on as many machines, in one thread; itself if it has no workers."""
    how: Any = execution
    if not declared(ExecutionTraits, how).has_workers:
        return execution
    if isinstance(how, Asynchronous):
        return replace(how, engine=InTurn(), address=None, timeout="auto")
    known = {one.name: getattr(how, one.name) for one in fields(Rules) if hasattr(how, one.name)}
    return Asynchronous(**known, engine=InTurn(shared=True))
