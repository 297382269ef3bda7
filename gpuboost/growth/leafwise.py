"""Leaf-wise growth: the leaf that gains most is split next (best-first; Shi 2007, as in LightGBM)."""

from __future__ import annotations

from dataclasses import dataclass

from gpuboost.backends.protocol import Backend
from gpuboost.types import Candidates, Limits, Structure, Target, TrainingSet


@dataclass(frozen=True, slots=True)
class LeafWise:
    """One leaf at a time, to ``limits.max_leaves``. Equal gains: the older node first."""

    limits: Limits

    def structure(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Structure:
        frontier = backend.plant(data, target, output, candidates, self.limits)
        for _ in range(self.limits.max_leaves - 1):
            backend.histograms(frontier)
            backend.best_splits(frontier)
            if not backend.partition(frontier, most=1):
                break
        return backend.harvest(frontier, data, target)
