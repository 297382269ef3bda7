"""All-reduce among GPUs: by NCCL, or through the host's memory."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.errors import DeviceError
from gpuboost.types import Array

_NCCL_TYPES = {"i4": "NCCL_INT32", "u4": "NCCL_UINT32", "i8": "NCCL_INT64", "u8": "NCCL_UINT64"}


def nccl_of(cp: Any) -> Any | None:
    """CuPy's NCCL, or None if CuPy was built without it or the library is not installed."""
    nccl = getattr(cp.cuda, "nccl", None)
    if nccl is None and getattr(cp, "__name__", "") == "cupy":
        try:
            nccl = import_module("cupy_backends.cuda.libs.nccl")
        except ImportError:
            return None
    return nccl if getattr(nccl, "available", False) else None


@final
class NcclCollective:
    """See ``all_reduce.Collective``. Operations are queued like kernels; the host does not wait.

    The constructor waits until every rank calls it.
    """

    name = "nccl"

    def __init__(self, runtime: CupyRuntime, unique_id: tuple[int, ...], size: int, rank: int) -> None:
        nccl: Any = nccl_of(runtime.cp)  # there is one, or there would be no id
        self._runtime, self._nccl = runtime, nccl
        with runtime.cp.cuda.Device(runtime.index):
            self._all: Any = self._nccl.NcclCommunicator(size, unique_id, rank)

    def sum(self, device: Array) -> None:
        self._reduce(device, self._nccl.NCCL_SUM)

    def max(self, device: Array) -> None:
        self._reduce(device, self._nccl.NCCL_MAX)

    def abort(self) -> None:
        self._all.abort()

    def _reduce(self, device: Array, operation: int) -> None:
        kind = getattr(self._nccl, _NCCL_TYPES[np.dtype(device.dtype).str[1:]])
        pointer, stream = device.data.ptr, self._runtime.stream.ptr
        self._all.allReduce(pointer, pointer, device.size, kind, operation, stream)


class Rendezvous(Protocol):
    """All-reduce of arrays in the host's memory: each rank passes one, and gets the sum or the maximum of all."""

    def reduce(self, rank: int, size: int, array: NDArray[Any], how: str) -> NDArray[Any]:
        """Reduce ``array`` by ``how``, "sum" or "max". Waits until all ``size`` ranks have made the same call.

        Raises:
            DeviceError: if a rank has failed.
        """
        ...

    def abort(self) -> None: ...


@final
class HostCollective:
    """See ``all_reduce.Collective``. It waits: data go through page-locked host memory and a rendezvous of ranks."""

    name = "host"

    def __init__(self, runtime: CupyRuntime, rendezvous: Rendezvous, size: int, rank: int) -> None:
        self._runtime, self._rendezvous, self._size, self._rank = runtime, rendezvous, size, rank
        self._pinned: dict[tuple[int, Any], NDArray[Any]] = {}

    def sum(self, device: Array) -> None:
        self._reduce(device, "sum")

    def max(self, device: Array) -> None:
        self._reduce(device, "max")

    def abort(self) -> None:
        self._rendezvous.abort()

    def _reduce(self, device: Array, how: str) -> None:
        key = device.shape[0], device.dtype
        if key not in self._pinned:
            self._pinned[key] = self._runtime.pinned(device.shape, device.dtype)
        pinned = self._pinned[key]
        self._runtime.read(device, pinned)
        self._runtime.wait()
        pinned[:] = self._rendezvous.reduce(self._rank, self._size, pinned, how)
        self._runtime.write(device, pinned)


@final
class Alone:
    """See ``all_reduce.Collective``. The group of one GPU, which has all the rows."""

    name = "alone"

    def sum(self, device: Array) -> None:
        """The array already is the sum."""

    def max(self, device: Array) -> None:
        """The array already is the maximum."""

    def abort(self) -> None:
        """No other rank waits."""


def combined(arrays: list[NDArray[Any]], how: str) -> NDArray[Any]:
    """The sum or the maximum of arrays of one dtype, in that dtype."""
    together = {"sum": np.add, "max": np.maximum}[how]
    out = arrays[0].copy()
    for array in arrays[1:]:
        together(out, array, out=out)
    return out


def stopped() -> DeviceError:
    """The error of a rank that waits for one that failed."""
    return DeviceError("execution: another shard failed, and this one could not go on without it.")
