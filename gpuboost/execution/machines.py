"""Backends for an engine's workers, in this process or in others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gpuboost import backends
from gpuboost.backends.protocol import Backend
from gpuboost.backends.workers import WorkerSlot, slots_of
from gpuboost.errors import DeviceError
from gpuboost.records import dataclass, declared


@dataclass(frozen=True, slots=True, eq=False)
class BackendFactory:
    """A picklable factory of backends of the server's kind, for workers.

    A worker of another process calls it there, for a backend that shares nothing with the server's. Workers of the
    server's own process use ``slots()``, which share its data.
    """

    server: Backend

    def __call__(self) -> Backend:
        return backends.get(self.server.name)

    def slots(self) -> Callable[[], WorkerSlot]:
        """A factory of worker contexts; each has a backend of its own, or one that all threads may share."""
        return slots_of(self.server, self)

    def __reduce__(self) -> Any:
        return partial, (backends.get, self.server.name)


def refuse_gpu(server: Backend, kind: Any) -> None:
    """Raise DeviceError if that is a GPU and workers of this kind are none of its process."""
    if server.name.startswith("cuda") and not in_process(kind):
        raise DeviceError(
            f"execution: a GPU's workers are streams of one process, and {kind!r} starts its workers elsewhere, where "
            "each tree would take its gradients, and bring its leaves, through the memory of two hosts. Use "
            "engine='threads', or gb.DataParallel for rows on several GPUs, or device='cpu'."
        )


@dataclass(frozen=True, slots=True)
class EngineTraits:
    """Attributes that a kind of engine may have, and the values that stand for those that it does not have."""

    in_process: bool = False  # its workers are threads of the server's process, and build on ``BackendFactory.slots``
    with_timeout: Callable[[float | None], Any] | None = None  # the kind with these seconds as limit of an answer


def in_process(kind: Any) -> bool:
    """True if workers of this kind of engine run in the server's process, and build on ``BackendFactory.slots``."""
    return declared(EngineTraits, kind).in_process
