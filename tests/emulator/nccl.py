"""NCCL between emulated devices, one to a thread: a sum is queued like a kernel, and then waits for all ranks."""

from __future__ import annotations

import threading

import numpy as np

from emulator.arrays import FakeCudaError
from emulator.fake_cupy import FakeCupy

WAIT = 60.0  # seconds until a rank that does not come is an error
_TYPES = {2: np.int32, 3: np.uint32, 4: np.int64, 5: np.uint64}


class World:
    """What the ranks of one group share. Elements that are summed, and calls, are counted."""

    def __init__(self) -> None:
        self.calls = 0
        self.bytes = 0
        self._gate, self._barrier = threading.Lock(), threading.Barrier(1)
        self._given: dict[int, np.ndarray] = {}

    def give(self, cp: FakeCupy) -> FakeCupy:
        """The namespace, with this NCCL in it."""
        cp.cuda.nccl = FakeNccl(cp, self)
        return cp

    def join(self, size: int) -> None:
        """Wait until so many have come."""
        with self._gate:
            if self._barrier.parties != size or self._barrier.broken:
                self._barrier, self._given = threading.Barrier(size, timeout=WAIT), {}
            barrier = self._barrier
        barrier.wait()

    def abort(self) -> None:
        self._barrier.abort()

    def reduce(self, rank: int, array: np.ndarray, operation: int) -> None:
        """In place."""
        self._given[rank] = array.copy()
        self._barrier.wait()
        together = np.stack([self._given[one] for one in sorted(self._given)])
        array[:] = together.max(axis=0) if operation == FakeNccl.NCCL_MAX else together.sum(axis=0, dtype=array.dtype)
        if rank == 0:
            self.calls, self.bytes = self.calls + 1, self.bytes + array.nbytes
        self._barrier.wait()


class FakeNccl:
    """``cupy.cuda.nccl``"""

    NCCL_SUM, NCCL_MAX = 0, 2
    NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64 = 2, 3, 4, 5
    available = True

    def __init__(self, cp: FakeCupy, world: World) -> None:
        self._cp, self._world = cp, world
        self.size = 1

    def get_unique_id(self) -> tuple[int, ...]:
        return tuple(range(128))

    def NcclCommunicator(self, size: int, unique_id: tuple[int, ...], rank: int) -> _Communicator:  # noqa: N802 - CuPy's name
        assert len(unique_id) == 128
        return _Communicator(self._cp, self._world, size, rank)


class _Communicator:
    def __init__(self, cp: FakeCupy, world: World, size: int, rank: int) -> None:
        self._cp, self._world, self._rank = cp, world, rank
        world.join(size)

    def allReduce(  # noqa: N802 - CuPy's name
        self, send: int, receive: int, count: int, kind: int, operation: int, stream: int
    ) -> None:
        current = self._cp.stream
        if current.recording is not None:
            raise FakeCudaError("a sum over devices inside a capture: no graph of one device can hold it")
        if send != receive or stream != current.ptr or not self._cp.current:
            raise FakeCudaError("sums are made in place here, on the runtime's stream")
        allocation, offset = self._cp._at(send)
        array = allocation.bytes[offset:].view(np.uint8)[: count * np.dtype(_TYPES[kind]).itemsize].view(_TYPES[kind])
        world, rank = self._world, self._rank
        self._cp.submit("nccl", lambda: world.reduce(rank, array, operation), allocation)

    def abort(self) -> None:
        self._world.abort()
