"""A worker's execution context: owns copies of its target and of its trees, so they stay valid across rounds.

On a host no copy is needed, as arrays are never written to again. On a device arrays are those of one round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from gpuboost.backends.protocol import Backend
from gpuboost.types import Sample, Structure, Target

BuildFunction: TypeAlias = Callable[[Backend], tuple[Structure, ...]]
"""Builds the trees of one round on the machine that it is given."""


class Bench(Protocol):
    """A place for one tree under way, of each output. Both halves are used by one thread at a time."""

    def lend(self, target: Target, sample: Sample) -> tuple[Target, Sample]:
        """By the server, in a round: the same, good until the next loan at this place."""
        ...

    def build(self, work: BuildFunction) -> tuple[Structure, ...]:
        """By the worker: what ``work`` builds, when it is there; for the server's verbs until the next loan."""
        ...

    def beside(self) -> Bench:
        """Another place at the same machine, which builds for one place at a time."""
        ...

    def close(self) -> None:
        """By the server: what was brought here is not asked for again."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HostBench:
    """See ``Bench``; for a backend that any number of threads may use at once."""

    machine: Backend

    def lend(self, target: Target, sample: Sample) -> tuple[Target, Sample]:
        return target, sample

    def build(self, work: BuildFunction) -> tuple[Structure, ...]:
        return work(self.machine)

    def beside(self) -> HostBench:
        return self

    def close(self) -> None:
        """Nothing is under way."""


def benches_of(server: Backend, machine: Callable[[], Backend]) -> Callable[[], Bench]:
    """A factory of contexts, each with a backend of its own beside the server's; on a host all share ``machine()``."""
    own: Callable[[], Callable[[], Bench]] | None = getattr(server, "benches", None)
    if own is not None:
        return own()
    shared = HostBench(machine())
    return lambda: shared
