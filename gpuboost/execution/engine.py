"""The seam between the server and whatever runs its workers: threads, a cluster, or a simulation of one.

An engine knows nothing of boosting. It starts workers, hands each the pulls it is told to, and reports what comes
back; in which order is its affair. The server (``execution.server``) does all the rest, for every engine alike: which
worker pulls when, staleness, the log, what becomes of a failure.

A new kind of engine is a frozen dataclass of its options with a method ``start``; ``ENGINES`` gives it a name.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from gpuboost.errors import RecipeError
from gpuboost.execution.machines import Machine
from gpuboost.execution.messages import Failure, Fit, Pull, Push

ENGINES = {"threads": "gpuboost.execution.threads:Threads", "ray": "gpuboost.execution.ray_cluster:Ray"}
"""name -> "module:class" of an ``EngineKind`` that needs no arguments; imported when it is asked for."""


class Engine(Protocol):
    """Running workers, numbered from 0. Used by one thread, the server's."""

    def submit(self, worker: int, pull: Pull) -> Pull:
        """Give the worker, which is idle, something to build. Returns at once: the pull, its target where it lies."""
        ...

    def wait(self) -> Push | Failure:
        """What comes back next, of any worker; waits for it. That worker is then idle, or has to be replaced.

        Must return for every pull that was submitted, whatever becomes of the worker, and must let KeyboardInterrupt
        through.
        """
        ...

    def replace(self, worker: int) -> bool:
        """Put a fresh worker in the place of one that failed, idle. False if there is no place for one any more."""
        ...

    def now(self) -> float:
        """Seconds since the engine was started, by its own clock: a simulation's is not the wall's."""
        ...

    def stop(self) -> None:
        """End all workers and wait until they are gone; what they are building is lost. May be called again."""
        ...


@runtime_checkable
class EngineKind(Protocol):
    """An engine before it runs: its options.

    It may have any of the ``EngineTraits`` as attributes. Without ``in_process`` there are no workers on GPUs.
    """

    def check(self, fit: Fit) -> None:
        """Refuse a fit that these workers cannot be sent. Raises RecipeError. Called before any worker starts."""
        ...

    def start(self, fit: Fit, machine: Machine, workers: int) -> Engine:
        """Start that many workers, each with this fit and a machine that ``machine()`` makes, or a bench.

        Raises:
            DeviceError: if they cannot be started: nothing to connect to, or not within the time allowed.
        """
        ...


def engine_kind(engine: Any) -> EngineKind:
    """The engine that a name or an object stands for.

    Raises:
        RecipeError: if there is none of that name, or it needs a package that is not there.
    """
    if isinstance(engine, str) and engine in ENGINES:
        module, _, name = ENGINES[engine].partition(":")
        made: EngineKind = getattr(import_module(module), name)()
        return made
    if isinstance(engine, type) or not isinstance(engine, EngineKind):
        known = ", ".join(map(repr, ENGINES))
        raise RecipeError(f"engine: must be {known}, or an object with check() and start(); got {engine!r}.")
    return engine
