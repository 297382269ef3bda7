"""The interface between the server and the engine of its workers: threads, a cluster, or a simulation.

An engine has no part of boosting. It starts workers, submits pulls to them and reports their results in any order.
The server (``execution.server``) does the rest for every engine: which worker pulls when, staleness, the log,
failures.

A new kind of engine is a frozen dataclass of its options with a method ``start``; ``ENGINES`` gives it a name.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from gpuboost.errors import RecipeError
from gpuboost.execution.machines import BackendFactory
from gpuboost.execution.messages import BuildTrees, Failure, Pull, Push

ENGINES = {"threads": "gpuboost.execution.threads:Threads", "ray": "gpuboost.execution.ray_cluster:Ray"}
"""name -> "module:class" of an ``EngineKind`` that needs no arguments; imported at its first use."""


class Engine(Protocol):
    """Running workers, numbered from 0. Used by one thread, the server's."""

    def submit(self, worker: int, pull: Pull) -> Pull:
        """Submit a pull to an idle worker and return at once: the pull, with its target where the worker reads it."""
        ...

    def wait(self) -> Push | Failure:
        """Wait for the next result of any worker. That worker is then idle, or has to be replaced.

        Must return once for every submitted pull, also if its worker is lost, and must let KeyboardInterrupt through.
        """
        ...

    def replace(self, worker: int) -> bool:
        """Replace a failed worker by a new idle one. False if there is no room for one."""
        ...

    def now(self) -> float:
        """Seconds since the engine was started, by its own clock, which may be simulated."""
        ...

    def stop(self) -> None:
        """End all workers and wait until they are gone; unfinished trees are lost. May be called again."""
        ...


@runtime_checkable
class EngineKind(Protocol):
    """An engine before it runs: its options.

    It may have any of the ``EngineTraits`` as attributes. Without ``in_process`` there are no workers on GPUs.
    """

    def check(self, fit: BuildTrees) -> None:
        """Refuse a fit that these workers cannot be sent. Raises RecipeError. Called before any worker starts."""
        ...

    def start(self, fit: BuildTrees, machine: BackendFactory, workers: int) -> Engine:
        """Start that many workers, each with this fit and a machine that ``machine()`` makes, or a slot.

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
        kind: EngineKind = getattr(import_module(module), name)()
        return kind
    if isinstance(engine, type) or not isinstance(engine, EngineKind):
        names = ", ".join(map(repr, ENGINES))
        raise RecipeError(f"engine: must be {names}, or an object with check() and start(); got {engine!r}.")
    return engine
