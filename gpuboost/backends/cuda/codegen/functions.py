"""Python functions that CUDA C calls by name: their C types, and the shell that gives them a C signature.

Two compilers take the shell: numba.cuda on a GPU (``numba_cuda.py``), numba for the CPU in the emulator of the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["f64", "row", "i32", "const u32*", "f64*"]
"""Type of an argument. "row": float64 numbers of all outputs; in C three arguments: address, stride and count"""

Returned: TypeAlias = Literal["f64", "pair", "none"]
"""C type of the result. "pair": two float64, which C receives by one more argument, the address of both"""

C_TYPES: dict[str, tuple[str, ...]] = {
    "f64": ("double",), "row": ("double *", "long long", "long long"), "i32": ("int",),
    "const u32*": ("const unsigned int *",), "f64*": ("double *",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A Python function under the name by which CUDA C calls it."""

    name: str
    function: Callable[..., Any]
    kinds: tuple[Kind, ...]
    returned: Returned = "f64"

    @property
    def c_arguments(self) -> tuple[str, ...]:
        """C types of the arguments, the result's address last if there is one."""
        types = tuple(c_type for kind in self.kinds for c_type in C_TYPES[kind])
        return (*types, "double *") if self.returned == "pair" else types

    @property
    def c_result(self) -> str:
        return "double" if self.returned == "f64" else "void"

    @property
    def declaration(self) -> str:
        """The line of CUDA C that makes the function known to its callers."""
        return f'extern "C" __device__ {self.c_result} {self.name}({", ".join(self.c_arguments)});\n'

    def shell(self, row: Callable[..., Any]) -> Callable[..., Any]:
        """A Python function of the C arguments. ``row``: makes an array of an address, a stride and a count."""
        parameters, arguments = [], []
        for number, kind in enumerate(self.kinds):
            parts = [f"x{number}_{part}" for part in range(len(C_TYPES[kind]))]
            parameters += parts
            arguments.append(f"row({', '.join(parts)})" if kind == "row" else parts[0])
        call = f"function({', '.join(arguments)})"
        body = {"f64": f"return {call}", "none": call, "pair": f"both[0], both[1] = {call}"}[self.returned]
        if self.returned == "pair":
            parameters.append("both")
        names = {"function": self.function, "row": row}
        exec(f"def {self.name}({', '.join(parameters)}):\n    {body}\n", names)
        made: Callable[..., Any] = names[self.name]
        return made
