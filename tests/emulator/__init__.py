"""A CUDA device for tests on machines without one: the kernels' own text, compiled by g++ and run on the CPU.

    runtime = emulated_runtime(order="reverse")
    add = runtime.kernel(source("common/common.cuh", "gradients/pointwise.cu"), "add_leaves")
    add((4,), (256,), (scores, leaves, np.int32(n)))
    runtime.wait()

``runtime.cp`` is the emulated CuPy, with what was launched in ``runtime.cp.counts``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from emulator.arrays import FakeCudaError
from emulator.compiler import CompileError, why_not
from emulator.counts import Traffic
from emulator.fake_cupy import FakeCupy
from emulator.launch import ORDERS, Kernel, KernelError, Module, Schedule
from emulator.memory import OutOfBoundsError
from gpuboost.backends.cuda.device.gpus import use
from gpuboost.backends.cuda.device.runtime import CupyRuntime

__all__ = [
    "ORDERS",
    "CompileError",
    "FakeCudaError",
    "FakeCupy",
    "Kernel",
    "KernelError",
    "Module",
    "OutOfBoundsError",
    "Schedule",
    "Traffic",
    "emulated_gpu",
    "emulated_runtime",
    "require_compiler",
]


def require_compiler() -> None:
    """Skip the test where kernels cannot be compiled."""
    if reason := why_not():
        pytest.skip(reason)


@contextmanager
def emulated_gpu(order: str = "forward", **given: Any) -> Iterator[FakeCupy]:
    """``device="cuda"`` is an emulated GPU meanwhile. Skips the test where there is no C++ compiler.

    Args:
        order: see ``emulated_runtime``.
        **given: of ``FakeCupy``.
    """
    require_compiler()
    build = given.pop("build", None) or os.environ.get("GPUBOOST_SANITIZE") or "plain"
    cupy = FakeCupy(Schedule(order), build, **given)
    with use(cupy):
        yield cupy


def emulated_runtime(
    order: str = "forward",
    workers: int = 1,
    sanitize: str | None = None,
    seed: int = 0,
    count: bool = False,
    chained: bool = True,
) -> CupyRuntime:
    """The runtime of the CUDA driver over an emulated device. Skips the test where there is no C++ compiler.

    Args:
        order: in which threads and blocks run: "forward", "reverse" or "random".
        workers: host threads that share the blocks of a launch.
        sanitize: "address" or "thread", in a process made for it (see ``sanitized``); None: what the
            environment's GPUBOOST_SANITIZE says, or none.
        seed: of the random order.
        count: count memory traffic: ``runtime.cp.traffic()`` and ``shared_atomics()``.
        chained: False: the race detector looks between blocks too, each and the two that run next.
    """
    require_compiler()
    build = "counts" if count else sanitize or os.environ.get("GPUBOOST_SANITIZE") or "plain"
    return CupyRuntime(FakeCupy(Schedule(order, seed, workers, chained=chained), build), name="emulated")
