"""Launch kernels that were compiled for the CPU, and refuse what CUDA would take in silence.

The types of a kernel's parameters come from its own C++ type, so a wrong number of arguments, a wrong dtype or a Python
integer where the kernel wants 32 bits is a TypeError here; on a device it is garbage.
"""

from __future__ import annotations

import ctypes
import mmap
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from emulator.compiler import compiled
from emulator.counts import CountedArray, CountedArrays, Traffic
from emulator.functions import called_by_address, on_the_cpu
from gpuboost.backends.cuda.codegen.functions import DeviceFunction

ORDERS = {"forward": 0, "reverse": 1, "random": 2}
Triple = tuple[int, ...]  # of length 3
CLUSTER_BYTES = 256  # struct Cluster of cluster.h
DYNAMIC_SHARED = 48 << 10  # bytes of dynamic shared memory that need no opt-in


class KernelError(RuntimeError):
    """What a device would have shown as a hang, an illegal address or silent garbage."""


class _Launch(ctypes.Structure):  # struct Launch of fibers.h
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("arrays", ctypes.POINTER(CountedArray)),
        ("n_arrays", ctypes.c_uint64),
        ("shared_atomics", ctypes.c_uint64),
        ("order", ctypes.c_int),
        ("yield_permille", ctypes.c_int),
        ("chained", ctypes.c_int),
        ("stacks", ctypes.c_void_p),
        ("threads", ctypes.c_void_p),
        ("cluster", ctypes.c_void_p),
        ("error", ctypes.c_char * 1024),
    ]


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the threads of a launch take turns.

    Args:
        order: of blocks and threads: "forward", "reverse", or "random" by ``seed``.
        workers: host threads, each with blocks of its own.
        yield_permille: how often an atomic operation gives way to another thread, of a thousand.
        chained: under the race detector, whether a block counts as ordered after the one before; False looks for races
            between a block and the two that run next.
    """

    order: str = "forward"
    seed: int = 0
    workers: int = 1
    yield_permille: int = 0
    chained: bool = True


class Stacks:
    """The stacks of a block's threads, each behind a page that traps, and what the race detector knows of the threads.

    Launches take turns with them: were they made for each module, a process that loads some dozens would run out of the
    memory maps that Linux allows it.
    """

    SIZE, GUARD, THREADS, TURNS = 64 << 10, 4096, 1024, 3  # as in fibers.h

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self.THREADS * (self.SIZE + self.GUARD))
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.threads = (ctypes.c_void_p * (self.TURNS * self.THREADS))()
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for i in range(self.THREADS):
            page = self.address + i * (self.SIZE + self.GUARD)
            if protect(ctypes.c_void_p(page), ctypes.c_size_t(self.GUARD), 0):
                raise OSError(ctypes.get_errno(), "mprotect")


_free_stacks: list[Stacks] = []
_alone = threading.Lock()  # a library's static variables are one multiprocessor's, and two devices may run its kernels


@contextmanager
def _stacks() -> Iterator[Stacks]:
    """Stacks that no other launch uses."""
    try:
        stacks = _free_stacks.pop()
    except IndexError:
        stacks = Stacks()
    try:
        yield stacks
    finally:
        _free_stacks.append(stacks)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers)


@cache
def _copies(library: Path, workers: int, functions: tuple[DeviceFunction, ...] = ()) -> tuple[ctypes.CDLL, ...]:
    """The library loaded once per worker: its static variables are one multiprocessor, and the functions' addresses."""
    loaded = [] if functions else [ctypes.CDLL(str(library))]
    with tempfile.TemporaryDirectory() as folder:
        for i in range(len(loaded), workers):
            loaded.append(ctypes.CDLL(str(shutil.copy(library, Path(folder) / f"{i}.so"))))
    for copy in loaded:
        for function in functions:
            address = ctypes.c_void_p(on_the_cpu(function).address)
            getattr(copy, f"cuda_emulator_set_{function.name}")(address)
    return tuple(loaded)


def _text(function: Any) -> str:
    function.restype = ctypes.c_char_p
    return function().decode()


class Module:
    """A compiled CUDA C text."""

    def __init__(
        self,
        source: str,
        options: tuple[str, ...] = (),
        build: str = "plain",
        schedule: Schedule | None = None,
        functions: tuple[DeviceFunction, ...] = (),
    ) -> None:
        self.schedule, self.counts = schedule or Schedule(), build == "counts"
        text = "".join(called_by_address(function) for function in functions) + source
        library = compiled(text, options, build)
        (first,) = _copies(library, 1, functions)
        lines = _text(first.cuda_emulator_kernels).splitlines()
        self.parameters = {line.split()[0]: tuple(line.split()[1:]) for line in lines}
        self.clusters = {name: getattr(first, f"cuda_emulator_cluster_{name}")() for name in self.parameters}
        self.libraries = _copies(library, max(self.schedule.workers, *self.clusters.values()), functions)

    def kernel(self, name: str) -> Kernel:
        return Kernel(self, name)


class Kernel:
    """One kernel of a module: ``kernel(grid, block, args, shared_mem=0)`` runs it to its end.

    A counting build leaves in ``traffic`` what the launches moved, per parameter, and in ``shared_atomics`` the atomic
    operations on memory that is none of the arguments'. ``runs``: how often it ran, in graphs or not.
    """

    def __init__(self, module: Module, name: str) -> None:
        if name not in module.parameters:
            raise KernelError(f'{name}: the module has no extern "C" __global__ kernel of that name')
        self.name, self.schedule, self._libraries = name, module.schedule, module.libraries
        self.cluster = module.clusters[name]  # blocks that run at once; 0: each by itself
        workers = self.cluster or module.schedule.workers
        self._calls = [getattr(library, f"cuda_emulator_launch_{name}") for library in module.libraries[:workers]]
        self.signature = _text(getattr(module.libraries[0], f"cuda_emulator_signature_{name}")).split()
        self.parameters = module.parameters[name]
        self.most_threads = getattr(module.libraries[0], f"cuda_emulator_bound_{name}")()
        self.max_dynamic_shared_size_bytes = DYNAMIC_SHARED
        self._counts = module.counts
        self.traffic: dict[str, Traffic] = {}
        self.shared_atomics = 0
        self.runs = 0

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int = 0) -> None:
        self.prepared(grid, block, args, shared_mem)()

    def prepared(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int = 0
    ) -> Callable[[], None]:
        """The launch, checked and with its arguments in place: a graph runs it again and again.

        Raises:
            KernelError, TypeError: see ``check`` and ``marshal``.
        """
        return partial(self._run, *self.check(grid, block, shared_mem), self.marshal(args), args, shared_mem)

    def _run(self, grid: Triple, block: Triple, marshalled: Any, args: Sequence[Any], shared_mem: int) -> None:
        pointers, _ = marshalled
        self.runs += 1
        blocks = grid[0] * grid[1] * grid[2]
        arrays = CountedArrays(args) if self._counts else None
        plan = self.schedule

        def run(i: int, first: int, last: int, cluster: int | None = None) -> _Launch:
            launch = _Launch(grid, block, shared_mem, plan.seed + i, first, last)
            launch.cluster = cluster
            launch.order, launch.yield_permille = ORDERS[plan.order], plan.yield_permille
            launch.chained = int(plan.chained)
            if arrays is not None:
                launch.arrays, launch.n_arrays = arrays.structures, len(arrays.structures)
            with _stacks() as stacks:
                launch.stacks, launch.threads = stacks.address, ctypes.addressof(stacks.threads)
                self._calls[i](ctypes.byref(launch), pointers)
            return launch

        launches = self._of_clusters(run, blocks) if self.cluster else self._of_parts(run, blocks)
        for launch in launches:
            if launch.error:
                raise KernelError(f"{self.name}: {launch.error.decode()}")
            self.shared_atomics += launch.shared_atomics
        if arrays is not None:
            arrays.add_to(self.traffic, self.parameters)

    def _of_parts(self, run: Callable[..., _Launch], blocks: int) -> list[_Launch]:
        """Run the blocks, one after another in each worker."""
        parts = min(len(self._calls), blocks)
        if parts == 1:
            with _alone, self._traps(1):
                return [run(0, 0, blocks)]
        ends = [blocks * i // parts for i in range(parts + 1)]
        return list(_pool(parts).map(run, range(parts), ends, ends[1:]))

    def _of_clusters(self, run: Callable[..., _Launch], blocks: int) -> list[_Launch]:
        """Run the clusters one after another, the blocks of each at once."""
        size, launches = self.cluster, list[_Launch]()
        for first in range(0, blocks, size):
            shared = (ctypes.c_uint64 * (CLUSTER_BYTES // 8))()
            ctypes.cast(shared, ctypes.POINTER(ctypes.c_uint))[0] = size
            numbers = range(first, first + size)
            with _alone, self._traps(size):
                launches += _pool(size).map(
                    run, range(size), numbers, range(first + 1, first + size + 1), [ctypes.addressof(shared)] * size
                )
        return launches

    @contextmanager
    def _traps(self, copies: int) -> Iterator[None]:
        """Illegal addresses inside a kernel are that kernel's error, not the end of Python.

        A copy's handler passes on what is another one's. Not for several workers: signals are the whole process's.
        """
        for library in self._libraries[:copies]:
            library.cuda_emulator_traps(1)
        try:
            yield
        finally:
            for library in reversed(self._libraries[:copies]):
                library.cuda_emulator_traps(0)

    def check(self, grid: tuple[int, ...], block: tuple[int, ...], shared_mem: int) -> tuple[Triple, Triple]:
        """The whole grid and block of a launch that a device would accept.

        Raises:
            KernelError: if it would not.
        """
        grid, block = (*grid, 1, 1)[:3], (*block, 1, 1)[:3]
        if not 0 < block[0] * block[1] * block[2] <= min(1024, self.most_threads) or block[2] > 64:
            raise KernelError(f"{self.name}: invalid block {block} (launch bound {self.most_threads})")
        if min(grid) < 1 or grid[0] > 2**31 - 1 or grid[1] > 65535 or grid[2] > 65535:
            raise KernelError(f"{self.name}: invalid grid {grid}")
        if self.cluster and grid[0] % self.cluster:
            raise KernelError(f"{self.name}: invalid grid {grid} of clusters of {self.cluster} blocks")
        if shared_mem > self.max_dynamic_shared_size_bytes:
            limit = self.max_dynamic_shared_size_bytes
            raise KernelError(f"{self.name}: {shared_mem} bytes of dynamic shared memory, the limit set is {limit}")
        return grid, block

    def marshal(self, args: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Pointers to the arguments, and what must stay alive with them.

        Raises:
            TypeError: if the number of arguments, a dtype or the type of a scalar is not the kernel's.
        """
        if len(args) != len(self.signature):
            raise TypeError(f"{self.name} takes {len(self.signature)} arguments, got {len(args)}")
        pointers = (ctypes.c_void_p * max(1, len(args)))()
        kept: list[Any] = []
        for i, (value, wanted) in enumerate(zip(args, self.signature, strict=True)):
            box = self._pointer(i, value, wanted[1:]) if wanted[0] in "pP" else self._scalar(i, value, wanted)
            pointers[i] = ctypes.addressof(box)
            kept += [box, value]
        return pointers, kept

    def _argument(self, i: int) -> str:
        return f"{self.name}: argument {i}" + (f" ({self.parameters[i]})" if i < len(self.parameters) else "")

    def _pointer(self, i: int, array: Any, element: str) -> Any:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{self._argument(i)} is {type(array).__name__}, the kernel wants an array")
        if not array.flags.c_contiguous:
            raise TypeError(f"{self._argument(i)} is not contiguous")
        if not array.flags.aligned:  # a GPU reads a number at multiples of its size only
            raise TypeError(f"{self._argument(i)} of {array.dtype} begins at {array.ctypes.data:#x}, not aligned")
        kind, size, plain = element[0], int(element[1:]), array.dtype.names is None
        if kind == "V" and plain:  # void*, or a vector type over plain numbers
            fits = size == 0 or array.nbytes % size == 0
        else:
            fits = array.dtype.itemsize == size and array.dtype.kind == kind
        if not fits:
            raise TypeError(f"{self._argument(i)} is {array.dtype}, the kernel wants {element}*")
        return ctypes.c_void_p(array.ctypes.data)

    def _scalar(self, i: int, value: Any, wanted: str) -> Any:
        value = np.asarray(value)
        if value.size != 1:
            raise TypeError(f"{self._argument(i)} has shape {value.shape}, the kernel wants one {wanted}")
        if f"{value.dtype.kind}{value.dtype.itemsize}" != wanted:
            raise TypeError(f"{self._argument(i)} is {value.dtype}, the kernel wants {wanted}; wrap it in its type")
        return ctypes.create_string_buffer(value.tobytes(), value.nbytes)
