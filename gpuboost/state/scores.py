"""The scores of some rows while a model grows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuboost import components
from gpuboost.backends.protocol import Backend
from gpuboost.types import Array, Component, Ensemble, TrainingSet, Tree


@dataclass(frozen=True, slots=True)
class RunningScores:
    """F at some rows: ``values = bias + scale * sums``.

    Trees are added to ``sums``. As long as a model is never shrunk, the sums start at its bias and are the values
    themselves; otherwise they start at 0 and ``refresh`` computes the values: shrinking touches one number. Offsets are
    part of the start; models that shrink have none.
    """

    sums: Array  # (k, n) float64
    values: Array  # (k, n) float64; the same array if nothing shrinks

    @classmethod
    def of(cls, backend: Backend, data: TrainingSet, ensemble: Ensemble, shrink: float) -> RunningScores:
        """The scores of an ensemble to which trees will be added. shrink: the model's share that a round leaves."""
        if shrink == 1.0 and ensemble.scale == 1.0:
            begin = ensemble.bias if data.offset is None else ensemble.bias[:, None] + data.offset
            values = sums = backend.start(data, begin)
        else:
            sums = backend.start(data, np.zeros(ensemble.n_outputs))
            values = backend.start(data, ensemble.bias)
        weak_learners: tuple[Tree | Component, ...] = ensemble.trees or ensemble.components
        for weak_learner, factor in zip(weak_learners, ensemble.factors, strict=True):
            components.add(backend, sums, weak_learner, factor, data)
        scores = cls(sums, values)
        scores.refresh(backend, ensemble.bias, ensemble.scale)
        return scores

    def refresh(self, backend: Backend, bias: Array, scale: float) -> None:
        """Compute the values from the sums, in place; no work if they are one array."""
        if self.values is not self.sums:
            backend.scores(self.sums, bias, scale, self.values)
