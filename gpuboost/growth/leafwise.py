"""Leaf-wise growth: the leaf that gains most is split next (best-first; Shi 2007, as in LightGBM)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuboost.backends.protocol import Backend
from gpuboost.types import Candidates, Limits, Structure, Target, TrainingSet


@dataclass(init=False, slots=True, unsafe_hash=True)
class LeafWise:
    """One leaf at a time, to ``limits.max_leaves``. Ties: the older node first."""

    limits: Limits

    def __init__(self, limits: Limits) -> None:
        self.limits = replace(limits, growth="leafwise")

    def structure(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Structure:
        return backend.grow(data, target, output, candidates, self.limits)
