"""CUDA C and Python functions linked to one cubin: NVRTC, numba.cuda and nvJitLink, without contraction; kept on disk.

A cubin is kept under a hash of its text, of the functions, of the architecture and of the versions of the compilers. A
process that finds it there imports no compiler.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias, final

from gpuboost.backends.cuda.codegen.fingerprint import fingerprint
from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.codegen.numba_cuda import load, ltoir
from gpuboost.backends.cuda.codegen.options import FLUSH, LINK, OPTIONS
from gpuboost.errors import DeviceError

UNUSED_DAYS = 30  # after which a file is removed
_DAY = 86_400.0
_compiling = threading.RLock()
Functions: TypeAlias = tuple[DeviceFunction, ...]
_COMPILERS = (
    "numba",
    "numba-cuda",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "nvidia-nvjitlink",
    "nvidia-nvvm",
    "nvidia-cuda-nvcc",
)
"""NVVM is in nvidia-nvvm for CUDA 13, and in nvidia-cuda-nvcc for CUDA 12."""


@final
class Linker:
    """Modules for the current device of a ``cupy`` namespace.

    The methods raise DeviceError if numba-cuda is not installed, or a function cannot be compiled.
    """

    def __init__(self, cp: Any) -> None:
        self._cp = cp
        self._architecture = int(cp.cuda.Device().compute_capability)

    def module(self, source: str, functions: Functions) -> Any:
        """CuPy's module of a CUDA C text, with Python functions linked in."""
        return self._cp.RawModule(path=str(cubin(source, functions, self._architecture)))

    def check(self, functions: Functions, *, beside: bool = False) -> None:
        """Compile the functions, for modules that are linked later.

        Args:
            functions: Python functions that kernels are to call.
            beside: compile in another thread, for functions that are known to compile. NVRTC compiles other modules
                meanwhile.
        """
        missing = [function for function in functions if not _is_compiled(function, self._architecture)]
        if missing:
            _require_numba_cuda()
        if missing and beside:
            _in_a_thread(missing, self._architecture)
        else:
            for function in missing:
                compiled(function, self._architecture)


def with_declarations(source: str, functions: Functions) -> str:
    """The text, behind declarations of the functions."""
    return "".join(function.declaration for function in functions) + source


def cubin(source: str, functions: Functions, architecture: int) -> Path:
    """The file of a linked module for sm_<architecture>; compiled if it is not on disk."""
    prints = [fingerprint(function.function) for function in functions]
    if None in prints:  # a function reads what has no hash: for this process only
        return _written(link(source, functions, architecture)[0], Path(tempfile.mkdtemp()) / "linked.sm")
    path = _path(architecture, *LINK, with_declarations(source, functions), *map(str, prints))
    return path if _is_kept(path) else _written(link(source, functions, architecture)[0], path)


def compiled(function: DeviceFunction, architecture: int) -> bytes:
    """LTO-IR of a function for sm_<architecture>; compiled if it is not on disk.

    Raises:
        DeviceError: if numba-cuda is not installed, or cannot compile the function.
    """
    path = _path_of(function, architecture)
    if path is None:
        return _compiled_here(function, architecture)
    with _compiling:  # which another thread may be doing
        if not _is_kept(path):
            path = _written(_compiled_here(function, architecture), path)
    return path.read_bytes()


def _is_compiled(function: DeviceFunction, architecture: int) -> bool:
    path = _path_of(function, architecture)
    return path is not None and _is_kept(path)


def _path_of(function: DeviceFunction, architecture: int) -> Path | None:
    """The file of a function's LTO-IR; None if it reads what has no hash."""
    code = fingerprint(function.function)
    return None if code is None else _path(architecture, function.declaration, code)


@cache
def _compiled_here(function: DeviceFunction, architecture: int) -> bytes:
    _require_numba_cuda()
    return ltoir(function, architecture)


def _in_a_thread(functions: list[DeviceFunction], architecture: int) -> None:
    def compile_all() -> None:
        with suppress(DeviceError):  # which is raised again where the function is needed
            for function in functions:
                compiled(function, architecture)

    load()
    threading.Thread(target=compile_all, name="gpuboost: numba.cuda").start()


def link(source: str, functions: Functions, architecture: int, *, to_ptx: bool = False) -> tuple[bytes, str]:
    """The linked module as a cubin, or as PTX, and what ptxas says of its kernels. Always compiles.

    Raises:
        DeviceError: if numba-cuda is not installed, or a function cannot be compiled.
    """
    nvjitlink = _bindings()
    inputs = [(_of_cuda(with_declarations(source, functions), architecture), "kernels")]
    inputs += [(compiled(function, architecture), function.name) for function in functions]
    options = [*LINK, f"-arch=sm_{architecture}", *(("-ptx",) if to_ptx else ("-Xptxas=-v", "-verbose"))]
    handle = nvjitlink.create(len(options), options)
    try:
        try:
            for code, name in inputs:
                nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, code, len(code), name)
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError as error:
            raise DeviceError(f"device: nvJitLink could not link a kernel: {_error_log(nvjitlink, handle)}") from error
        if to_ptx:
            code = _filled(nvjitlink.get_linked_ptx_size(handle), lambda room: nvjitlink.get_linked_ptx(handle, room))
        else:
            size = nvjitlink.get_linked_cubin_size(handle)
            code = _filled(size, lambda room: nvjitlink.get_linked_cubin(handle, room))
        log = _filled(nvjitlink.get_info_log_size(handle), lambda room: nvjitlink.get_info_log(handle, room))
        return code, log.rstrip(b"\0").decode()
    finally:
        nvjitlink.destroy(handle)


def folder() -> Path:
    """Folder of linked kernels: GPUBOOST_CUBIN_CACHE, or one in the user's cache."""
    chosen = os.environ.get("GPUBOOST_CUBIN_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuboost" / "cubins"


def _path(architecture: int, *parts: str) -> Path:
    """The file of what is made of these parts."""
    text = "\0".join((*compiler_versions(), *OPTIONS, FLUSH, str(architecture), *parts))
    return folder() / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.sm_{architecture}"


def _is_kept(path: Path) -> bool:
    """True if a file is on disk; it then counts as used today."""
    try:
        if time.time() - path.stat().st_mtime > _DAY:
            os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:  # a folder that is only read
        pass
    return True


@cache
def compiler_versions() -> tuple[str, ...]:
    """Versions of the installed compilers; wheels for CUDA 12 have names that end in -cu12."""
    versions = []
    for name in _COMPILERS:
        for package in (name, f"{name}-cu12"):
            with suppress(metadata.PackageNotFoundError):
                versions.append(f"{package} {metadata.version(package)}")
    return tuple(versions)


def _require_numba_cuda() -> None:
    """Raise DeviceError if numba-cuda is not installed."""
    if find_spec("numba_cuda") is None:
        raise DeviceError(
            "device: a GPU needs numba-cuda to compile formulas, and it is not installed: "
            "pip install 'gpuboosting[cuda13]', or 'gpuboosting[cuda12]' for an older driver."
        )


def _bindings() -> Any:
    """nvJitLink's functions. Raises DeviceError if numba-cuda is not installed, which brings them."""
    _require_numba_cuda()
    from cuda.bindings import nvjitlink

    return nvjitlink


def _of_cuda(text: str, architecture: int) -> bytes:
    """LTO-IR of CUDA C, by NVRTC."""
    from cuda.bindings import nvrtc

    status, program = nvrtc.nvrtcCreateProgram(text.encode(), b"module.cu", 0, [], [])
    options = [option.encode() for option in (*OPTIONS, FLUSH, "-dlto", f"-arch=sm_{architecture}")]
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log = _filled(size, lambda room: nvrtc.nvrtcGetProgramLog(program, room))
            raise DeviceError(f"device: NVRTC could not compile a kernel: {log.rstrip(bytes(1)).decode()}")
        _, size = nvrtc.nvrtcGetLTOIRSize(program)
        return _filled(size, lambda room: nvrtc.nvrtcGetLTOIR(program, room))
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _filled(size: int, fill: Callable[[bytearray], object]) -> bytes:
    room = bytearray(size)
    fill(room)
    return bytes(room)


def _error_log(nvjitlink: Any, handle: Any) -> str:
    log = _filled(nvjitlink.get_error_log_size(handle), lambda room: nvjitlink.get_error_log(handle, room))
    return log.rstrip(b"\0").decode()


def _written(code: bytes, path: Path) -> Path:
    """The file with this content; two processes that write it at once do no harm. Removes files that are not used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(code)
        Path(file.name).replace(path)
    except OSError:  # no place in the user's cache
        return _written(code, Path(tempfile.mkdtemp()) / path.name)
    now = time.time()
    for other in path.parent.glob("*.sm_*"):
        with suppress(OSError):
            if now - other.stat().st_mtime > UNUSED_DAYS * _DAY:
                other.unlink()
    return path
