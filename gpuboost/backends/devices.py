"""What this machine offers, and why a device is not usable. Starts no backend."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.metadata import version

from gpuboost._version import __version__
from gpuboost.errors import DeviceError, RecipeError

NO_CUDA = "gpuboost {} trains and predicts on CPUs only: this version holds no CUDA backend"


@dataclass(frozen=True, slots=True)
class Device:
    """One machine to train on."""

    name: str  # what to pass as ``device=``
    kind: str  # "cpu" or "cuda"
    usable: bool
    description: str
    why_not: str = ""  # empty if usable


@dataclass(frozen=True, slots=True)
class Choice:
    """The device a fit runs on."""

    name: str
    why: str


def usable_threads() -> int:
    """The cores this process may use: its affinity and its container's quota, and OMP_NUM_THREADS where that is set.

    joblib sets that variable in its worker processes, so that a grid search does not start workers times cores.
    """
    from joblib import cpu_count

    asked = os.environ.get("OMP_NUM_THREADS", "")
    usable: int = cpu_count()
    return min(usable, int(asked)) if asked.isdecimal() and int(asked) > 0 else usable


def kernel_cache() -> str:
    """The folder that compiled kernels are kept in."""
    from gpuboost.kernels.jit import cache_folder

    return str(cache_folder())


def devices() -> list[Device]:
    """Every kind of device the library knows, the usable ones first."""
    cpu = f"{usable_threads()} threads, numba {version('numba')}"
    return [
        Device("cpu", "cpu", True, cpu),
        Device("cuda", "cuda", False, "NVIDIA GPU", _no_cuda()),
    ]


def choose(device: object) -> Choice:
    """The device that ``device=`` names; "auto" is the fastest usable one.

    Raises
    ------
    RecipeError
        If it is not "auto", "cpu", "cuda" or "cuda:N".
    DeviceError
        If it is not usable; nothing else is taken in its place.
    """
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise RecipeError(f"device: must be 'auto', 'cpu', 'cuda' or 'cuda:N'; got {device!r}.")
    if device.startswith("cuda"):
        raise DeviceError(f"device: {device!r} is not usable; {_no_cuda()}. Use device='cpu' or 'auto'.")
    if device == "auto":
        return Choice("cpu", f"device='auto' took the CPU; {_no_cuda()}.")
    return Choice("cpu", "asked for by device='cpu'.")


def _no_cuda() -> str:
    return NO_CUDA.format(__version__)
