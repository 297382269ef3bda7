"""A runtime that records launches, so that they can be replayed as one graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

from numpy.typing import DTypeLike, NDArray

from gpuboost.backends.cuda.device.joined import Segments, joined
from gpuboost.backends.cuda.device.launches import Copy, Fill, KernelLaunch, KernelText, Launch, queue
from gpuboost.backends.cuda.device.runtime import Functions, Kernel, Runtime, Shape
from gpuboost.types import Array


@final
class Recorder:
    """See ``Runtime``. While ``record`` runs, launches are executed and recorded.

    ``write`` is not recorded: its data may change from one replay to the next, so its caller must repeat it before a
    replay. Waiting for the device and allocating memory rule out a replay.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.name, self.sm_count, self.block_memory = runtime.name, runtime.sm_count, runtime.block_memory
        self.clusters = runtime.clusters
        self.member = runtime.member
        self._launches: list[Launch] | None = None
        self._replayable, self._launching = True, True

    @property
    def free_memory(self) -> int:
        return self._runtime.free_memory

    def record(self, work: Callable[[], Any]) -> tuple[Any, list[Launch], bool]:
        """Do ``work``; return its result, its launches, and True if these can be replayed in its place."""
        self._launches, self._replayable = [], True
        try:
            result = work()
            return result, self._launches, self._replayable
        finally:
            self._launches = None

    def launches_of(self, work: Callable[[], None]) -> list[Launch]:
        """The launches of ``work``, which are not executed."""
        self._launching = False
        try:
            return self.record(work)[1]
        finally:
            self._launching = True

    def empty(self, shape: Shape, dtype: DTypeLike) -> Array:
        self._replayable = False
        return self._runtime.empty(shape, dtype)

    def zeros(self, shape: Shape, dtype: DTypeLike) -> Array:
        self._replayable = False
        return self._runtime.zeros(shape, dtype)

    def upload(self, host: NDArray[Any]) -> Array:
        self._replayable = False
        return self._runtime.upload(host)

    def as_device_array(self, x: Any) -> Array | None:
        return self._runtime.as_device_array(x)

    def pinned(self, shape: Shape, dtype: DTypeLike) -> NDArray[Any]:
        return self._runtime.pinned(shape, dtype)

    def write(self, device: Array, pinned: NDArray[Any]) -> None:
        self._runtime.write(device, pinned)

    def read(self, device: Array, pinned: NDArray[Any]) -> None:
        self._replayable = False
        self._runtime.read(device, pinned)

    def fill(self, device: Array, byte: int) -> None:
        self._do(Fill(device, byte), lambda: self._runtime.fill(device, byte))

    def copy(self, destination: Array, source: Array) -> None:
        self._do(Copy(destination, source), lambda: self._runtime.copy(destination, source))

    def beyond(self, work: Callable[[], None]) -> None:
        self._replayable = False
        self._runtime.beyond(work)

    def download(self, device: Array) -> NDArray[Any]:
        self._replayable = False
        return self._runtime.download(device)

    def wait(self) -> None:
        self._replayable = False
        self._runtime.wait()

    def kernel(self, source: str, name: str, *, functions: Functions = (), shared_limit: int | None = None) -> Kernel:
        launch = self._runtime.kernel(source, name, functions=functions, shared_limit=shared_limit)
        text = KernelText(source, name, functions, shared_limit)

        def noted(grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int = 0) -> None:
            if self._launching:
                launch(grid, block, args, shared_mem)
            if self._launches is not None and 0 not in grid:
                self._launches.append(KernelLaunch(text, grid, block, tuple(args), shared_mem))

        return noted

    def check(self, functions: Functions, *, beside: bool = False) -> None:
        self._runtime.check(functions, beside=beside)

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        return self.captured([[self.launches_of(work)]])

    def captured(self, segments: Segments) -> Callable[[], None]:
        """The function that queues these launches as one graph; in lock-step, with those of the other trainings."""
        if self.member is not None:
            return self.member.graph(segments)
        return self._runtime.capture(partial(queue, joined([segments], self._runtime), self._runtime))

    def spawn(self) -> Runtime:
        return self._runtime.spawn()

    def mark(self) -> Any:
        self._replayable = False
        return self._runtime.mark()

    def follow(self, mark: Any) -> None:
        self._replayable = False
        self._runtime.follow(mark)

    def wait_for(self, mark: Any) -> None:
        self._replayable = False
        self._runtime.wait_for(mark)

    def _do(self, launch: Launch, now: Callable[[], None]) -> None:
        if self._launching:
            now()
        if self._launches is not None:
            self._launches.append(launch)
