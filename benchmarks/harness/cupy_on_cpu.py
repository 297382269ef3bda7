"""A stand-in for CuPy that computes on the CPU: Py-Boost, which needs a GPU, gives its losses by it, and no times.

Arrays are NumPy's, of a class of their own with CuPy's methods. Functions are NumPy's. Kernels are compiled from their
CUDA C by g++ and run one element, or one thread, after another. Sums of float32 are rounded in another order than on a
GPU, where the order changes from run to run, and random numbers are NumPy's.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

UNUSED = ("treelite", "treelite_runtime", "ujson", "onnx", "onnxruntime", "tqdm")
"""Packages that Py-Boost imports to store and to convert models, which nothing here does."""

_C_TYPES = {f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_C_TYPES |= {"bool": "bool", "float32": "float", "float64": "double"}
_LANGUAGE = """
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#define __global__
struct Index { unsigned int x, y, z; };
struct float4 { float x, y, z, w; };
static Index blockIdx, blockDim, threadIdx;
template <typename T, typename V> T atomicAdd(T* at, V value) { T old = *at; *at += value; return old; }
"""


def gpu_or_stand_in() -> bool:
    """True if CuPy finds a GPU; else Py-Boost is imported, for the rest of this process, with the stand-in.

    Raises:
        ImportError: if Py-Boost or a package it needs is not installed.
    """
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
        return True
    except Exception:  # not installed, or without a driver, or broken: CuPy has an error of its own for each
        sys.modules["cupy"] = module()
    absent = [name for name in UNUSED if name not in sys.modules and find_spec(name) is None]
    sys.modules.update({name: ModuleType(name) for name in absent})
    with mock.patch.object(subprocess, "check_output", return_value=b""):  # it looks for a GPU by nvidia-smi
        import py_boost  # noqa: F401
    return False


def module() -> ModuleType:
    """The stand-in itself."""
    made = _Forwarding("cupy")
    idle = ("MemoryPool", "Stream", "Event", "get_current_stream", "using_allocator")
    made.__dict__.update(
        ndarray=ndarray,
        ElementwiseKernel=ElementwiseKernel,
        RawKernel=RawKernel,
        random=_Random(np.random.RandomState(0)),
        cuda=SimpleNamespace(alloc_pinned_memory=bytearray, **dict.fromkeys(idle, _Idle)),
    )
    return made


class ndarray(np.ndarray[Any, Any]):  # noqa: N801 - CuPy's name
    """An array "of the device". Indices beyond an axis begin anew, as CuPy's do, where they are arrays."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(_within(self.shape, at))
        by_arrays = any(isinstance(part, np.ndarray) for part in (at if isinstance(at, tuple) else (at,)))
        return np.asanyarray(found, order="C") if by_arrays else found

    def __setitem__(self, at: Any, values: Any) -> None:
        super().__setitem__(_within(self.shape, at), values)

    def get(self, stream: Any = None, order: str = "C", out: Any = None) -> Any:
        """A copy of NumPy's class."""
        if out is None:
            return np.array(self, subok=False)
        out[...] = self
        return out

    def set(self, values: Any, stream: Any = None) -> None:
        self[...] = values

    def scatter_add(self, at: Any, values: Any) -> None:
        np.add.at(self, _within(self.shape, at), values)


def _within(shape: tuple[int, ...], at: Any) -> Any:
    """The index with the numbers of its arrays taken modulo the length of their axis."""
    several = at if isinstance(at, tuple) else (at,)
    parts, axis = [], 0
    for k, part in enumerate(several):
        numbers = isinstance(part, np.ndarray) and part.ndim > 0 and part.dtype.kind in "iu"
        parts.append(part % shape[axis] if numbers and shape[axis] else part)
        axis = len(shape) - sum(map(_axes, several[k + 1 :])) if part is Ellipsis else axis + _axes(part)
    return tuple(parts) if isinstance(at, tuple) else parts[0]


def _axes(part: Any) -> int:
    """Axes that a part of an index takes, an ellipsis apart."""
    if part is None:
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype.kind == "b" else 1


def _of_device(value: Any) -> Any:
    """The same in the class of the device, if it is an array of NumPy's; lists and tuples of them too."""
    if isinstance(value, list | tuple):
        return type(value)(map(_of_device, value))
    return value.view(ndarray) if type(value) is np.ndarray else value


class _Forwarding(ModuleType):
    """NumPy's types and constants, and its functions with arrays of the device for results."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if not callable(found) or isinstance(found, type):
            return found
        return lambda *arguments, **options: _of_device(found(*arguments, **options))


@dataclass(frozen=True)
class _Random:
    """``cupy.random``, whose functions take the type of their results."""

    state: np.random.RandomState

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, dtype: Any = None, **options: Any) -> Any:
            made = _of_device(getattr(self.state, name)(*arguments, **options))
            return made if dtype is None else made.astype(dtype)

        return call


class _Idle:
    """Streams, events and pools of memory: on a CPU, where every step is done when it returns, they do nothing."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> _Idle:
        return self

    def __exit__(self, *error: object) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Idle


@dataclass(frozen=True)
class _Parameter:
    """One of "raw float32 hist, T x": its type is a name of NumPy's, or a letter that stands for one."""

    name: str
    kind: str
    raw: bool

    @classmethod
    def several(cls, text: str) -> tuple[_Parameter, ...]:
        words = [one.split() for one in text.split(",") if one.strip()]
        return tuple(cls(word[-1], word[-2], "raw" in word[:-2]) for word in words)


class ElementwiseKernel:
    """CuPy's class of this name. The body runs for one element of the common shape after another; ``i`` counts them.

    Raises:
        TypeError: by a call with too few arguments, or with types that contradict those of the parameters.
        RuntimeError: by a call, if g++ refuses the body.
    """

    def __init__(self, in_params: str, out_params: str, operation: str, name: str = "kernel", **_: Any) -> None:
        self.name, self._body = name, operation
        self._inputs, self._outputs = _Parameter.several(in_params), _Parameter.several(out_params)

    def __call__(self, *arguments: Any) -> Any:
        parameters = (*self._inputs, *self._outputs)
        if len(arguments) not in (len(self._inputs), len(parameters)):
            raise TypeError(f"{self.name}: takes {len(self._inputs)} or {len(parameters)}; got {len(arguments)}.")
        kinds = self._kinds(arguments)
        ready = [_of_kind(p, kinds[p.kind], one) for p, one in zip(self._inputs, arguments, strict=False)]
        shape = np.broadcast_shapes(*(one.shape for p, one in zip(self._inputs, ready, strict=True) if not p.raw))
        made = arguments[len(self._inputs) :] or tuple(
            np.empty(shape, kinds[p.kind]).view(ndarray) for p in self._outputs
        )
        for p, one in zip(self._outputs, made, strict=True):
            if one.dtype != kinds[p.kind] or not one.flags.c_contiguous or (not p.raw and one.shape != shape):
                raise TypeError(f"{self.name}: {p.name} must be a contiguous array of {kinds[p.kind]}.")
        self._run(parameters, kinds, shape, [*ready, *made])
        return made[0] if len(made) == 1 else made

    def _kinds(self, arguments: Sequence[Any]) -> dict[str, np.dtype[Any]]:
        """The type for each kind of parameter: letters stand for those of the arrays; plain numbers follow them."""
        kinds = {p.kind: np.dtype(p.kind) for p in (*self._inputs, *self._outputs) if p.kind in _C_TYPES}
        for p, one in zip((*self._inputs, *self._outputs), arguments, strict=False):
            letter = p.kind not in _C_TYPES and isinstance(one, np.ndarray)
            if letter and kinds.setdefault(p.kind, one.dtype) != one.dtype:
                raise TypeError(f"{self.name}: {p.kind} stands for {kinds[p.kind]} and for {one.dtype}.")
        return kinds

    def _run(self, parameters: Sequence[_Parameter], kinds: Any, shape: tuple[int, ...], ready: list[Any]) -> None:
        """Call the compiled loop with addresses, and with the steps in bytes of each array that is not raw."""
        typed = [
            (_C_TYPES[kinds[p.kind].name], "" if p.raw and one.ndim else "*", p.name)
            for p, one in zip(parameters, ready, strict=True)
        ]
        letters = "".join(f"typedef {_C_TYPES[t.name]} {k};\n" for k, t in kinds.items() if k not in _C_TYPES)
        taken = ", ".join(f"{t}{'&' if star else '*'} {name}" for t, star, name in typed)
        given = (f"{star}({t}*) (at[{k}] + offset[{k}] + j * last[{k}])" for k, (t, star, _) in enumerate(typed))
        text = f"{_LANGUAGE}{letters}static inline void body(ptrdiff_t i, {taken}) {{\n{self._body}\n}}\n" + _LOOP
        loop = _compiled(text.replace("GIVEN", ", ".join(given)).replace("ARRAYS", str(len(ready))))
        sizes = [len(shape), *shape]
        for (_, star, _), one in zip(typed, ready, strict=True):
            sizes += np.broadcast_to(one, shape).strides if star else (0,) * len(shape)
        loop(_addresses(ready), (ctypes.c_longlong * len(sizes))(*sizes))


_LOOP = """
extern "C" void run(char** at, const long long* sizes) {
    const long long axes = *sizes, *shape = sizes + 1, *steps = shape + axes;
    long long place[32] = {0}, offset[ARRAYS] = {0}, last[ARRAYS] = {0}, total = 1;
    for (int a = 0; a < axes; a++) total *= shape[a];
    for (int k = 0; axes && k < ARRAYS; k++) last[k] = steps[k * axes + axes - 1];
    for (long long i = 0; i < total;) {
        for (long long j = 0, n = axes ? shape[axes - 1] : 1; j < n; j++, i++) body(i, GIVEN);
        for (int a = axes - 2; a >= 0; a--) {
            for (int k = 0; k < ARRAYS; k++) offset[k] += steps[k * axes + a];
            if (++place[a] < shape[a]) break;
            for (int k = 0; k < ARRAYS; k++) offset[k] -= steps[k * axes + a] * shape[a];
            place[a] = 0;
        }
    }
}
"""


@dataclass(frozen=True)
class RawKernel:
    """CuPy's class of this name, for kernels of one axis whose threads do not wait for each other.

    Raises:
        RuntimeError: by a call, if g++ refuses the text.
    """

    code: str
    name: str

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: Sequence[Any]) -> None:
        parameters = re.findall(rf"{self.name}\s*\((.*?)\)", self.code, re.DOTALL)[0]
        kinds = [one.rsplit(maxsplit=1)[0] for one in parameters.split(",")]
        passed = ", ".join(f"({t}) at[{k}]" if "*" in t else f"*({t}*) at[{k}]" for k, t in enumerate(kinds))
        call = (
            'extern "C" void run(void** at, unsigned int blocks, unsigned int threads) { blockDim.x = threads;'
            "for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)"
            f"for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) {self.name}({passed}); }}"
        )
        ready = [one if isinstance(one, np.ndarray) else np.asarray(one) for one in arguments]
        _compiled(_LANGUAGE + self.code + call)(_addresses(ready), grid[0], block[0])


def _of_kind(parameter: _Parameter, kind: np.dtype[Any], one: Any) -> Any:
    """An input as an array of its type; raw ones without gaps, as their elements are counted."""
    ready = one.astype(kind, casting="same_kind", copy=False) if isinstance(one, np.ndarray) else np.asarray(one, kind)
    return np.ascontiguousarray(ready) if parameter.raw and ready.ndim else ready


def _addresses(arrays: Sequence[Any]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(one.ctypes.data for one in arrays))


@cache
def _compiled(text: str) -> Any:
    """The function ``run`` of a text of C++."""
    with tempfile.TemporaryDirectory() as folder:
        library, source = Path(folder) / "kernel.so", Path(folder) / "kernel.cpp"
        source.write_text(text)
        command = ["g++", "-O2", "-fno-strict-aliasing", "-shared", "-fPIC", "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"g++: {done.stderr[-2000:]}")
        return ctypes.CDLL(str(library)).run
