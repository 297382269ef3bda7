"""A worker's execution context: owns copies of its target and of its trees, so they stay valid across rounds.

On a host no copy is needed, as arrays are never written to again. On a device arrays are those of one round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, cast

from gpuboost.backends.protocol import Backend
from gpuboost.records import dataclass
from gpuboost.types import Sample, Structure, Target

BuildFunction: TypeAlias = Callable[[Backend], tuple[Structure, ...]]
"""Builds the trees of one round on the given backend."""


class WorkerSlot(Protocol):
    """A worker's slot for one round's trees. The server's and the worker's methods are each called by one thread."""

    def copy_target(self, target: Target, sample: Sample) -> tuple[Target, Sample]:
        """Called by the server in a round: a copy of both, valid until the slot's next copy."""
        ...

    def build(self, work: BuildFunction) -> tuple[Structure, ...]:
        """Called by the worker: the finished trees of ``work``, valid for the server's verbs until the next copy."""
        ...

    def sibling(self) -> WorkerSlot:
        """Another slot of the same backend, which builds for one slot at a time."""
        ...

    def close(self) -> None:
        """Called by the server: the slot's trees are not used again."""
        ...


class WorkerStreams(Protocol):
    """A machine whose ``offers`` have ``worker_streams``."""

    def slots(self) -> Callable[[], WorkerSlot]:
        """A function that makes a slot for one more worker, beside this machine."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HostSlot:
    """See ``WorkerSlot``; for a backend that any number of threads may use at once."""

    machine: Backend

    def copy_target(self, target: Target, sample: Sample) -> tuple[Target, Sample]:
        return target, sample

    def build(self, work: BuildFunction) -> tuple[Structure, ...]:
        return work(self.machine)

    def sibling(self) -> HostSlot:
        return self

    def close(self) -> None:
        """There are no copies to release."""


def slots_of(server: Backend, machine: Callable[[], Backend]) -> Callable[[], WorkerSlot]:
    """A function that makes worker slots: each has its own stream on a GPU; hosts share one machine, ``machine()``."""
    if server.offers.worker_streams:
        return cast(WorkerStreams, server).slots()
    shared = HostSlot(machine())
    return lambda: shared
