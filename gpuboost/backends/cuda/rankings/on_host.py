"""Gradients of losses of rankings that the host computes: scores are downloaded, g and h uploaded, in every round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.target import DeviceGradients, Targets
from gpuboost.backends.host.ranking_losses import HostLosses
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.losses.protocol import Loss
from gpuboost.types import Array, TrainingSet


class GradientsOfHost:
    """The verb ``gradients`` for these losses, between the launches of a round, which is never replayed."""

    def __init__(
        self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, targets: Targets, pool: ThreadPool
    ) -> None:
        self._runtime, self._arrays, self._rounds, self._targets = runtime, arrays, rounds, targets
        self._losses = HostLosses(pool)
        self._on_host: tuple[TrainingSet, TrainingSet] | None = None

    @recorded_verb()
    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> DeviceGradients:
        """See the verb."""
        return self._targets.written(data, scores.shape, lambda made: self._write(made, loss, scores, data, curvature))

    def _write(
        self, made: DeviceGradients, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None
    ) -> None:
        if self._on_host is None or self._on_host[0] is not data:
            y = data.y if isinstance(data.y, np.ndarray) else self._runtime.download(self._arrays.array(data.y, float))
            self._on_host = data, replace(data, y=y)
        derivatives = self._losses.derivatives(loss, self._runtime.download(scores), self._on_host[1], curvature)
        for values, to in zip(derivatives, (made.g, made.h), strict=True):
            self._runtime.copy(to, self._runtime.upload(np.ascontiguousarray(values)))
