"""Arrays of NumPy between pages that trap, for kernels that take plain addresses.

numba's bounds check sees indices of arrays and no addresses. Here the kernels themselves run, as they are in use, and
an access to the byte behind an array (or in front of it) ends the process with SIGSEGV. Arrays that kernels make for
themselves are not of NumPy, so they have no such pages.

``python -m support.hostile.guarded_memory after|before`` runs the cases of ``support.hostile.every_kernel`` so.
"""

from __future__ import annotations

import ctypes
import faulthandler
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy._core import _multiarray_umath as core  # type: ignore[attr-defined]

SOURCE = Path(__file__).with_suffix(".c")
SET_HANDLER = 304  # place of PyDataMem_SetHandler in NumPy's table of functions, numpy/core/code_generators

_FUNCTIONS = ("malloc", "calloc", "realloc", "free")


class _Handler(ctypes.Structure):  # PyDataMem_Handler of NEP 49
    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _FUNCTIONS),
    ]


class Guard:
    """Take over the memory of every array that this thread makes from now on.

    Args:
        before: True to trap in front of arrays, False behind them.
    """

    def __init__(self, *, before: bool) -> None:
        self.library = _compiled()
        ctypes.c_int.in_dll(self.library, "guard_before").value = int(before)
        addresses = [ctypes.cast(getattr(self.library, f"guarded_{name}"), ctypes.c_void_p) for name in _FUNCTIONS]
        self._handler = _Handler(b"guarded", 1, None, *addresses)
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self._name = ctypes.create_string_buffer(b"mem_handler")
        of = capsule(ctypes.addressof(self._handler), ctypes.addressof(self._name), None)
        _set_handler()(of)

    @property
    def blocks(self) -> int:
        """Number of arrays that were guarded."""
        return ctypes.c_uint64.in_dll(self.library, "guarded_blocks").value


def _compiled() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "guarded_memory.so"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
        return ctypes.CDLL(str(library))


def _set_handler() -> ctypes._CFuncPtr:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[SET_HANDLER])


def main() -> None:
    from support.hostile import every_kernel

    faulthandler.enable()
    guard = Guard(before=sys.argv[1] == "before")
    if sys.argv[2:] == ["planted"]:
        planted(before=sys.argv[1] == "before")
    every_kernel.main()
    print(f"\n{guard.blocks} arrays guarded", file=sys.stderr)


def planted(*, before: bool) -> None:
    """A kernel that reads 64 numbers from an address, of which one is not in the array."""
    from gpuboost.kernels.common.jit import for_this_process
    from gpuboost.kernels.common.vector import at_least

    @for_this_process
    def read(numbers, offset):  # type: ignore[no-untyped-def]
        return at_least(numbers.ctypes.data + offset, np.float32(0.0))

    numbers = np.zeros(64, np.float32)
    read(numbers, 0)
    print("within", flush=True)
    read(numbers, -4 if before else 4)
    print("beyond", flush=True)


if __name__ == "__main__":
    main()
