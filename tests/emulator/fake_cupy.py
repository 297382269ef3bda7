"""The part of CuPy that ``CupyRuntime`` uses, on NumPy and the emulator; it keeps what drivers get wrong.

* A device array refuses to become a NumPy array implicitly.
* Work is queued by stream and runs when its stream is waited for, so a pinned buffer read or changed too early shows,
  and so does a stream that does not wait for another one (``streams``).
* In a capture work is recorded, nothing runs and scalars are frozen. Transfers are refused, as by CuPy, and so is
  allocation: CuPy allows it, but its pool may hand the memory out again.
* Elements are numbers: CuPy has no structured dtypes.
* A graph holds no array: replaying it after one was freed is an error here, and damage on a device.
* Fresh memory is NaN and -1, and lies between guard bytes and guard pages.
* An array of another device, or of the host, is refused as a kernel argument, and a scalar of the wrong type.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from emulator.arrays import FakeCudaError, OutOfMemoryError, check_dtype, ndarray
from emulator.counts import Traffic
from emulator.functions import on_the_cpu
from emulator.launch import DYNAMIC_SHARED, Kernel, Module, Schedule
from emulator.memory import Allocation
from emulator.streams import Event, Node, Stream, Work
from gpuboost.backends.cuda.codegen.functions import DeviceFunction

Functions = tuple[DeviceFunction, ...]

CAPACITY = 8 << 30  # bytes
MULTIPROCESSORS = 4
_module = cache(Module)  # devices come and go, and ask for the same texts


class _Context:
    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None: ...


class _Device(_Context):
    def __init__(self, cp: FakeCupy, index: int = 0) -> None:
        self._cp, self.id, self.compute_capability = cp, index, "90"
        self.attributes = {
            "MultiProcessorCount": cp.multiprocessors,
            "MaxSharedMemoryPerBlockOptin": cp.shared_memory,
        }

    @property
    def pci_bus_id(self) -> str:
        return f"{id(self._cp):x}"  # each namespace is a GPU of its own

    @property
    def mem_info(self) -> tuple[int, int]:
        return self._cp.capacity - self._cp.used(), self._cp.capacity


class _RawKernel:
    """Compiled at its first launch, not when it is asked for as CuPy does: what is never launched costs nothing."""

    def __init__(
        self, cp: FakeCupy, source: str, defines: tuple[str, ...], name: str, functions: Functions = ()
    ) -> None:
        self._cp, self._source, self._defines, self._name, self._functions = cp, source, defines, name, functions
        self._most_shared = DYNAMIC_SHARED

    @cached_property
    def _kernel(self) -> Kernel:
        return self._cp.compiled(self._source, self._defines, self._name, self._functions)

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self._most_shared

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if size > self._cp.shared_memory:
            raise FakeCudaError(
                f"cudaErrorInvalidValue: {size} bytes of shared memory, a block has {self._cp.shared_memory}"
            )
        self._most_shared = size

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int = 0) -> None:
        frozen: list[Any] = []
        allocations: list[Allocation] = []
        for i, value in enumerate(args):
            if isinstance(value, ndarray):
                if value._cp is not self._cp:
                    raise FakeCudaError(f"{self._kernel.name}: argument {i} lives on another device")
                frozen.append(value._host)
                allocations.append(value._allocation)
            elif isinstance(value, np.ndarray) and value.size != 1:
                raise TypeError(f"{self._kernel.name}: argument {i} is a numpy.ndarray of shape {value.shape}")
            else:
                frozen.append(np.array(value))  # by value, as of now; an int is 8 bytes, as in CuPy
        self._kernel.max_dynamic_shared_size_bytes = self._most_shared
        launch = self._kernel.prepared(grid, block, frozen, shared_mem)  # wrong ones show here, not at the next wait
        self._cp.submit(f"kernel {self._kernel.name}", launch, *allocations)


class _Linker:
    """What takes the place of ``codegen.linking.Linker``: numba compiles Python functions for the CPU."""

    def __init__(self, cp: FakeCupy) -> None:
        self._cp = cp

    def module(self, source: str, functions: Functions) -> SimpleNamespace:
        self._cp.sources.add((source, functions))
        return SimpleNamespace(get_function=lambda name: _RawKernel(self._cp, source, (), name, functions))

    def check(self, functions: Functions, *, beside: bool = False) -> None:
        for function in functions:
            on_the_cpu(function)


class FakeCupy:
    """What ``import cupy`` gives, for one device.

    Args:
        schedule: see Schedule.
        build: a key of ``compiler.BUILDS``.
        deferred: whether work waits until its stream must run; or a function that says so of a stream's number: 0 is
            the legacy stream, others are numbered in the order in which they are made.
        capacity: bytes of device memory.
        multiprocessors: what the device reports; grids follow from it.
        shared_memory: bytes a block may have with an opt-in (here those of an H100).
    """

    ndarray = ndarray

    def __init__(
        self,
        schedule: Schedule | None = None,
        build: str = "plain",
        deferred: bool | Callable[[int], bool] = True,
        capacity: int = CAPACITY,
        multiprocessors: int = MULTIPROCESSORS,
        shared_memory: int = 227 << 10,
    ) -> None:
        self.capacity, self.multiprocessors, self.shared_memory = capacity, multiprocessors, shared_memory
        self.counts: Counter[str] = Counter()  # what was submitted, by kind: "kernel <name>", "memset", "sync" ...
        self.kernels: list[Kernel] = []
        self.sources: set[tuple[str, Functions]] = set()  # the modules that were asked for, with what is linked in
        self.linker = _Linker(self)
        self._schedule, self._build, self._deferred = schedule or Schedule(), build, deferred
        self._allocations: weakref.WeakSet[Allocation] = weakref.WeakSet()
        self._used = 0  # bytes of them
        self.running, self._books = threading.RLock(), threading.RLock()  # of work; of counts and allocations
        self._streams, self._of_thread = 0, threading.local()
        self._legacy = self._new_stream()
        self.cuda = SimpleNamespace(
            Device=lambda index=0: _Device(self, index),
            Stream=self._new_stream,
            Event=lambda block=False, disable_timing=False: Event(),
            get_current_stream=lambda: self.stream,
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            runtime=SimpleNamespace(
                pointerGetAttributes=self._attributes,
                driverGetVersion=lambda: 13_000,
                runtimeGetVersion=lambda: 13_000,
                getDeviceCount=lambda: 1,
                getDeviceProperties=lambda index: {
                    "name": b"emulated GPU", "totalGlobalMem": self.capacity, "major": 9, "minor": 0,
                },
            ),
            is_available=lambda: True,
        )  # fmt: skip

    @property
    def launches(self) -> int:
        """Kernels that the host launched one by one or recorded; not those of a replay."""
        return sum(count for kind, count in self.counts.items() if kind.startswith("kernel "))

    def traffic(self) -> dict[str, dict[str, Traffic]]:
        """What was moved, by kernel and parameter, by a counting build."""
        total: dict[str, dict[str, Traffic]] = {}
        for kernel in self.kernels:
            for parameter, moved in kernel.traffic.items():
                entry = total.setdefault(kernel.name, {}).setdefault(parameter, Traffic())
                entry += moved
        return total

    def shared_atomics(self) -> Counter[str]:
        """Atomic operations in shared memory, by kernel, counted by a counting build."""
        total: Counter[str] = Counter()
        for kernel in self.kernels:
            total[kernel.name] += kernel.shared_atomics
        return total

    def used(self) -> int:
        """Bytes of device memory that are allocated."""
        with self._books:
            return self._used

    # Streams

    @property
    def current(self) -> list[Stream]:
        """The streams that this thread has entered and not left."""
        if not hasattr(self._of_thread, "streams"):
            self._of_thread.streams = []
        entered: list[Stream] = self._of_thread.streams
        return entered

    @property
    def stream(self) -> Stream:
        """Of this thread, the current one."""
        return self.current[-1] if self.current else self._legacy

    def _new_stream(self, non_blocking: bool = False) -> Stream:
        number, self._streams = self._streams, self._streams + 1
        deferred = self._deferred if isinstance(self._deferred, bool) else self._deferred(number)
        return Stream(self, number, not deferred, non_blocking)

    def note(self, kind: str, count: int = 1) -> None:
        with self._books:
            self.counts[kind] += count

    def submit(self, kind: str, work: Work, *allocations: Allocation, stream: Stream | None = None) -> None:
        stream = self.stream if stream is None else stream
        self.note(kind)
        if stream.recording is None:
            stream.enqueue(work)
        else:
            stream.recording.append(Node(kind, work, allocations))

    def refuse_in_capture(self, what: str) -> None:
        if self.stream.recording is not None:
            raise FakeCudaError(f"the current stream is capturing, so {what} transfers are disallowed")

    def synchronise(self, stream: Stream | None, why: str) -> None:
        stream = self.stream if stream is None else stream
        if stream.recording is not None:
            raise FakeCudaError(f"cudaErrorStreamCaptureUnsupported: {why} during a capture")
        self.note("sync")
        stream.run()
        with self.running, self._books:
            for allocation in self._allocations:
                allocation.check()

    # Arrays

    def _free(self, nbytes: int) -> None:
        with self._books:
            self._used -= nbytes

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = float) -> ndarray:
        if self.stream.recording is not None:
            raise FakeCudaError("allocation during a capture: its memory would not belong to the graph")
        dtype = np.dtype(dtype)
        check_dtype(dtype)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if nbytes > self.capacity - self.used():
            raise OutOfMemoryError(f"Out of memory allocating {nbytes:,} bytes")
        allocation = Allocation(nbytes)
        with self._books:
            self._allocations.add(allocation)
            self._used += nbytes
        weakref.finalize(allocation, self._free, nbytes).atexit = False
        return ndarray(allocation.bytes.view(dtype).reshape(shape), allocation, self)

    def ascontiguousarray(self, array: ndarray) -> ndarray:
        if array.flags.c_contiguous:
            return array
        copy = self.empty(array.shape, array.dtype)
        self.submit("kernel of cupy", lambda: np.copyto(copy._host, array._host))
        return copy

    def from_dlpack(self, x: Any) -> ndarray:
        """The array itself is the capsule: only what is on this device can be handed over."""
        array: ndarray = x.__dlpack__()
        return array

    def asarray(self, x: Any) -> ndarray:
        """A view of what ``x.__cuda_array_interface__`` describes."""
        described = x.__cuda_array_interface__
        allocation, offset = self._at(described["data"][0])
        dtype, shape = np.dtype(described["typestr"]), tuple(described["shape"])
        strides = described.get("strides") or np.empty(shape, dtype).strides
        host = np.ndarray(shape, dtype, allocation.bytes.data, offset, strides)
        return ndarray(host, allocation, self)

    def _at(self, pointer: int) -> tuple[Allocation, int]:
        with self._books:
            for allocation in self._allocations:
                offset = pointer - allocation.bytes.ctypes.data
                if 0 <= offset < allocation.nbytes:
                    return allocation, offset
        raise FakeCudaError("cudaErrorInvalidValue: a pointer to nothing of this device")

    def _attributes(self, pointer: int) -> SimpleNamespace:
        self._at(pointer)
        return SimpleNamespace(device=0)

    def get_default_memory_pool(self) -> SimpleNamespace:
        return SimpleNamespace(free_bytes=lambda: 0)

    # Kernels

    def RawModule(self, *, code: str, options: tuple[str, ...] = ()) -> SimpleNamespace:  # noqa: N802 - CuPy's name
        self.sources.add((code, ()))
        defines = tuple(option for option in options if option.startswith("-D"))
        return SimpleNamespace(get_function=lambda name: _RawKernel(self, code, defines, name))

    def compiled(self, source: str, defines: tuple[str, ...], name: str, functions: Functions = ()) -> Kernel:
        kernel = _module(source, defines, self._build, self._schedule, functions).kernel(name)
        self.kernels.append(kernel)
        return kernel
