"""Protocol of the growth policies, which turn a target into a structure."""

from __future__ import annotations

from typing import Protocol

from gpuboost.backends.protocol import Backend
from gpuboost.types import Candidates, Limits, Structure, Target, TrainingSet


class Growth(Protocol):
    """An order in which nodes are split."""

    @property
    def limits(self) -> Limits: ...

    def structure(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Structure: ...
