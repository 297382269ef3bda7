"""Depth-wise growth: every node of a level is split before any node of the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuboost.backends.protocol import Backend
from gpuboost.types import Candidates, Limits, Structure, Target, TrainingSet


@dataclass(init=False, slots=True, unsafe_hash=True)
class DepthWise:
    """Level by level, to ``limits.max_depth``; nodes of largest gain first if ``limits.max_leaves`` is reached."""

    limits: Limits

    def __init__(self, limits: Limits) -> None:
        self.limits = replace(limits, growth="depthwise")

    def structure(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Structure:
        return backend.grow(data, target, output, candidates, self.limits)
