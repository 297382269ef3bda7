"""Compile CUDA C for real devices on a machine without one: NVRTC (pip install nvidia-cuda-nvrtc), or else nvcc.

With the flags that CuPy adds to ours. What comes back per kernel is what ptxas says of it (registers, spills, shared
memory), and the PTX, in which a contraction or an atomic operation can be seen.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from emulator.compiler import cache_folder, made_once

from gpuboost.backends.cuda.codegen.fingerprint import fingerprint
from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.codegen.linking import compiler_versions, link
from gpuboost.backends.cuda.device.sources import OPTIONS

Functions = tuple[DeviceFunction, ...]

ARCHITECTURES = (75, 80, 90, 100)
PTX_OF = 90  # that of the everyday tests: one compilation for it gives what ptxas says, and the PTX
CUPY_ADDS = ("-ftz=true",)  # and cannot be told not to


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes."""

    registers: int  # of a thread
    spills: int  # bytes stored and loaded because the registers did not do
    stack: int  # bytes of local memory of a thread
    shared: int  # bytes of a block, without the dynamic ones


class CompilerError(RuntimeError):
    """What the device's compiler said."""


def resources(source: str, architecture: int, functions: Functions = ()) -> dict[str, Resources]:
    """What each kernel of a module takes on sm_<architecture>; kept between runs. Skips the test without a compiler.

    functions: Python functions that are linked with the module.
    """
    kept = _made(source, architecture, OPTIONS, functions, ".json")
    return {kernel: Resources(**taken) for kernel, taken in json.loads(kept.read_text()).items()}


def ptx(source: str, options: tuple[str, ...] = OPTIONS, functions: Functions = (), architecture: int = PTX_OF) -> str:
    """The PTX of a module; kept between runs. Skips the test without a compiler."""
    return _made(source, architecture, options, functions, ".ptx").read_text()


def _made(source: str, architecture: int, options: tuple[str, ...], functions: Functions, suffix: str) -> Path:
    """The file of a module's resources (.json) or PTX (.ptx); compiled where it is not kept.

    NVRTC says both at once. To link a module again for its PTX takes half as long as for its resources.
    """
    compiler = Linker() if functions else device_compiler()
    prints = [f"{function.declaration}{fingerprint(function.function)}" for function in functions]
    parts = (compiler.version, *options, *CUPY_ADDS, *prints, source, str(architecture), inspect.getsource(_parsed))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    files = {suffix: cache_folder() / f"{key}{suffix}" for suffix in (".json", ".ptx")}
    with made_once(files[suffix]) as missing:
        if missing and functions:
            found = compiler.linked(source, architecture, functions, suffix)
        elif missing:
            log, text = compiler.compiled(source, architecture, options)
            found = {".json": log, ".ptx": text}
        else:
            found = {}
        if log := found.get(".json"):
            found[".json"] = json.dumps({kernel: asdict(taken) for kernel, taken in _parsed(log).items()})
        for kind, text in found.items():
            _keep(files[kind], text)
    return files[suffix]


def _keep(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    Path(file.name).replace(path)


def _parsed(log: str) -> dict[str, Resources]:
    found: dict[str, Resources] = {}
    for part in log.split("Compiling entry function '")[1:]:
        numbers = [re.search(pattern, part) for pattern in (r"Used (\d+) registers", r"(\d+) bytes smem")]
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        stack, stores, loads = (int(n) for n in frame.groups()) if frame else (0, 0, 0)
        registers, shared = (int(number[1]) if number else 0 for number in numbers)
        found[part.split("'")[0]] = Resources(registers, stores + loads, stack, shared)
    return found


@cache
def device_compiler() -> Any:
    """NVRTC if its wheel is installed, or nvcc. Skips the test where neither is."""
    if library := _nvrtc_library():
        return Nvrtc(library)
    if program := shutil.which("nvcc"):
        return Nvcc(program)
    pytest.skip("compiling for devices needs nvcc, or: pip install nvidia-cuda-nvrtc")


def _nvrtc_library() -> str:
    """The library of the wheel for CUDA 13, or of that for CUDA 12; empty if neither is installed."""
    for package in ("nvidia.cu13", "nvidia.cuda_nvrtc"):
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (found.submodule_search_locations or []) if found else []:
            for path in sorted(Path(folder, "lib").glob("libnvrtc.so.*")):
                return str(path)
    return ""


class Linker:
    """numba.cuda and nvJitLink, for modules that call Python functions, as the library uses them."""

    def __init__(self) -> None:
        if importlib.util.find_spec("numba_cuda") is None:
            pytest.skip("linking Python functions needs: pip install 'numba-cuda[cu13]'")
        self.version = ", ".join(compiler_versions())

    def linked(self, source: str, architecture: int, functions: Functions, suffix: str) -> dict[str, str]:
        """The text of ptxas about a module on sm_<architecture> (.json), or its PTX (.ptx)."""
        if suffix == ".json":
            return {suffix: link(source, functions, architecture)[1]}
        return {suffix: link(source, functions, architecture, to_ptx=True)[0].rstrip(b"\0").decode()}


class Nvrtc:
    """The compiler that CuPy uses, by its C interface."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        self.version = f"NVRTC {major.value}.{minor.value}"

    def compiled(self, source: str, architecture: int, options: tuple[str, ...]) -> tuple[str, str]:
        """The text of ptxas about a module on sm_<architecture>, and its PTX."""
        program = ctypes.c_void_p()
        create = self._library.nvrtcCreateProgram
        self._check(create(ctypes.byref(program), source.encode(), b"module.cu", 0, None, None))
        try:
            every = (
                f"-arch=sm_{architecture}",
                "-Xptxas=-v",
                *options,
                *CUPY_ADDS,
                "--device-as-default-execution-space",
            )
            words = (ctypes.c_char_p * len(every))(*(option.encode() for option in every))
            status = self._library.nvrtcCompileProgram(program, len(every), words)
            if status:
                raise CompilerError(self._text(program, "ProgramLog"))
            return self._text(program, "ProgramLog"), self._text(program, "PTX")
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> str:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, f"nvrtcGet{what}")(program, text))
        return text.value.decode()

    def _check(self, status: int) -> None:
        if status:
            raise CompilerError(self._library.nvrtcGetErrorString(status).decode())


class Nvcc:
    """The toolkit's compiler."""

    def __init__(self, program: str) -> None:
        self._program = program
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        self.version = f"nvcc {said.split('release ')[-1].split(',')[0]}"

    def compiled(self, source: str, architecture: int, options: tuple[str, ...]) -> tuple[str, str]:
        """The text of ptxas about a module on sm_<architecture>, and its PTX."""
        log = self._compile(source, (f"-arch=sm_{architecture}", "-cubin", "-Xptxas", "-v", *options))[1]
        return log, self._compile(source, (f"-arch=compute_{architecture}", "-ptx", *options))[0]

    def _compile(self, source: str, options: tuple[str, ...]) -> tuple[str, str]:
        with tempfile.TemporaryDirectory() as folder:
            text, made = Path(folder) / "module.cu", Path(folder) / "module.out"
            text.write_text(source)
            command = [self._program, *options, *CUPY_ADDS, "-o", str(made), str(text)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                raise CompilerError(result.stderr)
            return made.read_text(errors="replace"), result.stderr
