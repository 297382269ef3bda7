"""Arrays of the caller on a device or on the host: recognised, copied, and returned where the caller's rows are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.gpus import gpu_of, open_gpu
from gpuboost.backends.devices import choose
from gpuboost.backends.optional_verbs import Evaluator
from gpuboost.backends.protocol import Backend
from gpuboost.data.dataset import Dataset
from gpuboost.data.tables import Table
from gpuboost.scoring.answers import Answer
from gpuboost.types import Array, DeviceMatrix


def as_device_array(X: Any, device: object) -> Any:
    """X, or a ``DeviceMatrix`` if X is on a GPU. Raises DeviceError if ``device`` is another one."""
    where = gpu_of(X)
    if where is None:
        return X
    from gpuboost.backends.cuda.inputs.matrix import CudaMatrix  # it imports numba

    return CudaMatrix.of(open_gpu(choose(device, on=where).name), X)


def size_of(x: Table | Dataset) -> tuple[int, str | None]:
    """The number of stored values, and the GPU that holds them; None if they are in the host's memory."""
    if isinstance(x, Dataset):
        return x.n_values, x.device
    matrix = x.matrix
    if isinstance(matrix, DeviceMatrix):
        return matrix.shape[0] * matrix.shape[1], matrix.device
    return int(matrix.nnz) if hasattr(matrix, "nnz") else x.shape[0] * x.shape[1], None


def uploader(on: str) -> Callable[[NDArray[Any]], DeviceMatrix] | None:
    """The function that copies a host array to the GPU that trains; None if the CPU does, or several GPUs."""

    def upload(array: NDArray[Any]) -> DeviceMatrix:
        from gpuboost.backends.cuda.inputs.matrix import CudaMatrix  # it imports numba

        runtime = open_gpu(on)
        return CudaMatrix.of(runtime, runtime.upload(array))

    return upload if on.startswith("cuda") else None


def on_host(values: Any) -> Any:
    """Target or weights as a host array, copied if they are on a GPU."""
    where = gpu_of(values)
    if where is None:
        return values
    runtime = open_gpu(where)
    return runtime.download(runtime.as_device_array(values))


def to_caller_device(machine: Backend, x: Any, found: Array, answer: Answer | None = None) -> Any:
    """The answer of a backend's result, or the result itself: on the device if x is there, unless it is text.

    Where the answer has no rule for a device, the host makes it of a copy of the result.
    """
    if isinstance(x, np.ndarray) or not isinstance(x, DeviceMatrix):
        return found if answer is None else answer(found)
    if answer is None or answer.rule is not None:
        there = found if answer is None else cast(Evaluator, machine).answer(answer, found)
        x.wait()
        return there
    of_host = np.asarray(answer(machine.to_host(found)))
    return x.on_same_device(of_host) if of_host.dtype.kind in "biuf" else of_host
