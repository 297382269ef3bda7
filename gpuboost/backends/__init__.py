"""Machines: one interface for all of them, ``Backend``. A backend is imported at the first request for it."""

from __future__ import annotations

from gpuboost._imports.collection import no_collection
from gpuboost.backends.protocol import Backend

__all__ = ["Backend", "get"]


def get(name: str, threads: int = 1) -> Backend:
    """The backend of that name: "cpu", "cuda:N", or "reference", the slow definition that the others must match.

    threads: at most; never more than there are processors.

    Raises:
        DeviceError: if that GPU cannot be used.
    """
    if name == "reference":
        from gpuboost.backends.reference.backend import Reference

        return Reference()
    if name.startswith("cuda:"):
        from gpuboost.backends.cuda.backend import Cuda
        from gpuboost.backends.cuda.device.gpus import open_gpu

        return Cuda(open_gpu(name), threads=threads)
    with no_collection():
        from gpuboost.backends.cpu.backend import Cpu
    from gpuboost.backends.devices import processors

    return Cpu(min(threads, processors()))
