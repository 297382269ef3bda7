"""Origin of a chain: the round at which it began, and the posterior that it draws from."""

from __future__ import annotations

from gpuboost.records import dataclass


@dataclass(frozen=True, slots=True)
class ChainOrigin:
    """Origin of the Langevin chain that a model ends with."""

    start: int  # rounds of the model before the chain's first one
    total_weight: float  # N, of the training rows
    temperature: float  # T = beta / N
    data: tuple[int, int, int]  # rows, features, and a checksum of target and weights
