"""The one place where numba.cuda compiles: a Python function to LTO-IR that NVIDIA's linker inlines into a kernel.

numba.cuda and NVVM are imported by the first compilation of a process, and not at all if all kernels are on disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numba.core.compiler_lock import global_compiler_lock

from gpuboost._imports.collection import no_collection
from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.codegen.numpy_functions import NUMPY_FUNCTIONS
from gpuboost.backends.python_functions import registered, why_not_compiled
from gpuboost.errors import DeviceError

_alone = threading.RLock()


@cache
def load() -> None:
    """Import numba.cuda and load NVIDIA's compilers: for a thread that compiles.

    Imports by two threads can see half a module.

    Raises:
        DeviceError: if the libraries are not there.
    """
    with no_collection():
        try:
            from cuda.bindings import nvrtc, nvvm

            with _row_stack():
                from numba.cuda import compiler  # noqa: F401
                from numba.cuda.np import arrayobj  # noqa: F401

            nvrtc.nvrtcVersion()
            nvvm.version()
        except Exception as error:  # of several classes
            reason = str(error).strip().partition("\n")[0]
            raise DeviceError(
                f"device: numba-cuda cannot load NVIDIA's compilers: {reason}. Install gpuboost's extra again: "
                "pip install --force-reinstall 'gpuboosting[cuda13]', or 'gpuboosting[cuda12]' for an older driver."
            ) from error


@contextmanager
def _row_stack() -> Iterator[None]:
    """Give NumPy 2.5 the function that it dropped, while numba-cuda 0.30 registers it at import."""
    missing = "row_stack" not in vars(np)
    if missing:
        vars(np)["row_stack"] = np.vstack
    try:
        yield
    finally:
        if missing:
            del vars(np)["row_stack"]


def ltoir(function: DeviceFunction, architecture: int) -> bytes:
    """A function as LTO-IR for sm_<architecture>, with all functions that it calls. Needs no GPU.

    Raises:
        DeviceError: if numba.cuda cannot compile it; with numba's reason and the line of the source.
    """
    load()
    with _alone, global_compiler_lock, no_collection(), _compiling_for(architecture) as capability:
        from numba.cuda import compiler

        _define_numpy_functions()
        registered(function.function)
        try:
            code, _ = compiler.compile(
                function.shell(_strided()), _signature(function), device=True, cc=capability, abi="c",
                abi_info={"abi_name": function.name}, output="ltoir", forceinline=True,
            )  # fmt: skip
        except Exception as error:  # numba raises errors of many kinds for functions that it cannot compile
            raise refusal(function, error) from error
    return bytes(code)


def refusal(function: DeviceFunction, error: Exception) -> DeviceError:
    """The error of a function that a compiler has refused."""
    reason = why_not_compiled(function.function, error)
    return DeviceError(
        f"{function.argument or function.name}: a GPU cannot run it; numba says: {reason}. Use "
        "numbers, arithmetic, branches, loops, math, and functions made of the same, or pass device='cpu'."
    )


@contextmanager
def _compiling_for(architecture: int) -> Iterator[tuple[int, int]]:
    """The compute capability, which numba meanwhile takes for that of the current device.

    A function called by another one is compiled for "the current device", and to find that numba starts the driver:
    that takes a context of its own, and fails without a GPU.
    """
    from numba.cuda import dispatcher

    capability = divmod(architecture, 10)
    before, dispatcher.get_current_device = (
        dispatcher.get_current_device,
        lambda: SimpleNamespace(compute_capability=capability),
    )
    try:
        yield capability
    finally:
        dispatcher.get_current_device = before


def _signature(function: DeviceFunction) -> Any:
    from numba import types

    numbers = {
        "double": types.float64, "float": types.float32, "int": types.int32, "unsigned int": types.uint32,
        "long long": types.int64, "unsigned long long": types.uint64, "void": types.void,
        "double *": types.CPointer(types.float64),
        "const double *": types.CPointer(types.float64), "unsigned int *": types.CPointer(types.uint32),
        "const unsigned int *": types.CPointer(types.uint32),
        "const int *": types.CPointer(types.int32), "unsigned short *": types.CPointer(types.uint16),
    }  # fmt: skip
    return numbers[function.c_result](*(numbers[c_type] for c_type in function.c_arguments))


@cache
def _strided() -> Any:
    """For compiled code: (address, stride, count) -> an array of float64."""
    from numba.cuda import types
    from numba.cuda.extending import intrinsic
    from numba.cuda.np.arrayobj import make_array, populate_array

    array_type = types.Array(types.float64, 1, "A")

    @intrinsic
    def strided(typing_context: Any, address: Any, stride: Any, count: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data, step, length = arguments
            array = make_array(array_type)(context, builder)
            size = context.get_constant(types.intp, 8)
            populate_array(
                array, data=data, shape=(length,), strides=(builder.mul(step, size),), itemsize=size, meminfo=None
            )
            return array._getvalue()

        return array_type(address, stride, count), codegen

    return strided


@cache
def _define_numpy_functions() -> None:
    """Give numba.cuda the scalar functions of numpy that numba for the CPU has and numba.cuda lacks."""
    from numba.cuda.ufuncs import ufunc_db

    known = ufunc_db()
    for ufunc, function in NUMPY_FUNCTIONS.items():
        loop = "d" * ufunc.nin + "->d"
        known.setdefault(ufunc, {}).setdefault(loop, _loop(function))


def _loop(function: Callable[..., Any]) -> Callable[..., Any]:
    def compiled(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(function, FunctionType):
            return context.compile_internal(builder, function, signature, arguments)
        return context.get_function(function, signature)(builder, arguments)

    return compiled
