"""The protocol between the boosting loop and the execution that builds its trees.

In each round the loop publishes a way to answer pulls at the scores of that version, and receives one round's trees,
which may have been fitted to an earlier one. All else about workers is in the execution.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from gpuboost.backends.protocol import Backend
from gpuboost.execution.messages import Answer, BuildTrees
from gpuboost.records import dataclass
from gpuboost.types import Built, Sample, Structure, Target


@dataclass(frozen=True, slots=True)
class Arrival:
    """The trees to apply in this round."""

    structures: tuple[Structure, ...]  # one per output
    target: Target  # that they were fitted to
    sample: Sample
    leaves_at: int  # version of the gradients that leaf values are made of: the newest, or that of the target
    share: float  # of the learning rate
    log: tuple[Built, ...]  # since the last arrival; the last line is this one's


class Workers(Protocol):
    """The workers, as the loop uses them. Both methods are called once per round, in this order."""

    def publish(self, version: int, answer: Answer, /) -> None: ...
    def receive(self) -> Arrival: ...


@dataclass(frozen=True, slots=True)
class ExecutionTraits:
    """Attributes that an execution may have, and the values that stand for those that it does not have."""

    workers: int = 1
    leaf_values: str | None = None  # "server" or "worker", as of ``Asynchronous``; None: it has no workers
    sample_at: str = "pull"
    staleness: str = "apply"  # treatment of late trees
    simulated: bool = False  # True: its seconds are those of a simulated clock
    allow_unproven: bool = False

    @property
    def has_workers(self) -> bool:
        """True if workers other than the server build the trees, which may then be fitted to stale gradients."""
        return self.leaf_values is not None


class Execution(Protocol):
    """A way to run ``fit``. It may have any of the ``ExecutionTraits`` as attributes."""

    def open(self, fit: BuildTrees, backend: Backend, past: Past, /) -> AbstractContextManager[Workers]:
        """``backend`` is the server's machine; a worker that runs beside it needs one of its own."""
        ...


@dataclass(frozen=True, slots=True)
class Past:
    """The state of an earlier run that this one continues."""

    rounds: int = 0  # of the ensemble; versions count on from there
    log: tuple[Built, ...] = ()  # of the run that made it, if it is known

    @property
    def used(self) -> set[int]:
        """Tickets that are not given out again."""
        return {line.ticket for line in self.log if line.outcome != "failed"}

    @property
    def has_gaps(self) -> bool:
        """True if tickets are unused between others, so that the next ones do not follow one another."""
        used = self.used
        return bool(used) and len(used) <= max(used) - min(used | {self.rounds})


class Tickets:
    """Numbers of trees: the smallest unused one. A number that comes back unused is given out again."""

    def __init__(self, past: Past) -> None:
        self._used = past.used
        self._next = min(self._used | {past.rounds}) if past.log else past.rounds
        self._returned: list[int] = []

    def take(self) -> int:
        if self._returned:
            smallest = min(self._returned)
            self._returned.remove(smallest)
            return smallest
        while self._next in self._used:
            self._next += 1
        self._next += 1
        return self._next - 1

    def give_back(self, ticket: int) -> None:
        self._returned.append(ticket)
