"""All-reduce of arrays among the shards of one process, each in its own thread."""

from __future__ import annotations

from threading import Condition
from typing import Any

from numpy.typing import NDArray

from gpuboost.backends.cuda.device.collective import combined, stopped


class LocalRendezvous:
    """See ``cuda.device.collective.Rendezvous``. One for all ranks."""

    def __init__(self) -> None:
        self._gate = Condition()
        self._given: dict[int, NDArray[Any]] = {}
        self._found: NDArray[Any] | None = None
        self._leaving = 0  # ranks that have not read the result
        self._over = False

    def reduce(self, rank: int, size: int, array: NDArray[Any], how: str) -> NDArray[Any]:
        with self._gate:
            self._wait_until(lambda: self._leaving == 0)
            self._given[rank] = array
            if len(self._given) == size:
                self._found = combined([self._given[shard_rank] for shard_rank in range(size)], how)
                self._given, self._leaving = {}, size
                self._gate.notify_all()
            self._wait_until(lambda: self._leaving > 0)
            combined_array = self._found
            assert combined_array is not None
            self._leaving -= 1
            if self._leaving == 0:
                self._gate.notify_all()
            return combined_array

    def abort(self) -> None:
        with self._gate:
            self._over = True
            self._gate.notify_all()

    def _wait_until(self, true: Any) -> None:
        self._gate.wait_for(lambda: self._over or true())
        if self._over:
            raise stopped()
