"""Oblivious growth: one split for all nodes of a level (Kohavi 1994; the symmetric trees of CatBoost)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuboost.backends.protocol import Backend
from gpuboost.types import Candidates, Limits, Structure, Target, TrainingSet


@dataclass(init=False, slots=True, unsafe_hash=True)
class Oblivious:
    """Level by level, to ``limits.max_depth``: all open nodes of a level get the split of largest total gain.

    A level is split as a whole or, if that would exceed ``limits.max_leaves``, not at all.
    """

    limits: Limits

    def __init__(self, limits: Limits) -> None:
        self.limits = replace(limits, growth="oblivious")

    def structure(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Structure:
        return backend.grow(data, target, output, candidates, self.limits)
