"""The scores of some rows while a model grows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpuboost import components
from gpuboost.backends.protocol import Backend
from gpuboost.records import dataclass
from gpuboost.types import Array, Component, Ensemble, FittedTree, TrainingSet


@dataclass(frozen=True, slots=True)
class RunningScores:
    """F at some rows: ``values = bias + scale * sums``.

    Trees are added to ``sums``. As long as a model is never shrunk, the sums start at its bias and are the values
    themselves; otherwise they start at 0 and ``refresh`` computes the values: shrinking touches one number. Offsets are
    part of the start; models that shrink have none. Gradients of a mean of trees are all taken at ``fixed``.
    """

    sums: Array  # (k, n) float64
    values: Array  # (k, n) float64; the same array if nothing shrinks
    fixed: Array | None = None  # (k, n) float64 scores before the first tree, of a mean of trees

    @property
    def base(self) -> Array:
        """(k, n) float64 scores at which gradients are taken and lengths are searched."""
        return self.values if self.fixed is None else self.fixed

    @classmethod
    def of(
        cls, backend: Backend, data: TrainingSet, ensemble: Ensemble, shrink: float, *, averages: bool = False
    ) -> RunningScores:
        """The scores of an ensemble to which trees will be added.

        shrink: the model's share that a round leaves. averages: the model is the mean of its rounds.
        """
        if shrink == 1.0 and ensemble.scale == 1.0 and not averages:
            begin = ensemble.bias if data.offset is None else ensemble.bias[:, None] + data.offset
            values = sums = backend.start(data, begin)
        else:
            sums = backend.start(data, np.zeros(ensemble.n_outputs))
            values = backend.start(data, ensemble.bias)
        weak_learners: tuple[FittedTree | Component, ...] = ensemble.trees or ensemble.components
        for weak_learner, factor in zip(weak_learners, ensemble.factors, strict=True):
            components.add(backend, sums, weak_learner, factor, data)
        scores = cls(sums, values, backend.start(data, ensemble.bias) if averages else None)
        scores.refresh(backend, ensemble.bias, ensemble.scale)
        return scores

    def refresh(self, backend: Backend, bias: Array, scale: float) -> None:
        """Compute the values from the sums, in place; no work if they are one array."""
        if self.values is not self.sums:
            backend.scores(self.sums, bias, scale, self.values)


def started(
    backend: Backend, data: TrainingSet, ensemble: Ensemble, shrink: float, sequences: int, *, averages: bool = False
) -> tuple[RunningScores, ...]:
    """The scores of each of the sequences whose mean is the ensemble, and which grow in turn, a round of each."""
    if sequences == 1:
        return (RunningScores.of(backend, data, ensemble, shrink, averages=averages),)
    k = ensemble.n_outputs
    made = []
    for number in range(sequences):
        tree_indices = [i for i in range(len(ensemble.trees)) if i // k % sequences == number]
        part = replace(
            ensemble,
            trees=tuple(ensemble.trees[i] for i in tree_indices),
            factors=tuple(ensemble.factors[i] * sequences for i in tree_indices),
        )
        made.append(RunningScores.of(backend, data, part, shrink))
    return tuple(made)
