"""The rows of a shard, sent to it or read by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.types import Bins, Cuts, TrainingSet


@dataclass(frozen=True, slots=True)
class ShardData:
    """Consecutive rows, not binned yet."""

    x: Any  # (n, d), as ``Backend.quantise`` takes it
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None = None
    multiplicity: NDArray[np.int32] | None = None
    query_start: NDArray[np.int64] | None = None

    def __call__(self) -> ShardData:
        return self

    def binned(self, bins: Bins, cuts: Cuts) -> TrainingSet:
        """The same rows with these bins in the place of ``x``."""
        return TrainingSet(bins, cuts, self.y, self.weight, self.multiplicity, self.query_start)


ShardSource: TypeAlias = Callable[[], ShardData]
"""Source of a shard's rows, called by the shard: a ``ShardData``, or a ``functools.partial`` that reads files."""
