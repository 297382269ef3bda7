"""Metrics of rounds that stay on the device until the host reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.types import Array

SLOTS = 128  # rounds whose values are kept; fewer are on their way
THREADS = 256


@final
class RecordedValues:
    """The values of one metric after each round, computed by launches that are part of the round.

    Args:
        runtime: runtime of the device.
        compute: launches the metric; returns the array that will hold its result, the same in each call.
        value: the metric from that array on the host.
    """

    def __init__(self, runtime: Runtime, compute: Callable[[], Array], value: Callable[[NDArray[Any]], float]) -> None:
        self._runtime, self._compute, self._value = runtime, compute, value
        self._kernel = Kernels(runtime, "common/common.cuh", "metrics/keep_result.cu")
        self._ring: Array | None = None
        self._number, self._arrived = runtime.zeros(1, np.uint32), runtime.zeros(1, np.uint32)
        self._begun, self._read = 0, 0  # rounds of ``next``, and those of them whose values are on the host
        self._shape: tuple[int, ...] = ()
        self._dtype: np.dtype[Any] = np.dtype(np.float64)
        self._host: NDArray[np.uint32] = np.empty((0, 0), np.uint32)

    def compute(self) -> None:
        """Launch the metric of the scores as they are, and keep the result."""
        result = self._compute()
        words = result.nbytes // 4
        if self._ring is None:
            self._ring, self._shape, self._dtype = (
                self._runtime.zeros(SLOTS * words, np.uint32),
                result.shape,
                result.dtype,
            )
        self._kernel("keep_result")(
            (block_count(self._runtime, words, THREADS, 1),), (THREADS,),
            result=result.reshape(-1).view(np.uint32), n=words, number=self._number, slots=SLOTS,
            arrived=self._arrived, ring=self._ring,
        )  # fmt: skip

    def next(self) -> Callable[[], float]:
        """See ``ValuesOfRounds``."""
        number = self._begun
        self._begun += 1
        return lambda: self._of(number)

    def _of(self, number: int) -> float:
        assert self._ring is not None
        if number >= self._read:
            self._host = self._runtime.download(self._ring).reshape(SLOTS, -1)
            self._read = self._begun
        return self._value(self._host[number % SLOTS].view(self._dtype).reshape(self._shape))
