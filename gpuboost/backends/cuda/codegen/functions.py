"""Python functions that CUDA C calls by name: their C types, and the shell that gives them a C signature.

Two compilers take the shell: numba.cuda on a GPU (``numba_cuda.py``), numba for the CPU in the emulator of the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Literal, TypeAlias

from gpuboost.records import dataclass

Kind: TypeAlias = Literal[
    "f64", "row", "i32", "u32", "u64", "const u32*", "const i32*", "const f64*", "u16*", "u32*", "f64*"
]
"""Type of an argument. "row": float64 numbers of all outputs; in C three arguments: address, stride and count"""

Returned: TypeAlias = Literal["f64", "f32", "i32", "pair", "words", "none"]
"""C type of the result. "pair": two float64, "words": four uint32, which C receives by one more argument, their
address"""

Record: TypeAlias = Any
"""A class of named tuples"""

C_TYPES: dict[str, tuple[str, ...]] = {
    "f64": ("double",), "row": ("double *", "long long", "long long"), "i32": ("int",), "u32": ("unsigned int",),
    "u64": ("unsigned long long",),
    "const u32*": ("const unsigned int *",), "const i32*": ("const int *",), "const f64*": ("const double *",),
    "u16*": ("unsigned short *",), "u32*": ("unsigned int *",), "f64*": ("double *",),
}  # fmt: skip

_RESULTS: dict[str, str] = {"f64": "double", "f32": "float", "i32": "int"}
_BY_ADDRESS: dict[str, tuple[str, int]] = {"pair": ("double *", 2), "words": ("unsigned int *", 4)}
"""C type of the result's address, and how many numbers are there"""


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A Python function under the name by which CUDA C calls it."""

    name: str
    function: Callable[..., Any]
    kinds: tuple[Kind, ...]
    returned: Returned = "f64"
    argument: str = field(default="", compare=False)
    """The argument of an estimator that it comes from, for messages; "" if it is the library's"""
    records: tuple[tuple[int, Record], ...] = ()
    """Arguments that the function takes as one named tuple: the number of the first, and the tuple's class"""

    @property
    def c_arguments(self) -> tuple[str, ...]:
        """C types of the arguments, the result's address last if there is one."""
        types = tuple(c_type for kind in self.kinds for c_type in C_TYPES[kind])
        return (*types, _BY_ADDRESS[self.returned][0]) if self.returned in _BY_ADDRESS else types

    @property
    def c_result(self) -> str:
        return _RESULTS.get(self.returned, "void")

    @property
    def declaration(self) -> str:
        """The line of CUDA C that makes the function known to its callers."""
        records = "".join(f" // {first}: {record._fields}" for first, record in self.records)
        return f'extern "C" __device__ {self.c_result} {self.name}({", ".join(self.c_arguments)});{records}\n'

    def shell(self, row: Callable[..., Any]) -> Callable[..., Any]:
        """A Python function of the C arguments. ``row``: makes an array of an address, a stride and a count."""
        parameters, arguments = [], []
        for number, kind in enumerate(self.kinds):
            parts = [f"x{number}_{part}" for part in range(len(C_TYPES[kind]))]
            parameters += parts
            arguments.append(f"{kind}({', '.join(parts)})" if kind == "row" else parts[0])
        for first, record in reversed(self.records):
            fields = slice(first, first + len(record._fields))
            arguments[fields] = [f"{record.__name__}({', '.join(arguments[fields])})"]
        body = f"function({', '.join(arguments)})"
        if self.returned in _BY_ADDRESS:
            parameters.append("out")
            count = _BY_ADDRESS[self.returned][1]
            body = f"{', '.join(f'out[{i}]' for i in range(count))} = {body}"
        elif self.returned != "none":
            body = f"return {body}"
        names: dict[str, Any] = {record.__name__: record for _, record in self.records}
        names |= {"function": self.function, "row": row}
        exec(f"def {self.name}({', '.join(parameters)}):\n    {body}\n", names)
        made: Callable[..., Any] = names[self.name]
        return made
