"""Python functions that kernels call, compiled for the CPU by numba and called by their C address.

On a GPU numba.cuda compiles the same functions, and NVIDIA's linker puts them into the kernel.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import carray, cfunc, types
from numba.extending import register_jitable

from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.codegen.numba_cuda import refusal
from gpuboost.backends.python_functions import registered

_TYPES = {
    "double": types.float64, "float": types.float32, "int": types.int32, "unsigned int": types.uint32,
    "long long": types.int64, "unsigned long long": types.uint64, "void": types.void,
    "double *": types.CPointer(types.float64),
    "const double *": types.CPointer(types.float64), "unsigned int *": types.CPointer(types.uint32),
    "const unsigned int *": types.CPointer(types.uint32),
    "const int *": types.CPointer(types.int32), "unsigned short *": types.CPointer(types.uint16),
}  # fmt: skip


@cache
def on_the_cpu(function: DeviceFunction) -> Any:
    """The function as numba compiles it for callers in C; its code lives as long as the process.

    Raises:
        DeviceError: if numba cannot compile it, in the words of the library.
    """
    registered(function.function)
    signature = _TYPES[function.c_result](*(_TYPES[c_type] for c_type in function.c_arguments))
    try:
        return cfunc(signature, error_model="numpy")(function.shell(_strided))
    except Exception as error:
        raise refusal(function, error) from error


@register_jitable
def _strided(address, stride, count):  # type: ignore[no-untyped-def]
    return carray(address, (count, stride))[:, 0]


def called_by_address(function: DeviceFunction) -> str:
    """C++ in front of a module that calls the function: a pointer, and who sets it when the module is loaded."""
    name, result, types_of = function.name, function.c_result, function.c_arguments
    parameters = ", ".join(f"{c_type} x{i}" for i, c_type in enumerate(types_of))
    arguments = ", ".join(f"x{i}" for i in range(len(types_of)))
    pointer = f"static {result} (*{name}_on_the_cpu)({', '.join(types_of)});\n"
    setter = f"cuda_emulator_set_{name}(void *address)"
    return (
        f'{pointer}extern "C" EMULATOR_PUBLIC void {setter}\n'
        f"{{ {name}_on_the_cpu = ({result} (*)({', '.join(types_of)}))address; }}\n"
        f"static inline {result} {name}({parameters}) {{ return {name}_on_the_cpu({arguments}); }}\n"
    )
