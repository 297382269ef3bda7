"""``random_strength``: noise on the features' split gains in the choice of a node's split."""

from __future__ import annotations

from typing import Protocol

from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.types import Candidates


class GainNoise(Protocol):
    """Noise on the split gains of a tree."""

    def disturb(self, candidates: Candidates, key: Key) -> Candidates:
        """The candidates, with noise on their gains. key: key of the round."""
        ...


@dataclass(frozen=True, slots=True)
class NoGainNoise:
    """No noise: the feature of largest gain splits the node."""

    def disturb(self, candidates: Candidates, key: Key) -> Candidates:
        return candidates


@dataclass(frozen=True, slots=True)
class RandomStrength:
    """Gaussian noise, its standard deviation ``strength`` times the mean gain of the node's features."""

    strength: float

    def disturb(self, candidates: Candidates, key: Key) -> Candidates:
        return candidates.disturbed(self.strength, key)


def gain_noise(strength: float) -> GainNoise:
    """Gain noise of ``random_strength``; ``NoGainNoise`` for 0."""
    return RandomStrength(strength) if strength > 0.0 else NoGainNoise()
