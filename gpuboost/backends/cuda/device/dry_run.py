"""A runtime that computes nothing: it counts what would be allocated, and notes the functions that would be linked.

The driver itself runs on it, verb by verb, so the reported memory of a training is exactly what the driver allocates.
It takes milliseconds, and no GPU.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from types import SimpleNamespace
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.device.runtime import Functions, Kernel, Shape, Together

ENDLESS = 1 << 62  # bytes


class _Allocation:
    __slots__ = ("__weakref__",)


@final
class CountedArray:
    """The shape and dtype of a device array. Slices and views keep the allocation alive, as they do on a device."""

    def __init__(self, shape: Shape, dtype: DTypeLike, allocation: _Allocation | None = None) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        self.dtype = np.dtype(dtype)
        self._allocation = allocation

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def data(self) -> SimpleNamespace:
        """CuPy's ``data``, with the address 0."""
        return SimpleNamespace(ptr=0)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: int | slice) -> CountedArray:
        if isinstance(key, slice):
            return self._like((len(range(*key.indices(self.shape[0]))), *self.shape[1:]), self.dtype)
        return self._like(self.shape[1:], self.dtype)

    def reshape(self, *shape: Any) -> CountedArray:
        wanted = tuple(shape[0]) if isinstance(shape[0], tuple) else shape
        known = prod(size for size in wanted if size != -1)
        return self._like(tuple(self.size // max(1, known) if size == -1 else size for size in wanted), self.dtype)

    def view(self, dtype: DTypeLike) -> CountedArray:
        last = self.shape[-1] * self.dtype.itemsize // np.dtype(dtype).itemsize
        return self._like((*self.shape[:-1], last), dtype)

    def _like(self, shape: tuple[int, ...], dtype: DTypeLike) -> CountedArray:
        return CountedArray(shape, dtype, self._allocation)


@final
class DryRun:
    """See ``Runtime``. ``held`` and ``most`` are bytes by purpose, now and at the peak.

    ``functions``: the Python functions of all kernels that were asked for, in that order.
    """

    def __init__(self, sm_count: int, block_memory: int = 227 << 10) -> None:
        self.clusters = False
        self.name, self.sm_count, self.block_memory = "the CUDA backend", sm_count, block_memory
        self.member: Together | None = None
        self.held: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.functions: dict[DeviceFunction, None] = {}
        self._purpose = "other"

    @property
    def free_memory(self) -> int:
        return ENDLESS

    @contextmanager
    def purpose(self, name: str) -> Iterator[None]:
        """Count the allocations within this context under that purpose."""
        before, self._purpose = self._purpose, name
        try:
            yield
        finally:
            self._purpose = before

    def empty(self, shape: Shape, dtype: DTypeLike) -> CountedArray:
        allocation = _Allocation()
        array = CountedArray(shape, dtype, allocation)
        self.held[self._purpose] += array.nbytes
        weakref.finalize(allocation, self._freed, self._purpose, array.nbytes)
        if self.held.total() > self.most.total():
            self.most = Counter(self.held)
        return array

    def zeros(self, shape: Shape, dtype: DTypeLike) -> CountedArray:
        return self.empty(shape, dtype)

    def upload(self, host: NDArray[Any]) -> CountedArray:
        return self.empty(host.shape, host.dtype)

    def as_device_array(self, x: Any) -> CountedArray | None:
        return x if isinstance(x, CountedArray) else None

    def pinned(self, shape: Shape, dtype: DTypeLike) -> NDArray[Any]:
        return np.zeros(shape, dtype)

    def write(self, device: CountedArray, pinned: NDArray[Any]) -> None: ...

    def read(self, device: CountedArray, pinned: NDArray[Any]) -> None: ...

    def fill(self, device: CountedArray, byte: int) -> None: ...

    def copy(self, destination: CountedArray, source: CountedArray) -> None: ...

    def download(self, device: CountedArray) -> NDArray[Any]:
        """Zeros, and so no nodes that are left to be split."""
        return np.zeros(device.shape, device.dtype)

    def wait(self) -> None: ...

    def kernel(self, source: str, name: str, *, functions: Functions = (), shared_limit: int | None = None) -> Kernel:
        self.functions.update(dict.fromkeys(functions))

        def launch(grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int = 0) -> None: ...

        return launch

    def check(self, functions: Functions, *, beside: bool = False) -> None:
        """Do nothing: a dry run compiles nothing."""

    def beyond(self, work: Callable[[], None]) -> None:
        """Do nothing: a dry run has no other devices."""

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        """A graph that does nothing, and keeps the arguments of ``work``."""
        return partial(_do_nothing, work)

    def spawn(self) -> DryRun:
        """The same runtime: allocations of other streams count here."""
        return self

    def mark(self) -> None: ...

    def follow(self, mark: Any) -> None: ...

    def wait_for(self, mark: Any) -> None: ...

    def _freed(self, purpose: str, size: int) -> None:
        self.held[purpose] -= size


def _do_nothing(work: Callable[[], None]) -> None:
    """Launch nothing."""
