"""Gradients of losses of arrays on a device: the user's function gets its arrays, and may return them or the host's."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.target import DeviceGradients, Targets
from gpuboost.losses.custom.arrays import ArrayLoss, mean_of, sizes_of
from gpuboost.types import Array, TrainingSet


class ArrayGradients:
    """The verbs that call a user's functions of arrays, between the launches of a round, which is never replayed."""

    def __init__(self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, targets: Targets) -> None:
        self._runtime, self._arrays, self._rounds, self._targets = runtime, arrays, rounds, targets

    @recorded_verb()
    def gradients(self, loss: ArrayLoss, scores: Array, data: TrainingSet, curvature: float | None) -> DeviceGradients:
        """See the verb."""
        return self._targets.written(data, scores.shape, lambda made: self._write(made, loss, scores, data, curvature))

    def mean_loss(self, loss: ArrayLoss, scores: Array, y: Array, weight: Array | None) -> float:
        """See ``loss_value``; waits for it."""
        totals: list[Any] = []
        of_rows = np.ones(len(y)) if weight is None else weight
        arguments = [self._arrays.array(x, np.float64) for x in (y, scores, of_rows)]
        self._runtime.beyond(lambda: totals.append(loss.total(*arguments)))
        value = totals[0] if totals else None  # a dry run calls nothing
        array = self._runtime.as_device_array(value)
        value = value if array is None else self._runtime.download(array)
        host = weight if weight is None or isinstance(weight, np.ndarray) else self._runtime.download(weight)
        return mean_of(value, host, len(y), weighted=loss.weighs)

    def _write(
        self, made: DeviceGradients, loss: ArrayLoss, scores: Array, data: TrainingSet, curvature: float | None
    ) -> None:
        weight = self._rounds.buffer(("weights", id(data)), lambda: self._runtime.upload(data.row_weight()))
        derivatives = loss.arrays(self._arrays.array(data.y, np.float64), scores, weight, sizes_of(data))
        g, h = (self._on_device(part) for part in derivatives)
        k = len(scores)
        for output in range(k):
            for values, to in ((g, made.g), (h, made.h)):
                of_rows = values if k == 1 else values[:, output]
                if values is h:
                    of_rows = np.maximum(of_rows, 0.0)  # where a loss is not convex, a Newton step would climb
                    if curvature is not None:
                        of_rows = weight if loss.weighs else self._ones(data.n_rows)
                        of_rows = np.multiply(of_rows, curvature)
                self._runtime.copy(to[output], loss.counted(of_rows, weight, data).astype(np.float32))

    def _on_device(self, values: Any) -> Any:
        """The values as float64 on the device."""
        array: Any = self._runtime.as_device_array(values)
        if array is None:
            return self._runtime.upload(np.ascontiguousarray(values, np.float64))
        return array.astype(np.float64)

    def _ones(self, n: int) -> Array:
        return self._rounds.buffer(("ones", n), lambda: self._runtime.upload(np.ones(n)))
