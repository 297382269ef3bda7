"""Tests of a real GPU: ``python -m pytest tests/device -m cuda``. Without one each is skipped, and says why.

``GPUBOOST_DEVICE_TESTS=emulated`` runs them on the emulated one, on few rows: it tests the tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
from emulator import emulated_gpu

import gpuboost as gb
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.backends.cuda.device.runtime import CupyRuntime

EMULATED = os.environ.get("GPUBOOST_DEVICE_TESTS") == "emulated"


@pytest.fixture
def gpu() -> Iterator[CupyRuntime]:
    """The runtime that ``device="cuda"`` takes in this thread."""
    if EMULATED:
        with emulated_gpu():
            yield open_gpu("cuda:0")
        return
    found = [device for device in gb.devices() if device.kind == "cuda"]
    usable = [device for device in found if device.usable]
    if not usable:
        pytest.skip(found[0].why_not)
    yield open_gpu(usable[0].name)


@pytest.fixture
def real_gpu(gpu: CupyRuntime) -> CupyRuntime:
    """Skips the test on an emulated one."""
    if EMULATED:
        pytest.skip("for a real GPU")
    return gpu


def rows(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(n, d) float32 with ties, constants and missing values, and a target of several features."""
    n = min(n, 300) if EMULATED else n
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    x[:, d // 2] = np.round(x[:, d // 2])
    x[:, -1] = np.where(rng.random(n) < 0.9, 1.0, x[:, -1])
    y = np.sin(2 * x[:, 0]) + x[:, d // 3] * (x[:, d // 2] > 0) + 0.3 * rng.normal(size=n)
    for f in range(0, d, 3):
        x[rng.random(n) < 0.04, f] = np.nan
    return x, y
