"""Oblivious growth: every level asks one question (Kohavi 1994; the symmetric trees of CatBoost)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuboost.backends.protocol import Backend
from gpuboost.growth.depthwise import DepthWise
from gpuboost.types import Candidates, Limits, Structure, Target, TrainingSet


@dataclass(frozen=True, slots=True)
class Oblivious:
    """Level by level, to ``limits.max_depth``: all open nodes of a level get the split that gains most in sum.

    A level is split as a whole or, where ``limits.max_leaves`` has no room for it, not at all.
    """

    limits: Limits

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", replace(self.limits, symmetric=True))

    def structure(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Structure:
        return DepthWise(self.limits).structure(backend, data, target, output, candidates)
