"""``random_strength``: noise on the gains of the features when the one that splits a node is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpuboost.keys import Key
from gpuboost.types import Candidates


class GainNoise(Protocol):
    """Noise on the split gains of a tree."""

    def disturb(self, candidates: Candidates, key: Key) -> Candidates:
        """The same candidates, chosen between by noisy gains. key: of the round."""
        ...


@dataclass(frozen=True, slots=True)
class NoGainNoise:
    """The feature that gains most splits the node."""

    def disturb(self, candidates: Candidates, key: Key) -> Candidates:
        return candidates


@dataclass(frozen=True, slots=True)
class RandomStrength:
    """Gaussian noise, its standard deviation ``strength`` times the mean gain of the node's features."""

    strength: float

    def disturb(self, candidates: Candidates, key: Key) -> Candidates:
        return candidates.disturbed(self.strength, key)


def gain_noise(strength: float) -> GainNoise:
    """The piece that ``random_strength`` names."""
    return RandomStrength(strength) if strength > 0.0 else NoGainNoise()
