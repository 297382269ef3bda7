"""Interface between the CUDA backend and a device, and its one implementation, on CuPy.

``CupyRuntime`` takes the ``cupy`` namespace as an argument. Tests pass an emulated one, so the code that calls CuPy
also runs on machines without a GPU. CuPy is not imported before a device is requested.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.device.sources import OPTIONS, source
from gpuboost.errors import DeviceError
from gpuboost.records import dataclass
from gpuboost.types import Array, DeviceMatrix

__all__ = ["CupyRuntime", "Kernel", "Runtime", "source"]

HAVE_CLUSTERS = 90  # compute capability 9.0
_DLPACK_CUDA = (2, 13)  # kDLCUDA and kDLCUDAManaged of dlpack.h

Shape = int | tuple[int, ...]
Functions = tuple[DeviceFunction, ...]


class Kernel(Protocol):
    """A compiled kernel. A device does not check arguments: convert scalars to the kernel's type (np.int32(n))."""

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int = 0
    ) -> None: ...


class Together(Protocol):
    """A training's part in trainings that go in lock-step: see ``lock_step``."""

    def graph(self, segments: Sequence[Any]) -> Callable[[], None]: ...
    def had_no_graph(self) -> None: ...


class Runtime(Protocol):
    """One device and its one stream. Calls return before the work is done; ``download`` and ``wait`` wait for it."""

    name: str  # "cuda:0", "emulated"
    sm_count: int
    block_memory: int  # bytes of shared memory that one block may have
    clusters: bool  # trees of few rows are grown by clusters of blocks: see ``cluster_tree``
    member: Together | None  # of trainings in lock-step, if its stream is one of theirs

    @property
    def free_memory(self) -> int: ...  # bytes

    def empty(self, shape: Shape, dtype: DTypeLike) -> Array: ...
    def zeros(self, shape: Shape, dtype: DTypeLike) -> Array: ...
    def upload(self, host: NDArray[Any]) -> Array: ...
    def as_device_array(self, x: Any) -> Array | None: ...
    def pinned(self, shape: Shape, dtype: DTypeLike) -> NDArray[Any]: ...
    def write(self, device: Array, pinned: NDArray[Any]) -> None: ...
    def read(self, device: Array, pinned: NDArray[Any]) -> None: ...
    def fill(self, device: Array, byte: int) -> None: ...
    def copy(self, destination: Array, source: Array) -> None: ...
    def download(self, device: Array) -> NDArray[Any]: ...
    def wait(self) -> None: ...
    def kernel(
        self, source: str, name: str, *, functions: Functions = (), shared_limit: int | None = None
    ) -> Kernel: ...
    def check(self, functions: Functions, *, beside: bool = False) -> None: ...
    def beyond(self, work: Callable[[], None]) -> None: ...
    def capture(self, work: Callable[[], None]) -> Callable[[], None]: ...
    def spawn(self) -> Runtime: ...
    def mark(self) -> Any: ...
    def follow(self, mark: Any) -> None: ...
    def wait_for(self, mark: Any) -> None: ...


@final
class CupyRuntime:
    """A device through CuPy, on a stream of its own (the legacy stream cannot be captured).

    Args:
        cp: the cupy namespace.
        index: the device.
        name: name of the device; None: "cuda:index".
        pinned_empty: cupyx.empty_pinned; None: ordinary memory, for an emulated device.
    """

    def __init__(
        self,
        cp: Any,
        index: int = 0,
        name: str | None = None,
        pinned_empty: Callable[[Shape, DTypeLike], NDArray[Any]] | None = None,
    ) -> None:
        self.cp = cp
        self.name = f"cuda:{index}" if name is None else name
        self.index = index
        self._pinned_empty = np.empty if pinned_empty is None else pinned_empty
        self._device = cp.cuda.Device(index)
        with self._device:
            self._stream = cp.cuda.Stream(non_blocking=True)
        self._modules: dict[tuple[str, Functions], Any] = {}
        self._compiling = threading.Lock()
        self._careful = os.environ.get("GPUBOOST_SYNC", "") == "1"
        self._capturing = False
        self.member: Together | None = None
        self.sm_count = int(self._device.attributes["MultiProcessorCount"])
        self.block_memory = int(self._device.attributes["MaxSharedMemoryPerBlockOptin"])
        self.clusters = False
        self.use_clusters(os.environ.get("GPUBOOST_CLUSTERS", "") == "1")  # off by default: no device has timed it yet

    def use_clusters(self, wanted: bool) -> None:
        """Grow trees of few rows in one launch from now on, or no longer. Devices without clusters never do."""
        self.clusters = wanted and int(self._device.compute_capability) >= HAVE_CLUSTERS

    @property
    def stream(self) -> Any:
        """CuPy's stream, for events."""
        return self._stream

    @property
    def free_memory(self) -> int:
        """Bytes that can still be allocated: the driver's free memory, and the free blocks of CuPy's pool."""
        with self._device:
            return int(self._device.mem_info[0]) + int(self.cp.get_default_memory_pool().free_bytes())

    def empty(self, shape: Shape, dtype: DTypeLike) -> Array:
        """A new, uninitialised array.

        Raises:
            DeviceError: if there is not enough memory; with the sizes.
        """
        with self._device, self._stream:
            try:
                return self.cp.empty(shape, dtype)
            except self.cp.cuda.memory.OutOfMemoryError as error:
                asked = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
                raise DeviceError(
                    f"device: {self.name} has no room for {asked:,} more bytes ({self.free_memory:,} are free). "
                    "Free memory there, train on fewer rows or features, or use device='cpu'."
                ) from error

    def zeros(self, shape: Shape, dtype: DTypeLike) -> Array:
        """A new array of zero bytes."""
        array = self.empty(shape, dtype)
        self.fill(array, 0)
        return array

    def upload(self, host: NDArray[Any]) -> Array:
        """A new device array with the host's content, which may change as soon as this returns."""
        array = self.empty(host.shape, host.dtype)
        with self._device, self._stream:
            array.set(np.ascontiguousarray(host), stream=self._stream)
            self._stream.synchronize()
        return array

    def as_device_array(self, x: Any) -> Array | None:
        """A C-ordered array of this device for an ``x`` on it, without a copy where the order allows it.

        CuPy arrays, DLPack and ``__cuda_array_interface__`` (numba, torch, JAX ...). None for everything else. This
        stream waits for work that was queued for ``x`` on its own stream.

        Raises:
            DeviceError: if it is on another GPU.
        """
        if isinstance(x, DeviceMatrix) and x.device == self.name:
            return x.array
        place = self._place(x)
        if place is None:
            return None
        if place != self.index:
            raise DeviceError(
                f"device: the data live on cuda:{place}, the work is on {self.name}. "
                f"Move them there, or pass device='cuda:{place}'."
            )
        if isinstance(x, self.cp.ndarray):
            with self._device:
                self._stream.wait_event(self.cp.cuda.get_current_stream().record())
        with self._device, self._stream:
            array = x
            if not isinstance(x, self.cp.ndarray):
                array = self.cp.from_dlpack(x) if hasattr(x, "__dlpack_device__") else self.cp.asarray(x)
            return self.cp.ascontiguousarray(array)

    def _place(self, x: Any) -> int | None:
        """The number of the GPU that holds x; None if none does."""
        if isinstance(x, self.cp.ndarray):
            return int(x.device.id)
        if hasattr(x, "__dlpack_device__"):
            kind, number = x.__dlpack_device__()
            return int(number) if int(kind) in _DLPACK_CUDA else None
        if hasattr(x, "__cuda_array_interface__"):
            pointer = x.__cuda_array_interface__["data"][0]
            return int(self.cp.cuda.runtime.pointerGetAttributes(pointer).device) if pointer else self.index
        return None

    def pinned(self, shape: Shape, dtype: DTypeLike) -> NDArray[Any]:
        """Uninitialised page-locked host memory, which asynchronous copies need."""
        return self._pinned_empty(shape, dtype)

    def write(self, device: Array, pinned: NDArray[Any]) -> None:
        """Queue a copy to the device. ``pinned`` must stay alive and unchanged until a wait. Not in a capture."""
        with self._device:
            device.set(pinned, stream=self._stream)

    def read(self, device: Array, pinned: NDArray[Any]) -> None:
        """Queue a copy to the host, which is complete after the next wait. Not in a capture."""
        with self._device:
            device.get(stream=self._stream, out=pinned, blocking=False)

    def fill(self, device: Array, byte: int) -> None:
        """Queue a memset of the array to this byte."""
        with self._device:
            device.data.memset_async(byte, device.nbytes, self._stream)

    def copy(self, destination: Array, source: Array) -> None:
        """Queue a copy between two C-ordered device arrays of equal size in bytes."""
        if destination.nbytes != source.nbytes:
            raise ValueError(f"source: must have {destination.nbytes} bytes; got {source.nbytes}.")
        with self._device:
            destination.data.copy_from_device_async(source.data, source.nbytes, self._stream)

    def download(self, device: Array) -> NDArray[Any]:
        """A host array with the content. Waits for the work queued so far."""
        with self._device:
            host: NDArray[Any] = device.get(stream=self._stream)
        return host

    def wait(self) -> None:
        """Wait for everything that was queued."""
        with self._device:
            self._stream.synchronize()

    def kernel(self, source: str, name: str, *, functions: Functions = (), shared_limit: int | None = None) -> Kernel:
        """The kernel ``name`` of a module's text (see ``source``), compiled at the first request.

        Args:
            source: CUDA C.
            name: an extern "C" kernel in it.
            functions: Python functions that it calls, to be compiled and linked in.
            shared_limit: dynamic shared memory it may be launched with, in bytes, where that is above 48 KB.

        Raises:
            DeviceError: if a block of this device cannot have that much, or a function does not compile.
        """
        if shared_limit is not None and shared_limit > self.block_memory:
            raise DeviceError(
                f"device: kernel {name} needs {shared_limit:,} bytes of shared memory; "
                f"a block of {self.name} may have {self.block_memory:,}. Use device='cpu'."
            )
        with self._device, self._compiling:
            key = source, functions
            if key not in self._modules:
                self._modules[key] = (
                    _linker(self.cp).module(source, functions)
                    if functions
                    else self.cp.RawModule(code=source, options=OPTIONS)
                )
            raw = self._modules[key].get_function(name)
            if shared_limit is not None:
                raw.max_dynamic_shared_size_bytes = shared_limit

        def launch(grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int = 0) -> None:
            if 0 in grid:  # CuPy would launch one block
                return
            with self._device, self._stream:
                raw(grid, block, tuple(args), shared_mem=shared_mem)
            if self._careful and not self._capturing:
                self._find_fault(name)

        return launch

    def check(self, functions: Functions, *, beside: bool = False) -> None:
        """Compile Python functions that kernels are to call.

        Args:
            functions: the functions.
            beside: compile in another thread, for functions that are known to compile.

        Raises:
            DeviceError: if one does not compile; with the compiler's reason and the line of the source.
        """
        with self._device:
            _linker(self.cp).check(functions, beside=beside)

    def beyond(self, work: Callable[[], None]) -> None:
        """Queue work that involves other devices. Not in a capture."""
        with self._device, self._stream:
            work()

    def spawn(self) -> CupyRuntime:
        """The same device on one more stream, for one more thread. Both share compiled kernels."""
        other = CupyRuntime(self.cp, self.index, self.name, self._pinned_empty)
        other._modules, other._compiling, other.clusters = self._modules, self._compiling, self.clusters
        return other

    def mark(self) -> Any:
        """An event after all work queued on this stream so far. Not in a capture."""
        with self._device:
            event = self.cp.cuda.Event(disable_timing=True)
            event.record(self._stream)
        return event

    def follow(self, mark: Any) -> None:
        """Make all later work of this stream wait, on the device, for another stream's event. Not in a capture."""
        with self._device:
            self._stream.wait_event(mark)

    def wait_for(self, mark: Any) -> None:
        """Wait for an event, and for nothing that was queued after it."""
        mark.synchronize()

    def _find_fault(self, kernel: str) -> None:
        """Wait for every launch under GPUBOOST_SYNC=1, so that a fault is reported by the kernel that caused it."""
        try:
            self.wait()
        except Exception as error:
            raise DeviceError(f"device: kernel {kernel} failed on {self.name}: {error}") from error

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        """Record the launches of ``work`` as a graph, without running them; the result queues the whole graph.

        The graph keeps the arguments. Allocation, transfers and waiting are not allowed in ``work``.
        """
        with self._device, self._stream:
            self._stream.begin_capture()
            self._capturing = True
            try:
                work()
            except BaseException:
                with suppress(Exception):  # the first error is the one to see
                    self._stream.end_capture()
                raise
            finally:
                self._capturing = False
            return _Graph(self._stream.end_capture(), self._device, self._stream, work)


@dataclass(frozen=True, slots=True)
class _Graph:
    graph: Any
    device: Any
    stream: Any
    work: Callable[[], None]  # keeps alive the arrays that the graph writes to

    def __call__(self) -> None:
        with self.device:
            self.graph.launch(stream=self.stream)


def _linker(cp: Any) -> Any:
    """The linker of kernels and Python functions. An emulated namespace brings its own."""
    if hasattr(cp, "linker"):
        return cp.linker
    from gpuboost.backends.cuda.codegen.linking import Linker

    return Linker(cp)
