"""Depth-wise growth: every node of a level is split before any node of the next."""

from __future__ import annotations

from dataclasses import dataclass

from gpuboost.backends.protocol import Backend
from gpuboost.types import Candidates, Limits, Structure, Target, TrainingSet


@dataclass(frozen=True, slots=True)
class DepthWise:
    """Level by level, to ``limits.max_depth``; where leaves run out, the nodes that gain most come first."""

    limits: Limits

    def structure(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Structure:
        frontier = backend.plant(data, target, output, candidates, self.limits)
        for _ in range(self.limits.max_depth):
            backend.histograms(frontier)
            backend.best_splits(frontier)
            if not backend.partition(frontier):
                break
        return backend.harvest(frontier, data, target)
