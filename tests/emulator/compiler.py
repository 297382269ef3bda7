"""Compile CUDA C for the CPU: g++, and a header that gives the language's words a meaning there.

Two things plain C++ cannot take by macro are rewritten behind the preprocessor, in g++'s copy only:
``extern __shared__ T x[];`` becomes a pointer, and every other shared variable is registered, so that it is filled with
0xff at the start of each block.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

HERE = Path(__file__).resolve().parent
FLAGS = (
    "-std=c++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",  # a * b + c rounds twice: what --fmad=false asks of NVRTC
    "-fno-strict-aliasing",
    "-fno-gnu-unique",  # else copies of one library share the static variables of templates
    "-fstack-clash-protection",  # a frame larger than the page that guards a stack must not step over it
    "-Wall",
    "-Wno-unknown-pragmas",
    "-Wno-attributes",
    "-Wno-unused-function",
    "-Wno-unused-variable",
)
_UNDEFINED = "undefined,float-cast-overflow"
_ADDRESS_AND_UNDEFINED = (f"-fsanitize=address,{_UNDEFINED}", f"-fno-sanitize-recover={_UNDEFINED}")
BUILDS = {
    "plain": ("-O1",),  # two thirds of the time of -O2, and kernels run as fast; a quarter faster than those of -Og
    # Files and lines are all that a report tells of a kernel: -g takes a third longer than -g1.
    # Both at once take two thirds of the time of one after the other; the first to see an error reports it. With -O1
    # the compiler takes twice as long, for checks that then run no faster.
    "address": ("-O0", "-g1", "-fno-omit-frame-pointer", *_ADDRESS_AND_UNDEFINED),
    "thread": ("-O1", "-g1", "-fsanitize=thread"),
    # Instrumented after optimisation, so that what stays in registers is not counted; see traffic.h.
    "counts": ("-O2", "-fsanitize=thread", "-fno-tree-loop-distribute-patterns", "-DCUDA_EMULATOR_COUNTS"),
}
_DYNAMIC = re.compile(r"\bextern\s+__shared__\s+((?:__align__\s*\([^)]*\)\s*)?)([^;\[]+?)\s*\b(\w+)\s*\[\s*\]\s*;")
_STATIC = re.compile(r"\b__shared__\s[^;(){}]*;")
_NAME = re.compile(r"(\w+)\s*(?:\[[^;]*)?$")
_CLUSTER = r"(?:__cluster_dims__\s*\(\s*(\w+)[^)]*\)\s*)?"
_BOUNDS = rf"{_CLUSTER}(?:__launch_bounds__\s*\(((?:[^()]|\([^()]*\))*)\)\s*)?"
_KERNEL = re.compile(rf'extern\s+"C"\s+__global__\s+{_BOUNDS}void\s+{_BOUNDS}(\w+)\s*\(([^)]*)\)')


class CompileError(RuntimeError):
    """What g++ said."""


def _kernels_of(text: str) -> dict[str, tuple[str, str]]:
    """The extern "C" kernels of a preprocessed text: name -> cluster and __launch_bounds__, names of parameters."""
    found = {}
    for match in _KERNEL.finditer(text):
        parameters = " ".join(name[1] for part in match[6].split(",") if (name := _NAME.search(part.strip())))
        found[match[5]] = (f"{match[1] or match[3] or 0}, {match[2] or match[4] or 1024}", parameters)
    return found


def why_not() -> str:
    """Why kernels cannot be compiled on this machine; empty if they can."""
    compiler = _compiler()
    return "" if shutil.which(compiler) else f"the CUDA emulator needs a C++ compiler, and {compiler} is not there"


def _compiler() -> str:
    return os.environ.get("CXX", "g++")


@cache
def cache_folder() -> Path:
    """Where libraries are kept between runs: GPUBOOST_EMULATOR_CACHE, or the user's cache, or a temporary folder."""
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuboost" / "emulator"
    for candidate in (os.environ.get("GPUBOOST_EMULATOR_CACHE"), users):
        if candidate:
            try:
                Path(candidate).mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=candidate):
                    return Path(candidate)
            except OSError:
                continue
    return Path(tempfile.mkdtemp(prefix="gpuboost-emulator-"))


@contextmanager
def made_once(file: Path) -> Iterator[bool]:
    """Whether a file is to be made; another process or thread that asks for it meanwhile waits, and then finds it.

    Processes of tests ask for the same modules at the same time. Where files cannot be locked, each makes them.
    """
    if file.exists() or fcntl is None:
        yield not file.exists()
        return
    with open(file.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield not file.exists()
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # said, not left to close: a child that was forked has the file open too


@cache
def _machinery() -> str:
    """What a library depends on besides its source: the headers, and this file."""
    return "".join(path.read_text() for path in (*sorted(HERE.glob("*.h")), Path(__file__)))


def _declarators(text: str) -> list[str]:
    """Split "T a[2][3], b" at the commas outside brackets."""
    depth, start, parts = 0, 0, []
    for i, letter in enumerate(text):
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _registered(found: re.Match[str]) -> str:
    names = (_NAME.search(part.strip()) for part in _declarators(found[0][:-1]))
    return found[0] + "".join(f" CUDA_EMULATOR_SHARED({name[1]});" for name in names if name)


def _translated(text: str) -> str:
    """The C++ that g++ is given for a preprocessed module: its text, and an entry point per kernel."""
    kernels = _kernels_of(text)
    body = _STATIC.sub(_registered, _DYNAMIC.sub(r"CUDA_EMULATOR_DYNAMIC_SHARED(\1\2, \3);", text))
    entries = "\n".join(f"CUDA_EMULATOR_ENTRY({name}, {bounds})" for name, (bounds, _) in kernels.items())
    table = "".join(f"{name} {parameters}\\n" for name, (_, parameters) in kernels.items())
    return f'{body}\n#line 1 "entry points"\n{entries}\nCUDA_EMULATOR_KERNELS("{table}")\n'


@cache
def _precompiled(command: tuple[str, ...]) -> Path:
    """A header that stands for cuda_emulator.h, with what the compiler makes of it beside it: a third of its work.

    Where that does not fit (another compiler, other macros), the compiler reads the header itself.
    """
    key = hashlib.sha256("\0".join((*command, _machinery())).encode()).hexdigest()[:32]
    header, made = cache_folder() / f"{key}.h", cache_folder() / f"{key}.h.gch"
    with made_once(made) as missing:
        if missing:
            _precompile(command, header, made)
    return header


def _precompile(command: tuple[str, ...], header: Path, made: Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        text, binary = Path(folder) / "emulator.h", Path(folder) / "emulator.gch"
        text.write_text('#include "cuda_emulator.h"\n')
        _run([*command, "-x", "c++-header", "-I", str(HERE), "-o", str(binary), str(text)])
        text.replace(header)
        binary.replace(made)


def compiled(source: str, options: tuple[str, ...] = (), build: str = "plain") -> Path:
    """The shared library of a module, from the cache if it was made before.

    Args:
        source: CUDA C.
        options: more for the compiler, after its usual ones: "-DNAME=value".
        build: a key of BUILDS.

    Raises:
        CompileError: with the compiler's messages.
    """
    compiler, flags = _compiler(), (*FLAGS, *BUILDS[build], *options)
    key = hashlib.sha256("\0".join((compiler, *flags, _machinery(), source)).encode()).hexdigest()[:32]
    library = cache_folder() / f"{key}.so"
    with made_once(library) as missing:
        if missing:
            _compile(source, (compiler, *flags), options, build, library)
    return library


def _compile(source: str, command: tuple[str, ...], options: tuple[str, ...], build: str, library: Path) -> None:
    compiler = command[0]
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        unit, made = Path(folder) / "module.o", Path(folder) / "module.so"
        only = [compiler, "-E", "-x", "c++", "-std=c++17", "-D__CUDA_EMULATOR__=1", *options, "-"]
        text = _run(only, f'#line 1 "module.cu"\n{source}\n')
        language = ("-x", "c++", "-I", str(HERE), "-include", str(_precompiled(command)))
        _run([*command, *language, "-c", "-o", str(unit), "-"], _translated(text))
        libraries = () if build == "counts" else tuple(flag for flag in command if flag.startswith("-fsanitize"))
        _run([compiler, "-shared", *libraries, "-o", str(made), str(unit)])
        made.replace(library)


def _run(command: list[str], text: str | None = None) -> str:
    """What a program prints. A process under a sanitizer is not forked, which copies gigabytes, nor g++ put under it.

    A path and open files (of which Python's are not inherited) are what subprocess needs for posix_spawn.
    """
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [shutil.which(command[0]) or command[0], *command[1:]]
    result = subprocess.run(
        command, input=text, text=True, capture_output=True, check=False, env=environment, close_fds=False
    )
    if result.returncode:
        raise CompileError(result.stderr)
    return result.stdout
