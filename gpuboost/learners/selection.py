"""Selection rules: all learners, or a random subset of the features, drawn anew for each tree.

For trees on binned features all cuts of one feature form the natural group, and features outside the subset cost
nothing: their histograms are never built.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from math import ceil
from typing import Protocol

import numpy as np

from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.types import Candidates


class Selection(Protocol):
    """A rule for which features compete in one tree."""

    def draw(self, n_features: int, key: Key) -> Candidates: ...


@dataclass(frozen=True, slots=True)
class AllLearners:
    """Type 0: everything competes."""

    def draw(self, n_features: int, key: Key) -> Candidates:
        return Candidates(np.arange(n_features, dtype=np.int32))


@dataclass(frozen=True, slots=True)
class RandomGroups:
    """Type 3: ``t`` features, uniformly, without replacement. An int is a count, a float the share of the features.

    Raises:
        RecipeError: if t is not a count of at least 1 or a share in (0, 1].
    """

    t: int | float

    def __post_init__(self) -> None:
        share = isinstance(self.t, float)
        if isinstance(self.t, bool) or not (0.0 < self.t <= 1.0 if share else self.t >= 1):
            raise RecipeError(
                f"learners: t must be a count of at least 1, or a share of the features in (0, 1]; got {self.t!r}."
            )

    def draw(self, n_features: int, key: Key) -> Candidates:
        # 0.07 * 100 is a little more than 7 in binary, and 7 is what is meant
        count = ceil(self.t * n_features - 1e-9) if isinstance(self.t, float) else min(self.t, n_features)
        order = np.argsort(_lots(n_features, key), kind="stable")  # equal lots: the lower feature first
        return Candidates(np.sort(order[:count]).astype(np.int32))


def _lots(count: int, key: Key) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """One 64-bit lot per feature. Drawn on the host for every backend, so a hash does; no kernel needs it."""
    seed = b"".join(word.to_bytes(4, "little") for word in key.words)
    digest = (blake2b(i.to_bytes(8, "little"), digest_size=8, key=seed).digest() for i in range(count))
    return np.frombuffer(b"".join(digest), dtype="<u8")
