"""Device arrays of the emulated CuPy: views, reshapes, and the elementwise functions that users' losses need."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from emulator.memory import Allocation

if TYPE_CHECKING:
    from emulator.fake_cupy import FakeCupy


class FakeCudaError(RuntimeError):
    """What the CUDA driver would have refused, or would have had to."""


class OutOfMemoryError(MemoryError):
    """cupy.cuda.memory.OutOfMemoryError."""


def check_dtype(dtype: np.dtype) -> None:
    """Raise TypeError for what a CuPy array cannot hold: records, objects, text and times."""
    if dtype.kind not in "?biufc":
        raise TypeError(f"Unsupported dtype {dtype}")


class ndarray(NDArrayOperatorsMixin):  # noqa: N801 - CuPy's name
    """A device array: views, reshapes, and elementwise functions, which are kernels of CuPy's own."""

    __array_priority__ = 100

    def __init__(self, host: np.ndarray, allocation: Allocation, cp: FakeCupy) -> None:
        self._host, self._allocation, self._cp = host, allocation, cp

    @property
    def shape(self) -> tuple[int, ...]:
        return self._host.shape

    @property
    def dtype(self) -> np.dtype:
        return self._host.dtype

    @property
    def size(self) -> int:
        return self._host.size

    @property
    def ndim(self) -> int:
        return self._host.ndim

    @property
    def nbytes(self) -> int:
        return self._host.nbytes

    @property
    def flags(self) -> Any:
        return self._host.flags

    @property
    def device(self) -> SimpleNamespace:
        return SimpleNamespace(id=0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = None if self._host.flags.c_contiguous else self._host.strides
        pointer = (self._host.ctypes.data, False)
        return {"shape": self.shape, "typestr": self.dtype.str, "data": pointer, "strides": strides, "version": 3}

    @property
    def data(self) -> MemoryPointer:
        return MemoryPointer(self)

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __len__(self) -> int:
        return len(self._host)

    def __getitem__(self, key: Any) -> ndarray:
        if isinstance(key, int):  # CuPy gives a view, of no dimensions if need be; NumPy a scalar
            key = (key, ...)
        view = self._host[key]
        if view.base is None:
            raise FakeCudaError("fancy indexing launches kernels of CuPy's own; the driver uses slices")
        return self._like(view)

    def reshape(self, *shape: Any) -> ndarray:
        view = self._host.view()
        view.shape = shape[0] if len(shape) == 1 else shape  # an error where it would copy
        return self._like(view)

    def view(self, dtype: DTypeLike) -> ndarray:
        check_dtype(np.dtype(dtype))
        return self._like(self._host.view(dtype))

    def _like(self, host: np.ndarray) -> ndarray:
        return ndarray(host, self._allocation, self._cp)

    @property
    def T(self) -> ndarray:  # noqa: N802 - CuPy's name
        return self._like(self._host.T)

    def astype(self, dtype: DTypeLike) -> ndarray:
        return self._computed(lambda host: host.astype(dtype), self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        if method != "__call__" or more:
            return NotImplemented
        if any(isinstance(x, np.ndarray) and x.ndim for x in inputs):
            raise TypeError(f"Unsupported type {np.ndarray} in {ufunc.__name__}")
        return self._computed(ufunc, *inputs)

    def _computed(self, function: Any, *inputs: Any) -> ndarray:
        arrays = [x for x in inputs if isinstance(x, ndarray)]
        hosts = [x._host if isinstance(x, ndarray) else x for x in inputs]
        with np.errstate(all="ignore"):  # a device does not warn
            like = function(*[np.ones(1, x.dtype) if isinstance(x, np.ndarray) else x for x in hosts])
        made = self._cp.empty(np.broadcast_shapes(*map(np.shape, hosts)), like.dtype)

        def work() -> None:
            with np.errstate(all="ignore"):
                np.copyto(made._host, function(*hosts))

        self._cp.submit("kernel of cupy", work, *[x._allocation for x in arrays], made._allocation)
        return made

    def get(self, stream: Any = None, order: str = "C", out: np.ndarray | None = None, blocking: bool = True) -> Any:
        self._cp.refuse_in_capture("D2H")
        if out is None:
            out = np.empty_like(self._host)
        elif (out.dtype, out.shape) != (self.dtype, self.shape):
            raise TypeError(f"get() of {self.dtype}{self.shape} into {out.dtype}{out.shape}")
        self._cp.submit("D2H", lambda: np.copyto(out, self._host), stream=stream)
        if blocking:
            self._cp.synchronise(stream, "a blocking copy to the host")
        return out

    def set(self, host: np.ndarray, stream: Any = None) -> None:
        if (host.dtype, host.shape) != (self.dtype, self.shape):
            raise TypeError(f"set() of {self.dtype}{self.shape} from {host.dtype}{host.shape}")
        self._cp.refuse_in_capture("H2D")
        self._cp.submit("H2D", lambda: np.copyto(self._host, host), stream=stream)


class MemoryPointer:
    def __init__(self, array: ndarray) -> None:
        if not array.flags.c_contiguous:
            raise FakeCudaError("the bytes of this array are not in one piece")
        self._array = array

    @property
    def ptr(self) -> int:
        return int(self._array._host.ctypes.data)

    def _bytes(self, size: int) -> np.ndarray:
        if size > self._array.nbytes:
            raise FakeCudaError(f"{size} bytes asked of an array of {self._array.nbytes}")
        return self._array._host.reshape(-1).view(np.uint8)[:size]

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        target = self._bytes(size)
        self._array._cp.submit("memset", lambda: target.fill(value), self._array._allocation, stream=stream)

    def copy_from_device_async(self, source: MemoryPointer, size: int, stream: Any = None) -> None:
        to, of = self._bytes(size), source._bytes(size)
        arrays = (self._array._allocation, source._array._allocation)
        self._array._cp.submit("memcpy", lambda: np.copyto(to, of), *arrays, stream=stream)
