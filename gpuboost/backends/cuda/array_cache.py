"""Device copies of host arrays, kept as long as the host's array exists."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from gpuboost.backends.cuda.bins import Binner, DeviceBins
from gpuboost.backends.cuda.device.round import RecordedRound
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.kernels.gradients import pointwise
from gpuboost.types import Array, Bins, Cuts, TrainingSet

CUTS_KEPT = 4  # of different cuts


class Copies:
    """Device copies of host arrays, for all streams of a device. The first request makes a copy; later ones wait."""

    def __init__(self) -> None:
        self._held: dict[int, Any] = {}
        self._making = threading.Lock()

    def of(self, original: Any, make: Callable[[], Any]) -> Any:
        """The result of ``make``, made once and dropped with the original. It must be on the device on return."""
        key = id(original)
        with self._making:
            if key not in self._held:
                self._held[key] = make()
                weakref.finalize(original, _drop, weakref.ref(self), key).atexit = False
            return self._held[key]


def _drop(copies: weakref.ref[Copies], key: int) -> None:
    """Drop a copy whose original is gone, unless the copies are: an original may live longer than its backend."""
    there = copies()
    if there is not None:
        there._held.pop(key, None)


class ArrayCache:
    """Device copies, made at the first request and dropped with the original, which must not change meanwhile."""

    def __init__(self, runtime: Runtime, binner: Binner, copies: Copies | None = None) -> None:
        self._runtime, self._binner = runtime, binner
        self.copies = Copies() if copies is None else copies
        self._kinds: dict[int, tuple[Cuts, tuple[Array, Array]]] = {}
        self.nothing = runtime.zeros(1, np.float64)  # for kernels' arguments that are not used
        self.no_times = runtime.zeros(1, np.int32)

    def array(self, x: Any, dtype: DTypeLike) -> Array:
        """x on the device: itself if it is there, else a copy."""
        on_device = self._runtime.as_device_array(x)
        if on_device is not None:
            return on_device
        return self.copies.of(x, lambda: self._runtime.upload(np.ascontiguousarray(x, dtype)))

    def weight(self, weight: Any) -> dict[str, Any]:
        """Arguments of kernels that weight rows: (n,) float64 weights, if any."""
        if weight is None:
            return {"weight": self.nothing, "has_weight": False}
        return {"weight": self.array(weight, np.float64), "has_weight": True}

    def times(self, multiplicity: Array | None) -> dict[str, Any]:
        """Arguments of kernels that use multiplicities: (n,) int32 on the device, if any."""
        if multiplicity is None:
            return {"times": self.no_times, "has_times": False}
        return {"times": multiplicity, "has_times": True}

    def rows(self, data: TrainingSet) -> dict[str, Any]:
        """Arguments of kernels that read the user's targets, weights and multiplicities."""
        m = data.multiplicity
        times = self.times(None if m is None else self.array(m, np.int32))
        return {"y": self.array(data.y, np.float64), **self.weight(data.weight), **times}

    def rows_of_output(self, data: TrainingSet, output: int, rounds: RecordedRound) -> dict[str, Any]:
        """``rows`` with the target of one output, (n,); a copy of its column if y has several."""
        rows = self.rows(data)
        if len(data.y.shape) > 1:
            y = data.y
            rows["y"] = rounds.buffer(("target", id(y), output), lambda: self._column(y, output))
        return rows

    def _column(self, y: Any, output: int) -> Array:
        host = y if isinstance(y, np.ndarray) else self._runtime.download(y)
        return self._runtime.upload(np.ascontiguousarray(host[:, output], np.float64))

    def total(self, weight: Any) -> float:
        """The sum of weights in the order of ``numerics.exact_sums.fixed_order_sum``."""
        host = weight if isinstance(weight, np.ndarray) else self._runtime.download(weight)
        return float(pointwise.sum_in_order(np.ascontiguousarray(host, np.float64)))

    def bins(self, bins: Bins) -> DeviceBins:
        """Bins on the device; those of a host are laid out once."""
        if isinstance(bins, DeviceBins):
            return bins
        anchor = bins.rows if hasattr(bins, "rows") else bins.feature

        def lay_out() -> DeviceBins:
            laid_out = self._binner.lay_out(bins)
            self._runtime.wait()  # another stream may be the next to ask
            return laid_out

        device_bins: DeviceBins = self.copies.of(anchor, lay_out)
        return device_bins

    def kinds(self, cuts: Cuts) -> tuple[Array, Array]:
        """(d,) int32 value bins of each feature, and (d,) uint8 whether it is categorical."""
        if id(cuts) not in self._kinds:
            pair = self._runtime.upload(cuts.n_bins), self._runtime.upload(cuts.is_categorical.astype(np.uint8))
            self._kinds = {**dict(list(self._kinds.items())[1 - CUTS_KEPT :]), id(cuts): (cuts, pair)}
        return self._kinds[id(cuts)][1]
