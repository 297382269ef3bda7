"""Launches as records, which can be queued again: on any stream of their device, in a graph, or joined with others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from gpuboost.backends.cuda.device.runtime import Functions, Runtime
from gpuboost.types import Array


class Launch(Protocol):
    """Work on a device."""

    def on(self, runtime: Runtime) -> None:
        """Queue it on this runtime's stream."""
        ...


class KernelText(NamedTuple):
    """Arguments of ``Runtime.kernel``: what a kernel is compiled from."""

    source: str
    name: str
    functions: Functions
    shared_limit: int | None


@dataclass(frozen=True, slots=True, eq=False)
class KernelLaunch:
    """One launch of a kernel. ``arguments``: arrays of the device, and NumPy scalars of the kernel's types."""

    kernel: KernelText
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Any, ...]
    shared_mem: int

    def on(self, runtime: Runtime) -> None:
        text = self.kernel
        kernel = runtime.kernel(text.source, text.name, functions=text.functions, shared_limit=text.shared_limit)
        kernel(self.grid, self.block, self.arguments, self.shared_mem)


@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """A memset of an array."""

    array: Array
    byte: int

    def on(self, runtime: Runtime) -> None:
        runtime.fill(self.array, self.byte)


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """A copy between two arrays."""

    destination: Array
    source: Array

    def on(self, runtime: Runtime) -> None:
        runtime.copy(self.destination, self.source)


def queue(launches: Iterable[Launch], runtime: Runtime) -> None:
    """Queue the launches one after another."""
    for launch in launches:
        launch.on(runtime)
