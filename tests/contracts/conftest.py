"""Machines whose arrays are NumPy's, and small data that every CPU thread has some of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.builders import eager_threads

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference


@pytest.fixture(params=["reference", "cpu", "cpu of three threads"])
def backend(request: pytest.FixtureRequest) -> Backend:
    return {"reference": Reference(), "cpu": Cpu(), "cpu of three threads": Cpu(3)}[request.param]


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    with eager_threads():
        yield
