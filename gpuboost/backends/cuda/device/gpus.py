"""The GPUs of this machine: their list, the reasons why some cannot be used, and the runtimes of the others.

CuPy is imported when GPUs are listed or opened, and only if there is an NVIDIA driver. Tests pass an emulated ``cupy``
namespace to ``use``, and run the callers of this module unchanged.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from gpuboost.arguments import declares
from gpuboost.backends.cuda.device.device import cupy_runtime, import_cupy, why_not
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.errors import DeviceError
from gpuboost.records import dataclass

DRIVERS = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
NO_CUPY = (
    "; nor is CuPy installed: where there is an NVIDIA GPU, pip install 'gpuboosting[cuda13]' or 'gpuboosting[cuda12]'"
)
_DLPACK_CUDA = (2, 13)  # kDLCUDA and kDLCUDAManaged of dlpack.h


class _Library:
    given: Any = None  # the namespace that ``use`` handed in
    gpus: tuple[Gpu, ...] = ()  # the list that it returned


_library = _Library()


class _Kept(threading.local):
    def __init__(self) -> None:
        self.runtimes: dict[str, CupyRuntime] = {}


_kept = _Kept()


def _forget() -> None:
    _kept.runtimes = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # a GPU's context does not live on in a forked child


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU that the driver lists."""

    index: int
    name: str
    memory: int  # bytes, all of them
    capability: str  # compute capability, "9.0"
    why_not: str  # empty if it can be used


@contextmanager
def use(cp: Any) -> Iterator[None]:
    """Use ``cp`` as the ``cupy`` namespace, and its devices as the GPUs of this machine."""
    before, _library.given, _library.gpus = _library.given, cp, ()
    _forget()
    try:
        yield
    finally:
        _library.given, _library.gpus = before, ()
        _forget()


def gpus() -> tuple[Gpu, ...]:
    """Every GPU that the driver lists, usable or not; at least one.

    Raises:
        DeviceError: if there is none; the message is only the reason, and the remedy.
    """
    if not _library.gpus:
        cp = _namespace()
        if not cp.cuda.is_available():
            raise DeviceError(why_not(cp, 0))
        _library.gpus = tuple(_described(cp, index) for index in range(cp.cuda.runtime.getDeviceCount()))
    return _library.gpus


def open_gpu(name: str) -> CupyRuntime:
    """The runtime of "cuda:N". Each thread has its own, with its own stream, and keeps it.

    Raises:
        DeviceError: if it cannot be used; with the reason, and what to install.
    """
    if name not in _kept.runtimes:
        _kept.runtimes[name] = _opened(int(name.removeprefix("cuda:")))
    return _kept.runtimes[name]


def keep_runtime(runtime: CupyRuntime) -> None:
    """Make a runtime that of its device in this thread: ``open_gpu`` returns it."""
    _kept.runtimes[runtime.name] = runtime


def own_runtime(name: str) -> CupyRuntime:
    """A new runtime of "cuda:N" with its own stream, not tied to a thread. Several may share a GPU.

    Raises:
        DeviceError: as ``open_gpu``.
    """
    return _opened(int(name.removeprefix("cuda:")))


def gpu_of(x: Any) -> str | None:
    """The GPU that holds x, by CuPy, DLPack or ``__cuda_array_interface__``; None if there is none."""
    index = None
    if declares(x, "__dlpack_device__"):
        kind, number = x.__dlpack_device__()
        index = int(number) if int(kind) in _DLPACK_CUDA else None
    elif declares(x, "__cuda_array_interface__"):
        pointer = x.__cuda_array_interface__["data"][0]
        index = int(_namespace().cuda.runtime.pointerGetAttributes(pointer).device) if pointer else 0
    return None if index is None else f"cuda:{index}"


def driver_version(load: Callable[[str], Any] = ctypes.CDLL) -> int:
    """The newest CUDA version that the driver supports, 13000 for 13.0; 0 without a driver. Initialises no GPU."""
    for name in DRIVERS:
        try:
            library, version = load(name), ctypes.c_int()
        except OSError:
            continue
        if library.cuDriverGetVersion(ctypes.byref(version)) == 0:
            return version.value
    return 0


def _opened(index: int) -> CupyRuntime:
    if _library.given is None:
        return cupy_runtime(index)
    if reason := why_not(_library.given, index):
        raise DeviceError(f"device: 'cuda:{index}' is not usable; {reason}. Or use device='cpu'.")
    return CupyRuntime(_library.given, index)


def _namespace() -> Any:
    """CuPy, or its replacement by ``use``. Raises DeviceError with the reason if CuPy or the driver is missing."""
    if _library.given is not None:
        return _library.given
    driver, installed = driver_version(), find_spec("cupy") is not None
    if driver == 0:
        raise DeviceError(
            "no NVIDIA driver was found, which CUDA needs (does nvidia-smi list the GPU?)"
            + ("" if installed else NO_CUPY)
        )
    if not installed:
        raise DeviceError(
            f"the driver is there, for CUDA {driver // 1000}.{driver % 1000 // 10}, but CuPy is not installed: "
            f"{_install(driver)}"
        )
    if os.environ.get("CUDA_VISIBLE_DEVICES", "unset").strip() in ("", "-1"):
        raise DeviceError(
            f"CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']!r} hides every GPU from this process; "
            "unset it, or name GPUs there, such as 0"
        )
    try:
        return import_cupy()
    except DeviceError as error:
        raise DeviceError(str(error).removeprefix("device: ").rstrip(".")) from error


def _install(driver: int) -> str:
    """The package to install for a driver of this CUDA version."""
    if driver >= 13_000:
        return "pip install 'gpuboosting[cuda13]'"
    if driver >= 12_000:
        return "pip install 'gpuboosting[cuda12]'"
    return "update the driver to 525 or newer, then pip install 'gpuboosting[cuda12]'"


def _described(cp: Any, index: int) -> Gpu:
    properties = cp.cuda.runtime.getDeviceProperties(index)
    name = properties["name"]
    return Gpu(
        index=index,
        name=name.decode(errors="replace") if isinstance(name, bytes) else str(name),
        memory=int(properties["totalGlobalMem"]),
        capability=f"{properties['major']}.{properties['minor']}",
        why_not=why_not(cp, index),
    )
