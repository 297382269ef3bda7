"""Kernels written in Python: numba.cuda compiles the loop over rows, and a shell of CUDA C launches it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuboost.backends.cuda.codegen.functions import C_TYPES, DeviceFunction, Kind, Record

_SHELL = """
extern "C" __global__ void __launch_bounds__(256) {name}({parameters})
{{
    rows_of_thread(blockIdx.x * blockDim.x + threadIdx.x, n, gridDim.x * blockDim.x, {arguments});
}}
"""


def row_kernel(
    name: str, function: Callable[..., Any], parameters: dict[str, Kind], argument: str = "", *records: Record
) -> tuple[str, str, tuple[DeviceFunction, ...]]:
    """The text of a kernel, its name and the function that it calls.

    Args:
        name: name of the kernel.
        function: (begin, stop, step, *parameters) -> None, for the rows ``range(begin, stop, step)``.
        parameters: names and types of the kernel's parameters; ``n``, the number of rows, is one of them.
        argument: as of ``DeviceFunction``.
        records: named tuples that the function takes in the place of the parameters of their fields.
    """
    declared = ", ".join(f"{C_TYPES[kind][0]} {parameter}" for parameter, kind in parameters.items())
    kinds: tuple[Kind, ...] = ("i32", "i32", "i32", *parameters.values())
    numbers = {parameter: number for number, parameter in enumerate(parameters, 3)}
    taken = tuple((numbers[record._fields[0]], record) for record in records)
    rows = DeviceFunction("rows_of_thread", function, kinds, "none", argument, taken)
    return _SHELL.format(name=name, parameters=declared, arguments=", ".join(parameters)), name, (rows,)
