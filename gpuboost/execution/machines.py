"""What an engine is given to build trees on: machines, wherever its workers are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpuboost import backends
from gpuboost.backends.protocol import Backend
from gpuboost.backends.workers import Bench, benches_of
from gpuboost.errors import DeviceError
from gpuboost.records import declared


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """Machines of the server's kind.

    Called, it makes one that knows nothing of the server's, for a worker of another process: to be called where the
    worker is. It can be pickled. Workers of the server's own process have ``benches()``, which know its data.
    """

    server: Backend

    def __call__(self) -> Backend:
        return backends.get(self.server.name)

    def benches(self) -> Callable[[], Bench]:
        """What makes a place for one worker, with a machine that nobody else uses, or that any number may use."""
        return benches_of(self.server, self)

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

    in_process: bool = False  # its workers are threads of the server's process, and build on ``Machine.benches``


def in_process(kind: Any) -> bool:
    """Whether workers of this kind of engine live where the server does, and build on ``Machine.benches``."""
    return declared(EngineTraits, kind).in_process
