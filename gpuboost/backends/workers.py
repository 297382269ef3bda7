"""Where one worker builds its trees while the server goes on: what it is lent, and what it brings, outlive a round.

On a host arrays are never written to again, so there is nothing to do. On a device they are those of one round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from gpuboost.backends.protocol import Backend
from gpuboost.types import Sample, Structure, Target

Work: TypeAlias = Callable[[Backend], tuple[Structure, ...]]
"""Builds the trees of one round on the machine that it is given."""


class Bench(Protocol):
    """A place for one tree under way, of each output. Both halves are used by one thread at a time."""

    def lend(self, target: Target, sample: Sample) -> tuple[Target, Sample]:
        """By the server, in a round: the same, good until the next loan at this place."""
        ...

    def build(self, work: Work) -> tuple[Structure, ...]:
        """By the worker: what ``work`` builds, when it is there; for the server's verbs until the next loan."""
        ...

    def beside(self) -> Bench:
        """Another place at the same machine, which builds for one place at a time."""
        ...

    def close(self) -> None:
        """By the server: what was brought here is not asked for again."""
        ...


class WorkerStreams(Protocol):
    """A machine whose ``offers`` have ``worker_streams``."""

    def benches(self) -> Callable[[], Bench]:
        """A function that makes a place for one more worker, beside this machine."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HostBench:
    """See ``Bench``. Of a machine that any number of threads may use at once."""

    machine: Backend

    def lend(self, target: Target, sample: Sample) -> tuple[Target, Sample]:
        return target, sample

    def build(self, work: Work) -> tuple[Structure, ...]:
        return work(self.machine)

    def beside(self) -> HostBench:
        return self

    def close(self) -> None:
        """Nothing is under way."""


def benches_of(server: Backend, machine: Callable[[], Backend]) -> Callable[[], Bench]:
    """What makes a bench with a machine of its own, beside the server's; hosts have one for all, ``machine()``."""
    if server.offers.worker_streams:
        return cast(WorkerStreams, server).benches()
    shared = HostBench(machine())
    return lambda: shared
