"""Draws of rows by their scores, on every machine: gradients to draw from, and the rows and weights that were drawn."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from emulator import ORDERS, emulated_runtime
from support.builders import random_gradients

from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.cuda.trees.tree import STATE, as_records
from gpuboost.types import Array, Gradients


@cache
def machines() -> dict[str, tuple[CupyRuntime, Cuda]]:
    runtimes = {order: emulated_runtime(order) for order in ORDERS}
    return {order: (runtime, Cuda(runtime)) for order, runtime in runtimes.items()}


def device(order: str = "forward") -> CupyRuntime:
    return machines()[order][0]


def cuda(order: str = "forward") -> Cuda:
    return machines()[order][1]


def host(array: Any) -> Array:
    """By the stream that made it."""
    return next(runtime for runtime, _ in machines().values() if runtime.cp is array._cp).download(array)


def states_of(array: Any) -> Array:
    """(k,) STATE"""
    return as_records(host(array), STATE)


def several(seed: int, n: int, k: int, kind: str, whole: bool = False) -> Gradients:
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 5, n).astype(np.int32) if whole else None
    parts = [random_gradients(rng, n, kind) for _ in range(k)]
    return Gradients(np.concatenate([p.g for p in parts]), np.concatenate([p.h for p in parts]), m)


def drawn(sample: Any) -> tuple[bytes, bytes]:
    """Bytes of the rows and of their inverse probabilities."""
    rows, by = sample.rows, sample.inverse_probability
    if not isinstance(rows, np.ndarray):
        count = int(host(sample.m)[0])
        assert host(sample.lost)[0] == 0
        rows, by = host(rows)[:count], host(by)[:count]
    assert (rows.dtype, by.dtype) == (np.int32, np.float32)
    return rows.tobytes(), by.tobytes()
