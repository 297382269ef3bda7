"""Devices of an estimator: the backend that predicts, kept between calls, and data that are on a device already."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpuboost import backends
from gpuboost.backends.cuda.device.gpus import gpu_of, open_gpu
from gpuboost.backends.cuda.matrix import CudaMatrix
from gpuboost.backends.devices import choose
from gpuboost.backends.protocol import Backend
from gpuboost.types import Array


class _Kept(threading.local):
    """Backend of an estimator, per thread, since a backend serves one caller at a time; freed with the estimator."""

    def __init__(self) -> None:
        self.machines: WeakKeyDictionary[object, tuple[tuple[str, int], Backend]] = WeakKeyDictionary()


_kept = _Kept()


def machine_of(owner: object, device: str, threads: int) -> Backend:
    """The backend of that kind that ``owner`` used last in this thread, or a new one."""
    held = _kept.machines.get(owner)
    if held is None or held[0] != (device, threads):
        held = (device, threads), backends.get(device, threads)
        _kept.machines[owner] = held
    return held[1]


def as_device_array(X: Any, device: object) -> Any:
    """X, or a ``DeviceMatrix`` if X is on a GPU. Raises DeviceError if ``device`` is another one."""
    where = gpu_of(X)
    if where is None:
        return X
    return CudaMatrix.of(open_gpu(choose(device, on=where).name), X)


def on_host(values: Any) -> Any:
    """Target or weights as a host array, copied if they are on a GPU."""
    where = gpu_of(values)
    if where is None:
        return values
    runtime = open_gpu(where)
    return runtime.download(runtime.as_device_array(values))


def to_caller_device(machine: Backend, x: Any, found: Array, finish: Callable[[Array], Any] | None = None) -> Any:
    """``finish`` of a backend's result: on the device if x is there, unless it is text.

    The scores of a single output stay on the device; other results are finished on the host.
    """
    if not isinstance(x, CudaMatrix):
        return found if finish is None else finish(found)
    if finish is None or (found.shape[0] == 1 and len(found.shape) == 2 and _hands_on(finish)):
        x.wait()
        return found if finish is None else found[0]
    answer = np.asarray(finish(machine.to_host(found)))
    return x.on_same_device(answer) if answer.dtype.kind in "biuf" else answer


def _hands_on(finish: Callable[[Array], Any]) -> bool:
    """True if ``finish`` only reshapes (1, n) scores to (n,)."""
    probe = np.zeros((1, 1))
    answer = finish(probe)
    return np.shape(answer) == (1,) and np.shares_memory(answer, probe)


def _forget() -> None:
    _kept.machines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # a backend's threads do not exist in a forked child
