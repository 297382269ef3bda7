"""A user's X on a device. The host reads a sample of its rows, never the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.inputs.target_groups import CudaGroups
from gpuboost.errors import InputError
from gpuboost.types import Array, DeviceMatrix

if TYPE_CHECKING:
    from gpuboost.data.category_groups import Grouping, RowGroups

C_TYPES = {
    "b1": "u8", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64", "i1": "signed char", "i2": "short", "i4": "i32",
    "i8": "i64", "f4": "f32", "f8": "f64",
}  # fmt: skip
NOWHERE = np.iinfo(np.uint64).max


@final
class CudaMatrix(DeviceMatrix):
    """(n, d) float32 or float64 on one device, C-ordered. See ``types.DeviceMatrix``.

    It has ``__cuda_array_interface__``, so every function that accepts device arrays accepts it.
    """

    def __init__(self, runtime: Runtime, array: Array) -> None:
        self._runtime, self.array, self.dtype = runtime, array, np.dtype(array.dtype)
        self._kernels = Kernels(runtime, "common/common.cuh", "binning/matrix.cu")

    @classmethod
    def of(cls, runtime: Runtime, x: Any) -> CudaMatrix:
        """A matrix from an array on the runtime's device. Dtypes other than float32 and float64 are converted there.

        Raises:
            InputError: if x is not two-dimensional, is empty, or has an unsupported dtype.
            DeviceError: if it is on another device.
        """
        array = runtime.as_device_array(x)
        if array is None:
            raise TypeError(f"{type(x).__name__} does not live on {runtime.name}")
        if len(array.shape) != 2 or 0 in array.shape:
            raise InputError(
                f"X: must have rows and features, at least one of each; got shape {tuple(array.shape)}. Reshape it "
                "with X.reshape(-1, 1) if it is one feature, with X.reshape(1, -1) if it is one row."
            )
        dtype = np.dtype(array.dtype)
        if dtype.str[1:] not in C_TYPES:
            raise InputError(
                f"X: must hold integers, float32 or float64 on a device; got {dtype}. Convert it: X.astype('float32')."
            )
        matrix = cls(runtime, array)
        return matrix if dtype.kind == "f" else matrix._as_floats()

    @property
    def device(self) -> str:
        return self._runtime.name

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.array.shape
        return int(n), int(d)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        described: dict[str, Any] = self.array.__cuda_array_interface__
        return described

    def __getitem__(self, rows: NDArray[Any]) -> CudaMatrix:
        """Those rows, by number or mask, on the device."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return CudaMatrix(self._runtime, self._gathered(rows.astype(np.int64)))

    def host_rows(self, rows: NDArray[np.int64] | None) -> NDArray[Any]:
        """(m, d) numpy array of those rows; None for all."""
        return self._runtime.download(self.array if rows is None else self._gathered(rows))

    def host_column(self, f: int) -> NDArray[Any]:
        """(n,) numpy array of one column."""
        n, d = self.shape
        out = self._runtime.empty(n, self.dtype)
        self._launch("take_column", n, x=_bits(self.array), n=n, d=d, f=f, out=_bits(out))
        return self._runtime.download(out)

    def with_columns(self, columns: Mapping[int, NDArray[np.float64]]) -> CudaMatrix:
        """A copy on the device with some columns replaced by these, (n,) arrays of the host."""
        n, d = self.shape
        out = self._runtime.empty((n, d), self.dtype)
        self._runtime.copy(out, self.array)
        for f, values in columns.items():
            column = self._runtime.upload(values.astype(self.dtype))
            self._launch("put_column", n, column=_bits(column), n=n, d=d, f=f, x=_bits(out))
        return CudaMatrix(self._runtime, out)

    def arranged(self, columns: Sequence[int | Array]) -> CudaMatrix:
        """A matrix on the device of these columns: one of this matrix by its number, or (n,) values, of the host or,
        in its dtype, of the device."""
        n, d = self.shape
        out = self._runtime.empty((n, len(columns)), self.dtype)
        for place, source in enumerate(columns):
            if isinstance(source, int):
                column = self._runtime.empty(n, self.dtype)
                self._launch("take_column", n, x=_bits(self.array), n=n, d=d, f=source, out=_bits(column))
            else:
                column = self._runtime.upload(source.astype(self.dtype)) if isinstance(source, np.ndarray) else source
            self._launch("put_column", n, column=_bits(column), n=n, d=len(columns), f=place, x=_bits(out))
        return CudaMatrix(self._runtime, out)

    def groups(self, grouping: Grouping, *, to_host: bool) -> RowGroups:
        """The training rows by their categories, whose codes columns of this matrix hold. to_host: True:
        columns that its methods return are copied to the host."""
        return CudaGroups(self._runtime, self.array, grouping, to_host=to_host)

    def on_same_device(self, host: NDArray[Any]) -> Array:
        """A copy of a host array on the same device."""
        return self._runtime.upload(host)

    def wait(self) -> None:
        """Wait for all work on the device: its results may then be used on any stream."""
        self._runtime.wait()

    def first_infinite(self) -> tuple[int, int] | None:
        """(row, column) of the first infinity; None if there is none."""
        n, d = self.shape
        first = self._runtime.empty(1, np.uint64)
        self._runtime.fill(first, 0xFF)  # NOWHERE, without a copy
        self._launch("find_infinite", n * d, x=_bits(self.array), size=n * d, first=first)
        place = int(self._runtime.download(first)[0])
        return None if place == NOWHERE else divmod(place, d)

    def _gathered(self, rows: NDArray[np.int64]) -> Array:
        m, d = len(rows), self.shape[1]
        out = self._runtime.empty((m, d), self.dtype)
        chosen = self._runtime.upload(rows)
        self._launch("gather_rows", m * d, x=_bits(self.array), rows=chosen, m=m, d=d, out=_bits(out))
        return out

    def _as_floats(self) -> CudaMatrix:
        n, d = self.shape
        out = self._runtime.empty((n, d), np.float32 if np.can_cast(self.dtype, np.float32) else np.float64)
        plain = self.array.view(np.uint8) if self.dtype == np.bool_ else self.array
        self._launch("to_floats", n * d, np.dtype(out.dtype), x=plain, size=n * d, out=out)
        return CudaMatrix(self._runtime, out)

    def _launch(self, name: str, count: int, result: np.dtype[Any] | None = None, **arguments: Any) -> None:
        to = result or self.dtype
        types = {"SOURCE": C_TYPES[self.dtype.str[1:]], "RESULT": C_TYPES[to.str[1:]], "BITS": f"u{8 * to.itemsize}"}
        before = "".join(f"#define {role} {kind}\n" for role, kind in types.items())
        grid = (block_count(self._runtime, count, 256),)
        self._kernels(name, before)(grid, (256,), **arguments)


def _bits(array: Array) -> Array:
    """The bits of the numbers as unsigned integers, flattened."""
    return array.reshape(-1).view(f"u{array.dtype.itemsize}")
