"""Devices of this machine, and the reasons why some cannot be used. Starts no backend."""

from __future__ import annotations

import os
import re
import warnings
from functools import cache
from importlib.metadata import version

from gpuboost.backends.cuda.device.gpus import Gpu, gpus
from gpuboost.backends.host.quota import quota_processors
from gpuboost.errors import DeviceError, RecipeError
from gpuboost.records import dataclass

AUTO_CELLS = 250_000
"""Number of values of X from which "auto" takes a GPU. From there on, an H200 took a third of the time of 16 cores or
less (the benchmark ``gpu-speed --case threshold``, 100 trees of depth 6: 0.04 and 0.14 s at 280,000 values). Smaller
fits take less than the start of a GPU, some tenths of a second once in a process. Kernels are taken as compiled."""

OTHERWISE = ". Use device='cpu' or 'auto'."


@dataclass(frozen=True, slots=True)
class Device:
    """One machine to train on."""

    name: str  # value for ``device=``
    kind: str  # "cpu" or "cuda"
    usable: bool
    description: str
    why_not: str = ""  # empty if usable
    memory: int | None = None  # bytes, of a GPU


@dataclass(frozen=True, slots=True)
class Choice:
    """The device a fit runs on."""

    name: str
    why: str


def usable_threads() -> int:
    """Number of cores this process may use, by its affinity, its container's quota and OMP_NUM_THREADS if it is set.

    joblib sets that variable in its worker processes, so a grid search does not start workers times cores threads.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "")
    n_cores = processors()
    usable = min(_cores(n_cores, os.environ.get("LOKY_MAX_CPU_COUNT", "")), n_cores)
    return min(usable, int(asked)) if asked.isdecimal() and int(asked) > 0 else usable


@cache
def _cores(processors: int, asked: str) -> int:
    """joblib's count, which reads files: as long as predicting some rows. The arguments are what may change it."""
    from joblib import cpu_count

    count: int = cpu_count()
    return count


def processors() -> int:
    """Number of processors that this process may run on, or whose time its container's quota is, if that is less.

    More threads than that take turns, and wait for each other.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, quota_processors() or allowed)


def kernel_cache() -> str:
    """Folder of the cached compiled kernels; "none" if no folder can be written in."""
    from gpuboost.kernels.disk_cache.folders import usable_folder

    return usable_folder() or "none"


def devices() -> list[Device]:
    """The CPU, and every GPU that the driver lists, or the reason why there is none."""
    cpu = Device("cpu", "cpu", True, f"{usable_threads()} threads, numba {version('numba')}")
    try:
        return [cpu, *map(_listed, gpus())]
    except DeviceError as error:
        return [cpu, Device("cuda", "cuda", False, "NVIDIA GPU", str(error))]


def choose(device: object, cells: int | None = None, on: str | None = None) -> Choice:
    """The device that ``device=`` names. A device asked for by name is never replaced by another one.

    "cuda" is the GPU that holds the data, or the first usable one. "auto" is the GPU that holds the data; or the first
    usable one if the data are large; or the CPU.

    Args:
        device: "auto", "cpu", "cuda" or "cuda:N".
        cells: number of values of X, rows times features; None if a GPU is never worthwhile, as to predict few rows.
        on: the GPU that holds X, such as "cuda:0"; None for the host.

    Raises:
        RecipeError: if ``device`` is none of these words.
        DeviceError: if the device is not usable, or X is on another GPU.
    """
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise RecipeError(f"device: must be 'auto', 'cpu', 'cuda' or 'cuda:N'; got {device!r}.")
    if on is not None:
        return _where_the_data_live(device, on)
    if device == "cpu":
        return Choice("cpu", "asked for by device='cpu'.")
    if device == "auto":
        return _automatic(cells)
    usable = _usable(device)
    if device == "cuda":
        return Choice(usable[0].name, f"the first usable GPU for device='cuda': {usable[0].description}.")
    return Choice(device, f"asked for by device={device!r}: {usable[0].description}.")


def choose_to_predict(device: object) -> Choice:
    """The device to predict rows of the host with: the CPU, with a warning, if a model's GPU is missing.

    The result is the same. Raises RecipeError as ``choose``.
    """
    try:
        return choose(device)
    except DeviceError as error:
        why = str(error).removesuffix(OTHERWISE)
        warnings.warn(f"{why}. The CPU predicts instead, the same to the last bit.", stacklevel=5)
        return Choice("cpu", why)


def auto_cells() -> int:
    """Number of values of X from which "auto" takes a GPU: GPUBOOST_AUTO_CELLS, or ``AUTO_CELLS``."""
    text = os.environ.get("GPUBOOST_AUTO_CELLS", "")
    return int(text) if text.isdecimal() else AUTO_CELLS


def _automatic(cells: int | None) -> Choice:
    if cells is None or cells < auto_cells():
        size = "" if cells is None else f": {cells:,} values are fewer than {auto_cells():,}"
        return Choice("cpu", f"device='auto' took the CPU{size}. device='cuda' asks for a GPU whatever the size.")
    try:
        first = _usable("cuda")[0]
    except DeviceError as error:
        why = str(error).removeprefix("device: 'cuda' is not usable; ").removesuffix(OTHERWISE)
        return Choice("cpu", f"device='auto' took the CPU; {why}.")
    return Choice(first.name, f"device='auto' took the first usable GPU for {cells:,} values: {first.description}.")


def _where_the_data_live(device: str, on: str) -> Choice:
    if device not in ("auto", "cuda", on):
        raise DeviceError(
            f"device: X is on {on}, and device={device!r}. Pass device={on!r}, or bring X to the host first "
            "(X.get() in CuPy, X.cpu() in torch)."
        )
    return Choice(on, f"X is on {on}, and device={device!r}.")


def _usable(device: str) -> list[Device]:
    """The usable GPUs among those that ``device`` may mean, at least one. Raises DeviceError with the reasons."""
    try:
        listed = [gpu for gpu in map(_listed, gpus()) if device in ("cuda", gpu.name)]
    except DeviceError as error:
        raise DeviceError(f"device: {device!r} is not usable; {error}{OTHERWISE}") from error
    usable = [gpu for gpu in listed if gpu.usable]
    if usable:
        return usable
    reasons = [f"{gpu.name} ({gpu.description}): {gpu.why_not}" for gpu in listed]
    if not listed:
        reasons = [f"the GPUs of this process are {', '.join(f'cuda:{gpu.index}' for gpu in gpus())}"]
    raise DeviceError(f"device: {device!r} is not usable; {'; '.join(reasons)}{OTHERWISE}")


def _listed(gpu: Gpu) -> Device:
    about = f"{gpu.name}, {gpu.memory / 2**30:.1f} GiB, compute capability {gpu.capability}"
    return Device(f"cuda:{gpu.index}", "cuda", not gpu.why_not, about, gpu.why_not, gpu.memory)
